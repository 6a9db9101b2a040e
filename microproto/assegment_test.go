package microproto_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// single passes on a user's message as a segment: the message itself, or a copy.
type single struct {
	hold   bool
	number microproto.Attr[uint16]
	local  microproto.Attr[uint16]
	bit    microproto.HoldBit

	same  []bool // results of AsSegment
	later int    // handlers that ran after it
	fired int    // timers of the user's messages
	made  []*message
	ids   []uint64
}

var singleTimer = microproto.NewEvent[*message]("single.timer")

func (*single) Name() string { return "single" }

func (s *single) Attach(b *binder) error {
	s.number = microproto.WireAttr[uint16](b, "number")
	s.local = microproto.LocalAttr[uint16](b, "local")
	s.bit = b.HoldBit("single")
	microproto.Bind(b, microproto.MessageFromUser, microproto.Early, func(x *exec, m *message) {
		s.number.Set(m, 7)
		s.local.Set(m, 7)
		microproto.RaiseAfter(x, singleTimer, time.Second, m)
		if s.hold {
			x.Hold(m, s.bit)
		}
	})
	microproto.Bind(b, microproto.MessageFromUser, microproto.Normal, s.segment)
	microproto.Bind(b, microproto.MessageFromUser, microproto.Late, func(*exec, *message) { s.later++ })
	microproto.Bind(b, singleTimer, microproto.Normal, func(*exec, *message) { s.fired++ })
	return nil
}

func (s *single) segment(x *exec, m *message) {
	same, p := x.AsSegment(m), m
	s.same = append(s.same, same)
	if !same {
		var err error
		if p, err = x.NewMessage(microproto.Down); err != nil {
			x.Drop(m, "pool")
			return
		}
		x.Share(p, m, m.Payload)
	}
	s.ids = append(s.ids, p.ID())
	s.number.Set(p, s.number.Get(p)+1)
	if s.local.Has(p) {
		s.number.Set(p, 99)
	}
	x.Hold(p, s.bit)
	x.Forward(p)
	s.made = append(s.made, p)
	if !same {
		x.Done(m)
	}
}

// A message that becomes its own segment leaves the same traces in counters, frames and timers as one
// that is replaced by a segment.
func TestAsSegment(t *testing.T) {
	run := func(s *single, c microproto.Config) ([]microproto.Output, microproto.Counters) {
		frames := &mptest.Frames{}
		c.Frames = frames
		end := composite(t, c, s, mptest.Bottom(nil))
		for range 3 {
			m, err := end.Message()
			require.NoError(t, err)
			m.Payload = []byte("value")
			require.NoError(t, end.Submit(0, m))
		}
		do(t, end, func(x *exec) {
			for _, p := range s.made {
				x.Release(p, s.bit)
			}
		})
		require.NoError(t, end.Advance(microproto.Instant(time.Minute)))
		require.Zero(t, s.later, "the chain of the user's message stops")
		require.Zero(t, s.fired, "the user's message has ended")
		require.Zero(t, frames.Acquired-frames.Released-3)
		n := end.Counters()
		require.True(t, n.Balanced())
		return end.Drain(nil), n
	}
	same, apart := &single{}, &single{}
	got, counters := run(same, microproto.Config{})
	want, wanted := run(apart, microproto.Config{Tracer: mptest.NewTraceHash()})
	require.Equal(t, []bool{true, true, true}, same.same)
	require.Equal(t, []bool{false, false, false}, apart.same, "a trace shows both messages")
	require.Equal(t, wanted, counters)
	require.Equal(t, apart.ids, same.ids)
	for i := range want {
		require.Equal(t, "\x00\x01value", string(got[i].Frame.Data))
		require.Equal(t, want[i].Frame.Data, got[i].Frame.Data)
	}

	held := &single{hold: true}
	_, counters = run(held, microproto.Config{})
	require.Equal(t, []bool{false, false, false}, held.same, "another handler has a claim on the message")
	require.Equal(t, wanted, counters)

	full := &single{}
	c := composite(t, microproto.Config{Limits: microproto.Limits{Messages: 1}}, full, mptest.Bottom(nil))
	m, err := c.Message()
	require.NoError(t, err)
	require.NoError(t, c.Submit(0, m))
	require.Equal(t, []bool{false}, full.same, "there is no message for the segment")
	require.EqualValues(t, 1, c.Counters().Dropped)
}
