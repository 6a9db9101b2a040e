package microproto_test

import (
	"errors"
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

var again = microproto.NewEvent[int]("test.again")

func TestPastTheRaiseDepthTheCompositeFails(t *testing.T) {
	deepest := 0
	c := composite(t, microproto.Config{Limits: microproto.Limits{RaiseDepth: 5}}, of("p", func(b *binder) {
		microproto.Bind(b, again, 0, func(x *exec, n int) {
			deepest = n
			microproto.Raise(x, again, n+1)
		})
	}))
	err := c.Do(0, func(x *exec) { require.False(t, microproto.Raise(x, again, 1)) })
	require.ErrorIs(t, err, microproto.ErrLimit)
	require.ErrorContains(t, err, "test.again")
	require.ErrorContains(t, err, "by p")
	require.Equal(t, 5, deepest)
	require.Equal(t, err, c.Err())
	require.Equal(t, err, c.Input(0, microproto.Frame{}), "every later entry point says the same")
	require.Equal(t, microproto.Never, c.Deadline())
}

func TestPastTheQueueTheCompositeFails(t *testing.T) {
	c := composite(t, microproto.Config{Limits: microproto.Limits{Queue: 3}}, of("p", func(b *binder) {
		microproto.Bind(b, again, 0, func(*exec, int) {})
	}))
	do(t, c, func(x *exec) {
		for range 3 {
			microproto.Enqueue(x, again, 1)
		}
	})
	require.ErrorIs(t, c.Do(0, func(x *exec) {
		for range 4 {
			microproto.Enqueue(x, again, 1)
		}
	}), microproto.ErrLimit)
}

func TestEventsThatEnqueueEachOtherEndTheComposite(t *testing.T) {
	c := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, again, 0, func(x *exec, n int) { microproto.Enqueue(x, again, n) })
	}))
	require.ErrorContains(t, c.Do(0, func(x *exec) { microproto.Enqueue(x, again, 1) }), "without end")
}

func TestPoolOutputsAndHandlersAreBounded(t *testing.T) {
	limits := microproto.Limits{Messages: 3, Outputs: 2}
	c := composite(t, microproto.Config{Limits: limits}, mptest.Top(), mptest.Bottom(nil))
	do(t, c, func(x *exec) {
		var ms []*message
		for range 3 {
			m, err := x.NewMessage(microproto.Down)
			require.NoError(t, err)
			ms = append(ms, m)
		}
		_, err := x.NewMessage(microproto.Down)
		require.ErrorIs(t, err, microproto.ErrPool)
		require.NoError(t, x.Transmit(ms[0]))
		require.NoError(t, x.Transmit(ms[0]), "again, as retransmission does")
		require.ErrorIs(t, x.Transmit(ms[1]), microproto.ErrBusy)
		x.Deliver(ms[2])
		x.Done(ms[0])
		x.Done(ms[1])
		b, err := microproto.BindNow(x, again, 0, func(*exec, int) {})
		for err == nil {
			_, err = microproto.BindNow(x, again, 0, func(*exec, int) {})
		}
		require.ErrorIs(t, err, microproto.ErrLimit)
		b.Unbind(x)
	})
	_, err := c.Message()
	require.NoError(t, err)
	n := c.Counters()
	require.Equal(t, []microproto.Drops{{Reason: "outputs", Count: 1}}, n.Drops)
	require.EqualValues(t, 1, n.TransmitsRefused)
	require.True(t, n.Balanced())
}

func TestDropReasonsAreBounded(t *testing.T) {
	c := composite(t, microproto.Config{}, of("p", func(*binder) {}))
	do(t, c, func(x *exec) {
		for i := range 300 {
			m, err := x.NewMessage(microproto.Up)
			require.NoError(t, err)
			x.Drop(m, string(rune('a'+i)))
		}
	})
	n := c.Counters()
	require.Len(t, n.Drops, 64)
	require.True(t, n.Balanced())
	require.IsIncreasing(t, reasons(n))
	require.Zero(t, testing.AllocsPerRun(100, func() { n = c.Counters() }), "the path monitor reads them all the time")
}

func reasons(n microproto.Counters) (out []string) {
	for _, d := range n.Drops {
		out = append(out, d.Reason)
	}
	return out
}

func TestDeclarationsAreChecked(t *testing.T) {
	attr := func(name string) *proto {
		return of("declares "+name, func(b *binder) { microproto.WireAttr[uint16](b, name) })
	}
	type mps []microproto.MicroProtocol
	p := func(attach func(b *binder)) *proto { return of("p", attach) }
	q := func(attach func(b *binder)) *proto { return of("q", attach) }
	declareInt := func(b *binder) { microproto.DeclareCell(b, "rto", 1) }
	for _, c := range []struct {
		name string
		mps  mps
		want string
	}{
		{
			"an attribute twice",
			mps{attr("seq"), q(func(b *binder) { microproto.LocalAttr[uint8](b, "seq") })},
			`attribute "seq" is declared twice, by declares seq and q`,
		},
		{"a name twice", mps{p(func(*binder) {}), p(func(*binder) {})}, `"p" cannot be attached`},
		{"a header too long", mps{p(func(b *binder) { b.Header(200); b.Header(57) })}, "257 bytes of 256"},
		{"a negative header", mps{p(func(b *binder) { b.Header(-1) })}, "-1 header bytes"},
		{
			"a cell of two types",
			mps{p(declareInt), q(func(b *binder) { microproto.LookupCell[float64](b, "rto") })},
			`cell "rto" holds int (declared by p), not float64`,
		},
		{
			"a cell of two types that may be missing",
			mps{p(declareInt), q(func(b *binder) { microproto.TryCell[float64](b, "rto") })},
			`cell "rto" holds int (declared by p), not float64`,
		},
		{"a cell twice", mps{p(declareInt), q(declareInt)}, `declared twice, by p and q`},
		{
			"a missing attribute",
			mps{p(func(b *binder) { microproto.LookupAttr[uint32](b, "seq") })}, `p needs attribute "seq"`,
		},
		{
			"an attribute of another type",
			mps{attr("seq"), p(func(b *binder) { microproto.LookupAttr[uint32](b, "seq") })}, "holds uint16",
		},
		{"a missing cell", mps{p(func(b *binder) { microproto.LookupCell[int](b, "cwnd") })}, `p needs cell "cwnd"`},
		{"too many hold bits", mps{of("p", func(b *binder) {
			for range 33 {
				b.HoldBit("h")
			}
		})}, "all 32 are taken"},
		{"too many local attributes", mps{of("p", func(b *binder) {
			for i := range 33 {
				microproto.LocalAttr[uint8](b, string(rune('a'+i)))
			}
		})}, "all 32 are taken"},
		{"no handler", mps{p(func(b *binder) { microproto.Bind(b, again, 0, nil) })}, "no handler"},
		{
			"its own error",
			mps{&proto{"p", func(*binder) error { return errors.New("not today") }}}, "attach p: not today",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := microproto.NewComposite(microproto.Config{Name: "bad", MTU: 1500}, c.mps...)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "composite bad")
		})
	}
	negative := microproto.Limits{Queue: -1}
	for _, c := range []microproto.Config{{}, {MTU: 10, Headroom: -1}, {MTU: 10, Limits: negative}} {
		_, err := microproto.NewComposite(c)
		require.Error(t, err)
	}
	_, err := microproto.NewComposite(microproto.Config{MTU: 3}, of("p", func(b *binder) { b.Header(4) }))
	require.ErrorIs(t, err, microproto.ErrTooLong)
}

func TestMessagesAreNotUsedAfterTheirEnd(t *testing.T) {
	for name, misuse := range map[string]func(x *exec, m *message){
		"done":     func(x *exec, m *message) { x.Done(m) },
		"drop":     func(x *exec, m *message) { x.Drop(m, "again") },
		"deliver":  func(x *exec, m *message) { x.Deliver(m) },
		"transmit": func(x *exec, m *message) { require.ErrorIs(t, x.Transmit(m), microproto.ErrMessage) },
	} {
		c := composite(t, microproto.Config{}, of("p", func(*binder) {}))
		err := c.Do(0, func(x *exec) {
			m, err := x.NewMessage(microproto.Down)
			require.NoError(t, err)
			x.Done(m)
			misuse(x, m)
		})
		require.ErrorIs(t, err, microproto.ErrMessage, name)
		require.True(t, c.Counters().Balanced(), name)
	}
}

func TestAChainEndsWithItsMessage(t *testing.T) {
	ran := 0
	c := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, microproto.SegmentAcked, 0, func(x *exec, m *message) { x.Done(m) })
		microproto.Bind(b, microproto.SegmentAcked, 1, func(*exec, *message) { ran++ })
	}))
	do(t, c, func(x *exec) {
		m, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		require.False(t, microproto.Raise(x, microproto.SegmentAcked, m))
	})
	require.Zero(t, ran)
	require.Zero(t, c.Counters().Live)
}

// A message that ends in a nested chain is not reused before the outer chain has ended.
func TestAMessageStaysWhileAChainCarriesIt(t *testing.T) {
	c := composite(t, microproto.Config{}, of("p", func(b *binder) {
		microproto.Bind(b, microproto.SegmentAcked, 0, func(x *exec, m *message) { x.Done(m) })
		microproto.Bind(b, microproto.SegmentFromUser, 0, func(x *exec, m *message) {
			microproto.Raise(x, microproto.SegmentAcked, m)
			other, err := x.NewMessage(microproto.Down)
			require.NoError(t, err)
			require.NotSame(t, m, other)
			x.Done(other)
		})
	}))
	do(t, c, func(x *exec) {
		m, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		microproto.Raise(x, microproto.SegmentFromUser, m)
	})
	require.Zero(t, c.Counters().Live)
}

func TestEntryPointsAreNotReentrant(t *testing.T) {
	c := composite(t, microproto.Config{}, of("p", func(*binder) {}))
	do(t, c, func(*exec) {
		require.ErrorIs(t, c.Advance(0), microproto.ErrReentrant)
		require.ErrorIs(t, c.Input(0, microproto.Frame{}), microproto.ErrReentrant)
		require.ErrorIs(t, c.Do(0, func(*exec) {}), microproto.ErrReentrant)
		require.ErrorIs(t, c.Close(0), microproto.ErrReentrant)
	})
	fresh, err := microproto.NewComposite(microproto.Config{Name: "fresh", MTU: 100})
	require.NoError(t, err)
	require.ErrorIs(t, submit(fresh, 0, "x"), microproto.ErrNotOpen)
	require.ErrorIs(t, fresh.Input(0, microproto.Frame{Data: []byte{1}}), microproto.ErrNotOpen)
	require.NoError(t, fresh.Open(0))
	require.Error(t, fresh.Open(0))
	require.NoError(t, fresh.Close(0))
	require.NoError(t, fresh.Close(0))
	require.ErrorIs(t, fresh.Input(0, microproto.Frame{Data: []byte{1}}), microproto.ErrNotOpen)
	require.True(t, fresh.Counters().Balanced())
}

// A cell that may be missing is nil where no micro-protocol above declares it.
func TestTryCell(t *testing.T) {
	var found, missing *int
	try := of("q", func(b *binder) {
		found, missing = microproto.TryCell[int](b, "rto"), microproto.TryCell[int](b, "cwnd")
	})
	_, err := microproto.NewComposite(microproto.Config{Name: "c", MTU: 500}, of("p", func(b *binder) { microproto.DeclareCell(b, "rto", 3) }), try)
	require.NoError(t, err)
	require.NotNil(t, found)
	require.Nil(t, missing)
}
