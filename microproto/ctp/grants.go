package ctp

import (
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Without PositiveAck, in the InfiniBand columns, Synchronous grants the bytes of
// its queue itself, in empty segments of a tag of their own, labelled with the bytes
// granted in all. The link is reliable and ordered there, so that none is lost and
// each is larger than the last. The first grant is OptionPeerReceive, known to both.

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
		s.offer(x)
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
	switch {
	case s.tag.Get(m) != grantTag:
	case len(m.Payload) != 0:
		x.Drop(m, "malformed grant")
	default:
		*s.grant = max(*s.grant, s.label.Get(m))
		x.Done(m)
	}
}

// offer tells the other end what has become free: when that is a quarter of the
// queue, and when the queue is empty, so that a message of the queue's size can
// always go at last.
func (s *Synchronous) offer(x *microproto.Exec) {
	credit := *s.consumed + s.limit
	if !s.own || credit == s.told || credit-s.told < s.limit/4 && s.stored != *s.consumed {
		return
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		if s.timer == 0 {
			s.timer = microproto.RaiseAfter(x, grantLater, time.Millisecond, s)
		}
		return
	}
	s.tag.Set(m, grantTag)
	s.label.Set(m, credit)
	s.told = credit
	x.Forward(m)
}

// lost: a link that was trusted to be reliable had no room, and nobody keeps the
// segment. Going on would lose a message without a word.
func (s *Synchronous) lost(x *microproto.Exec, _ *microproto.Message) {
	x.Fail(fmt.Errorf("%w: no room for a segment below; outputs must be drained after each call", ErrLink))
}
