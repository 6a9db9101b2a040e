package p2psap

import (
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// Class is the importance of a session's frames among those of all sessions that wait for a busy link.
// Acknowledgements go first, then agreements, faces and bulk; a class below a busy one gets at least a
// ninth of what the link carries. Small frames of a bulk session count as faces. The order within a
// session does not change.
type Class uint8

// The classes of sessions.
const (
	ClassByMode    Class = iota // ClassFace in an asynchronous session, ClassBulk in a synchronous one
	ClassAgreement              // few and small, and every peer waits for them
	ClassFace                   // values of an iteration
	ClassBulk
)

// in returns the class of a session's frames in a mode.
func (c Class) in(mode microproto.Mode) rail.Class {
	switch {
	case c == ClassAgreement:
		return rail.Agreement
	case c == ClassFace, c == ClassByMode && mode == microproto.ModeAsynchronous:
		return rail.Face
	}
	return rail.Bulk
}

// smallBytes is the largest payload of a bulk session's frames that go ahead of the others.
const smallBytes = coalesceBytes

// classOf returns the class of a frame that is not encrypted yet.
func (c *channel) classOf(f *microproto.Frame) rail.Class {
	payload := len(f.Data) + len(f.Body) - f.Count()*c.composite.HeaderBytes()
	switch {
	case payload <= 0:
		return rail.Control
	case c.class == rail.Bulk && payload <= smallBytes:
		return rail.Face
	}
	return c.class
}
