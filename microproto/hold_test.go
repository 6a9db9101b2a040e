package microproto_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// gate is a micro-protocol that holds messages as its test requires.
type gate struct {
	bits [2]microproto.HoldBit
}

func (g *gate) Name() string { return "gate" }

func (g *gate) Attach(b *binder) error {
	g.bits = [2]microproto.HoldBit{b.HoldBit("one"), b.HoldBit("two")}
	return nil
}

// TestHoldBits applies scripts of holds (h), releases (r), of bit 1 or 2, forwards (f) and ends
// (d) to a message. It must continue exactly once, when the last bit is cleared after a forward.
func TestHoldBits(t *testing.T) {
	for _, c := range []struct {
		script string
		went   int
		held   int
	}{
		{"f", 1, 0},
		{"f f", 1, 0},
		{"h1 f", 0, 1},
		{"h1 f r1", 1, 0},
		{"h1 h2 f r1", 0, 1},
		{"h1 h2 f r1 r2", 1, 0},
		{"h1 h2 r1 r2", 0, 0},
		{"h1 h2 r1 r2 f", 1, 0},
		{"h1 f r1 r1 f", 1, 0},
		{"h1 f r2", 0, 1},
		{"h1 f r1 h2", 0, 1}, // held again before its turn: waits for bit 2
		{"h1 f r1 h2 r2", 1, 0},
		{"h1 f d", 0, 0},
		{"h1 f r1 d", 0, 0}, // ended before its turn
		{"f h1", 1, 0},      // gone already
	} {
		for _, dir := range []microproto.Direction{microproto.Down, microproto.Up} {
			t.Run(c.script, func(t *testing.T) {
				went := 0
				g := &gate{}
				on := microproto.SegmentToNet
				if dir == microproto.Up {
					on = microproto.SegmentToUser
				}
				comp := composite(t, microproto.Config{}, g, of("p", func(b *binder) {
					microproto.Bind(b, on, 0, func(*exec, *message) { went++ })
				}))
				do(t, comp, func(x *exec) {
					m, err := x.NewMessage(dir)
					require.NoError(t, err)
					play(x, m, g, c.script)
				})
				n := comp.Counters()
				require.Equal(t, c.went, went)
				require.Equal(t, c.held, n.Held)
				require.True(t, n.Balanced())
			})
		}
	}
}

func play(x *exec, m *message, g *gate, script string) {
	for i := 0; i < len(script); i++ {
		bit := func() microproto.HoldBit { i++; return g.bits[script[i]-'1'] }
		switch script[i] {
		case 'h':
			x.Hold(m, bit())
		case 'r':
			x.Release(m, bit())
		case 'f':
			x.Forward(m)
		case 'd':
			x.Drop(m, "test")
		}
	}
}

// Released messages are transmitted in the order of their release, after the chain that released
// them.
func TestReleasedMessagesGoOnInTheirOrder(t *testing.T) {
	g := &gate{}
	var order []uint64
	comp := composite(t, microproto.Config{}, g, of("p", func(b *binder) {
		microproto.Bind(b, microproto.SegmentToNet, 0, func(x *exec, m *message) {
			order = append(order, m.ID())
			x.Done(m)
		})
	}))
	var ms []*message
	do(t, comp, func(x *exec) {
		for range 5 {
			m, err := x.NewMessage(microproto.Down)
			require.NoError(t, err)
			x.Hold(m, g.bits[0])
			x.Forward(m)
			ms = append(ms, m)
		}
	})
	do(t, comp, func(x *exec) {
		for _, i := range []int{0, 1, 3, 2, 4} {
			x.Release(ms[i], g.bits[0])
		}
		require.Empty(t, order, "after the current chain")
	})
	require.Equal(t, []uint64{1, 2, 4, 3, 5}, order)
	require.Zero(t, comp.Counters().Live)
}

// The golden transcript of a message through a small composite has every raise, handler, hold,
// release, halt, timer and frame.
func TestTranscript(t *testing.T) {
	script := mptest.NewTranscript("")
	script.Headers = true
	g := &gate{}
	config := microproto.Config{Name: "golden", MTU: 64, Tracer: script}
	c, err := microproto.NewComposite(config, mptest.Top(), g, of("numbers", func(b *binder) {
		number := microproto.WireAttr[uint16](b, "number")
		last := uint16(0)
		microproto.Bind(b, microproto.SegmentFromUser, microproto.Early, func(x *exec, m *message) {
			last++
			number.Set(m, last)
			if last > 1 {
				x.Hold(m, g.bits[0])
				microproto.RaiseAfter(x, microproto.SegmentTimeout, 5000, m)
			}
		})
		release := func(x *exec, m *message) { x.Release(m, g.bits[0]) }
		microproto.Bind(b, microproto.SegmentTimeout, microproto.Normal, release)
		microproto.Bind(b, microproto.SegmentFromNet, microproto.Normal, func(x *exec, m *message) {
			if number.Get(m) == 9 {
				x.Halt()
				x.Drop(m, "nine")
			}
		})
	}), mptest.Bottom(nil))
	require.NoError(t, err)
	steps := []struct {
		say string
		run func() error
	}{
		{"open", func() error { return c.Open(0) }},
		{"a message goes out", func() error { return submit(c, 1000, "one") }},
		{"the next is held", func() error { return submit(c, 2000, "two") }},
		{"until its time", func() error { return c.Advance(7000) }},
		{"a segment comes", func() error { return c.Input(8000, microproto.Frame{Data: []byte{0, 7, 'x'}}) }},
		{"one that is not wanted", func() error { return c.Input(9000, microproto.Frame{Data: []byte{0, 9, 'x'}}) }},
		{"one too short", func() error { return c.Input(9000, microproto.Frame{Data: []byte{0}}) }},
		{"close with one held", func() error {
			if err := submit(c, 9500, "three"); err != nil {
				return err
			}
			return c.Close(10000)
		}},
	}
	for _, s := range steps {
		script.Printf("# %s", s.say)
		require.NoError(t, s.run())
	}
	script.Printf("# %+v", c.Counters())
	mptest.Golden(t, "transcript.txt", script.String())
}

func submit(c *microproto.Composite, now microproto.Instant, payload string) error {
	m, err := c.Message()
	if err != nil {
		return err
	}
	m.Payload = []byte(payload)
	return c.Submit(now, m)
}
