package ctp

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Without PositiveAck, in the InfiniBand columns, Synchronous answers itself, in segments
// of a tag of their own: labelled with the bytes of its queue that it grants in all, with
// the number of transfers that it has stored, 8 bytes, as their payload. The link is
// reliable and ordered there, so that none is lost and each is newer than the last. The
// first grant is OptionPeerReceive, known to both. That the link has taken a transfer says
// nothing of where it is, and the link may go down: only an answer makes it accepted.

// grantTag is a tag that no user has.
const grantTag = math.MaxUint32

var grantLater = microproto.NewEvent[*Synchronous]("ctp.grant.later")

func (s *Synchronous) bindGrants(b *microproto.Binder) {
	microproto.Bind(b, microproto.OpenSession, microproto.Last, func(x *microproto.Exec, _ struct{}) {
		// PositiveAck, if there is one, has put the first grant in by now.
		if *s.grant == math.MaxUint64 {
			s.told, *s.grant = *s.consumed+s.limit, s.peerLimit
			s.grantAlone(x)
		}
	})
	microproto.Bind(b, grantLater, microproto.Normal, func(x *microproto.Exec, _ *Synchronous) {
		s.timer = 0
		if s.answered != s.arrivals || s.late {
			s.answer(x)
		}
	})
}

// grantAlone binds what the other columns do without.
func (s *Synchronous) grantAlone(x *microproto.Exec) {
	s.own = true
	for _, err := range []error{
		bindNow(x, microproto.SegmentToUser, microproto.Early, s.takeGrant),
		bindNow(x, microproto.SegmentLost, microproto.Normal, s.lost),
	} {
		if err != nil {
			x.Fail(err)
		}
	}
}

func bindNow[T any](x *microproto.Exec, e microproto.Event[T], p microproto.Priority, h microproto.Handler[T]) error {
	_, err := microproto.BindNow(x, e, p, h)
	return err
}

func (s *Synchronous) takeGrant(x *microproto.Exec, m *microproto.Message) {
	if s.tag.Get(m) != grantTag {
		return
	}
	if len(m.Payload) != answerBytes {
		x.Drop(m, "malformed grant")
		return
	}
	stored := binary.BigEndian.Uint64(m.Payload)
	if stored > s.sending.last {
		x.Drop(m, "acknowledgement of what was never sent")
		return
	}
	s.accepted = max(s.accepted, stored)
	*s.grant = max(*s.grant, s.label.Get(m))
	x.Done(m)
}

// answerBytes is the payload of an answer.
const answerBytes = 8

// arrivedAlone has the other end told that a transfer is stored: with the next grant, or
// soon. A receiver that keeps up grants with every message, so nothing is sent for this.
func (s *Synchronous) arrivedAlone(x *microproto.Exec) {
	if s.own && s.timer == 0 {
		s.timer = microproto.RaiseAfter(x, grantLater, s.patience, s)
	}
}

// offer tells the other end what has become free: when that is a quarter of the
// queue, and when the queue is empty, so that a message of the queue's size can
// always go at last.
func (s *Synchronous) offer(x *microproto.Exec) {
	credit := *s.consumed + s.limit
	if s.own && credit != s.told && (credit-s.told >= s.limit/4 || s.stored == *s.consumed) {
		s.answer(x)
	}
}

// answer sends what is granted and what is stored.
func (s *Synchronous) answer(x *microproto.Exec) {
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		if s.late = true; s.timer == 0 {
			s.timer = microproto.RaiseAfter(x, grantLater, time.Millisecond, s)
		}
		return
	}
	// Should an earlier answer still wait somewhere, it now tells more, which is true.
	binary.BigEndian.PutUint64(s.told8[:], s.arrivals)
	m.Payload = s.told8[:]
	s.total.Set(m, answerBytes) // a whole message, to Resize
	s.tag.Set(m, grantTag)
	s.told, s.answered, s.late = *s.consumed+s.limit, s.arrivals, false
	s.label.Set(m, s.told)
	if s.timer != 0 {
		x.Cancel(s.timer)
		s.timer = 0
	}
	x.Forward(m)
}

// lost: a link that was trusted to be reliable had no room, and nobody keeps the
// segment. Going on would lose a message without a word.
func (s *Synchronous) lost(x *microproto.Exec, _ *microproto.Message) {
	x.Fail(fmt.Errorf("%w: no room for a segment below; outputs must be drained after each call", ErrLink))
}
