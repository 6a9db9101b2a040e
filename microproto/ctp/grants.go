package ctp

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// In the InfiniBand columns there is no PositiveAck. Synchronous then sends grants itself, as
// segments of a reserved tag: the label is the number of bytes granted in all, the payload the
// number of transfers stored (8 bytes). The link is reliable and ordered, so no grant is lost
// and each is newer than the one before. Both ends know the first grant, OptionPeerReceive. A
// transfer is accepted only by a grant: it may still be on a link that goes down.
//
// With OptionGrantsInMessages every segment has both numbers in its header. A segment of the
// reserved tag is sent where no message carries them in time: where each segment of its own
// costs a system call, that saves half of them.

const grantTag = math.MaxUint32

var grantTimeout = microproto.NewEvent[*Synchronous]("ctp.grant.timer")

func (s *Synchronous) bindGrants(b *microproto.Binder) {
	microproto.Bind(b, microproto.OpenSession, microproto.Last, func(x *microproto.Exec, _ struct{}) {
		// PositiveAck, if there is one, has set the first grant by now.
		if *s.grant == math.MaxUint64 {
			s.advertised = *s.consumed + s.limit
			*s.grant = s.peerLimit
			s.startGrants(x)
		}
	})
	bind(b, grantTimeout, func(x *microproto.Exec, _ *Synchronous) {
		s.grantTimer = 0
		unread := s.stored != *s.consumed
		switch {
		case s.carries && unread && !s.grantLate:
			s.grantLate = true // the user's answer may carry it
			s.grantTimer = microproto.RaiseAfter(x, grantTimeout, s.grantDelay, s)
		case s.acknowledged != s.arrivals || s.grantDue || s.carries && !unread && s.advertised != *s.consumed+s.limit:
			s.sendGrant(x)
		}
	})
}

// startGrants binds the handlers that the other columns do not need.
func (s *Synchronous) startGrants(x *microproto.Exec) {
	s.grants = true
	_, noGrants := microproto.BindNow(x, microproto.SegmentToUser, microproto.Early, s.receiveGrant)
	_, noLosses := microproto.BindNow(x, microproto.SegmentLost, microproto.Normal, s.lost)
	if err := cmp.Or(noGrants, noLosses); err != nil {
		x.Fail(err)
	}
}

func (s *Synchronous) receiveGrant(x *microproto.Exec, m *microproto.Message) {
	alone := s.tag.Get(m) == grantTag
	if !alone && !s.carries {
		return
	}
	var stored, granted uint64
	switch {
	case !alone:
		stored, granted = s.storedAttr.Get(m), s.grantedAttr.Get(m)
	case len(m.Payload) == grantPayload:
		stored, granted = binary.BigEndian.Uint64(m.Payload), s.label.Get(m)
	default:
		x.Drop(m, "malformed grant")
		return
	}
	if stored > s.sending.last {
		x.Drop(m, "acknowledgement of a segment not sent")
		return
	}
	s.accepted = max(s.accepted, stored)
	*s.grant = max(*s.grant, granted)
	if alone {
		x.Done(m)
	}
}

// carryGrant writes a grant into the header of a segment.
func (s *Synchronous) carryGrant(x *microproto.Exec, m *microproto.Message) {
	s.granted()
	s.storedAttr.Set(m, s.acknowledged)
	s.grantedAttr.Set(m, s.advertised)
	cancel(x, &s.grantTimer)
}

// granted records what a grant says that is sent now.
func (s *Synchronous) granted() {
	s.advertised = *s.consumed + s.limit
	s.acknowledged = s.arrivals
	s.grantDue, s.grantLate = false, false
}

const grantPayload = 8

// scheduleGrant makes sure that a grant acknowledges the stored transfers soon. A receiver that
// keeps up grants with every message, so that this grant is not needed. A grant that a message can
// carry waits for the user's answer until the next Advance, as an acknowledgement does.
func (s *Synchronous) scheduleGrant(x *microproto.Exec) {
	if !s.grants || s.grantTimer != 0 {
		return
	}
	delay := s.grantDelay
	if s.carries && !s.grantLate {
		delay = 0
	}
	s.grantTimer = microproto.RaiseAfter(x, grantTimeout, delay, s)
}

// grantFreed grants the bytes that have become free once they are a quarter of the queue, or
// the queue is empty: so a message of the queue's size can always be sent eventually.
func (s *Synchronous) grantFreed(x *microproto.Exec) {
	credit, all := *s.consumed+s.limit, s.stored == *s.consumed
	switch {
	case !s.grants || credit == s.advertised:
	case credit-s.advertised >= s.limit/4 || all && !s.carries:
		s.sendGrant(x)
	case all:
		s.scheduleGrant(x)
	}
}

func (s *Synchronous) sendGrant(x *microproto.Exec) {
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		if s.grantDue = true; s.grantTimer == 0 {
			s.grantTimer = microproto.RaiseAfter(x, grantTimeout, time.Millisecond, s)
		}
		return
	}
	s.granted()
	// An earlier grant that still waits shares these bytes; the newer number is valid for it.
	binary.BigEndian.PutUint64(s.grantBytes[:], s.acknowledged)
	m.Payload = s.grantBytes[:]
	s.total.Set(m, grantPayload) // a complete message for Resize
	s.tag.Set(m, grantTag)
	s.label.Set(m, s.advertised)
	cancel(x, &s.grantTimer)
	x.Forward(m)
}

// lost fails the composite: a link that is treated as reliable had no room for a segment that
// no micro-protocol retains. The message would be lost silently.
func (s *Synchronous) lost(x *microproto.Exec, _ *microproto.Message) {
	x.Fail(fmt.Errorf("%w: no room for a segment below; outputs must be drained after each call", ErrLink))
}
