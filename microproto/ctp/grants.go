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
	if alone && len(m.Payload) != grantPayload {
		x.Drop(m, "malformed grant")
		return
	}
	if !s.validGrant(m) {
		x.Drop(m, "acknowledgement of a segment not sent")
		return
	}
	s.takeGrant(m)
	if alone {
		x.Done(m)
	}
}

// grantOf returns the grant in a segment: the number of transfers stored, and the bytes granted in all.
func (s *Synchronous) grantOf(m *microproto.Message) (stored, granted uint64) {
	if s.tag.Get(m) == grantTag {
		return binary.BigEndian.Uint64(m.Payload), s.label.Get(m)
	}
	return s.storedAttr.Get(m), s.grantedAttr.Get(m)
}

// validGrant reports whether a grant stands for transfers that were sent, and alone has its length.
func (s *Synchronous) validGrant(m *microproto.Message) bool {
	if s.tag.Get(m) == grantTag && len(m.Payload) != grantPayload {
		return false
	}
	stored, _ := s.grantOf(m)
	return stored <= s.sending.last
}

func (s *Synchronous) takeGrant(m *microproto.Message) {
	stored, granted := s.grantOf(m)
	s.accepted = max(s.accepted, stored)
	*s.grant = max(*s.grant, granted)
}

// carryGrant writes a grant into the header of a segment.
func (s *Synchronous) carryGrant(x *microproto.Exec, m *microproto.Message) {
	s.granted(x, *s.consumed+s.limit)
	s.storedAttr.Set(m, s.acknowledged)
	s.grantedAttr.Set(m, s.advertised)
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
	// An earlier grant that still waits shares these bytes; the newer number is valid for it.
	binary.BigEndian.PutUint64(s.grantBytes[:], s.arrivals)
	credit := *s.consumed + s.limit
	if s.alone = (transferHeader{tag: grantTag, label: credit}); x.SendCommon(s.grantBytes[:], 1) {
		s.granted(x, credit)
		return
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		if s.grantDue = true; s.grantTimer == 0 {
			s.grantTimer = microproto.RaiseAfter(x, grantTimeout, time.Millisecond, s)
		}
		return
	}
	m.Payload = s.grantBytes[:]
	s.total.Set(m, grantPayload) // a complete message for Resize
	s.tag.Set(m, grantTag)
	s.label.Set(m, credit)
	s.granted(x, credit)
	x.Forward(m)
}

// granted notes that a grant of so much credit is sent.
func (s *Synchronous) granted(x *microproto.Exec, credit uint64) {
	s.advertised = credit
	s.acknowledged = s.arrivals
	s.grantDue, s.grantLate = false, false
	cancel(x, &s.grantTimer)
}

// lost fails the composite: a link that is treated as reliable had no room for a segment that
// no micro-protocol retains. The message would be lost silently.
func (s *Synchronous) lost(x *microproto.Exec, _ *microproto.Message) {
	x.Fail(fmt.Errorf("%w: no room for a segment below; outputs must be drained after each call", ErrLink))
}
