package mptest

import (
	"bytes"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// Isolation is a Tracer that checks that the handlers of a micro-protocol change only header bytes
// that it declared. It compares the header of a message between consecutive steps: the running
// handler has made the changes.
type Isolation struct {
	// Layout is that of the composite. Set it before the first message.
	Layout []microproto.Region
	// Breaches describes the violations, at most 16.
	Breaches []string

	running []runningHandler
}

type runningHandler struct {
	protocol string
	message  uint64
	header   []byte
}

// Trace implements microproto.Tracer.
func (s *Isolation) Trace(_ microproto.Instant, r microproto.TraceRecord) {
	switch r.Kind {
	case microproto.TraceHandle:
		// Changes so far are those of the handler that raised this event.
		s.check(r)
		s.running = append(s.running, runningHandler{r.Protocol, r.Message, bytes.Clone(r.Header)})
	case microproto.TraceReturn:
		s.check(r)
		if n := len(s.running); n > 0 {
			s.running = s.running[:n-1]
		}
		// Changes by the nested handler do not count for the outer ones.
		for i := range s.running {
			if s.running[i].message == r.Message {
				s.running[i].header = bytes.Clone(r.Header)
			}
		}
	}
}

func (s *Isolation) check(r microproto.TraceRecord) {
	if len(s.running) == 0 || r.Message == 0 {
		return
	}
	at := &s.running[len(s.running)-1]
	if at.message != r.Message || len(at.header) != len(r.Header) {
		return
	}
	for i := range r.Header {
		if r.Header[i] != at.header[i] && s.owner(i) != at.protocol && len(s.Breaches) < 16 {
			s.Breaches = append(s.Breaches, fmt.Sprintf("%s, handling %s of message %d, changed header byte %d of %s",
				at.protocol, r.Event, r.Message, i, s.owner(i)))
		}
	}
	at.header = bytes.Clone(r.Header)
}

func (s *Isolation) owner(offset int) string {
	for _, r := range s.Layout {
		if offset >= r.Offset && offset < r.Offset+r.Length {
			return r.Protocol
		}
	}
	return "no micro-protocol"
}
