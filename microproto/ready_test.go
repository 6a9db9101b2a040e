package microproto_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

// holder holds every segment that is ready, by the bits of mask, and keeps what it holds.
type holder struct {
	bits  [2]microproto.HoldBit
	mask  microproto.HoldBit
	ready int
	sent  []uint64
	data  []string // of what was sent
}

func (h *holder) Name() string { return "holder" }

func (h *holder) Attach(b *binder) error {
	h.bits = [2]microproto.HoldBit{b.HoldBit("one"), b.HoldBit("two")}
	microproto.Bind(b, microproto.SegmentReady, microproto.Normal, func(x *exec, m *message) {
		h.ready++
		if h.mask != 0 {
			x.Hold(m, h.mask)
		}
	})
	microproto.Bind(b, microproto.SegmentToNet, microproto.Normal, func(_ *exec, m *message) {
		h.sent = append(h.sent, m.ID())
		h.data = append(h.data, string(m.Payload))
	})
	return nil
}

// A model of one segment that is forwarded, sent again, held, released and ended in any order.
func TestHeldWhenReady(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &holder{}
		c := composite(t, microproto.Config{}, h)
		var m *message
		do(t, c, func(x *exec) {
			var err error
			m, err = x.NewMessage(microproto.Down)
			require.NoError(rt, err)
		})
		id := m.ID()
		forwarded, ended, waits := false, false, microproto.HoldBit(0)
		ready, sent := 0, 0
		try := func() {
			ready++
			if waits = h.mask; waits == 0 {
				sent++
			}
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			op := rapid.SampledFrom([]string{"forward", "resend", "release", "mask", "end"}).Draw(rt, "op")
			bit := rapid.IntRange(0, 1).Draw(rt, "bit")
			if ended && waits == 0 {
				break // the pointer is invalid
			}
			do(t, c, func(x *exec) {
				switch op {
				case "forward":
					if x.Forward(m); !forwarded && !ended {
						forwarded = true
						try()
					}
				case "resend":
					if x.Resend(m); forwarded && !ended && waits == 0 {
						try()
					}
				case "release":
					had := waits
					waits &^= h.bits[bit]
					require.Equal(rt, !ended, x.Release(m, h.bits[bit]))
					if had != 0 && waits == 0 && !ended {
						sent++
					}
				case "mask":
					h.mask ^= h.bits[bit]
				case "end":
					if !ended {
						ended = true
						x.Done(m)
					}
				}
			})
			require.Equal(rt, ready, h.ready)
			require.Len(rt, h.sent, sent)
			held := 0
			if waits != 0 && !ended {
				held = 1
			}
			n := c.Counters()
			require.Equal(rt, held, n.Held)
			require.True(rt, n.Balanced())
			// No other message gets the memory of one that is held.
			do(t, c, func(x *exec) {
				o, err := x.NewMessage(microproto.Down)
				require.NoError(rt, err)
				if waits != 0 || !ended {
					require.Equal(rt, id, m.ID())
				}
				x.Done(o)
			})
		}
	})
}

// A segment that another handler ends while it is held is not used for another message before its release.
func TestEndedInTheSameChain(t *testing.T) {
	h := &holder{}
	c := composite(t, microproto.Config{Limits: microproto.Limits{Messages: 4}}, h, of("ends", func(b *binder) {
		microproto.Bind(b, microproto.SegmentReady, microproto.Late, func(x *exec, m *message) { x.Drop(m, "test") })
	}))
	h.mask = h.bits[0]
	var m *message
	do(t, c, func(x *exec) {
		m, _ = x.NewMessage(microproto.Down)
		x.Forward(m)
		for range 3 {
			o, err := x.NewMessage(microproto.Down)
			require.NoError(t, err)
			require.NotSame(t, m, o)
		}
		_, err := x.NewMessage(microproto.Down)
		require.ErrorIs(t, err, microproto.ErrPool)
		require.False(t, x.Release(m, h.bits[0]))
		o, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		require.Same(t, m, o)
	})
	require.Empty(t, h.sent)
	require.True(t, c.Counters().Balanced())
}

func TestReplace(t *testing.T) {
	for _, c := range []struct {
		name     string
		held     bool
		own      bool
		payload  string
		replaced bool
	}{
		{"held, in memory of its own", true, true, "new", true},
		{"not held", false, true, "new", false},
		{"in memory of the user", true, false, "new", false},
		{"of another length", true, true, "newer", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &holder{}
			var number, other microproto.Attr[uint32]
			var told []uint64
			comp := composite(t, microproto.Config{}, h, of("p", func(b *binder) {
				number = microproto.WireAttr[uint32](b, "number")
				other = microproto.LocalAttr[uint32](b, "other")
				microproto.Bind(b, microproto.SegmentReplaced, 0, func(_ *exec, m *message) { told = append(told, m.ID()) })
			}))
			if c.held {
				h.mask = h.bits[0]
			}
			do(t, comp, func(x *exec) {
				old, _ := x.NewMessage(microproto.Down)
				old.Payload = []byte("old")
				number.Set(old, 1)
				if c.own {
					require.NoError(t, x.Own(old))
				}
				x.Forward(old)
				m, _ := x.NewMessage(microproto.Down)
				m.Payload = []byte(c.payload)
				number.Set(m, 2)
				other.Set(m, 7)
				require.Equal(t, c.replaced, x.Replace(old, m))
				if c.replaced {
					require.Equal(t, []uint64{old.ID()}, told)
					require.EqualValues(t, 2, number.Get(old))
					require.EqualValues(t, 7, other.Get(old))
				} else {
					require.Empty(t, told)
				}
				x.Release(old, h.bits[0])
			})
			want := "old"
			if c.replaced {
				want = "new"
			}
			require.Equal(t, []string{want}, h.data)
			n := comp.Counters()
			require.True(t, n.Balanced())
			require.Equal(t, c.replaced, n.Dropped == 1)
		})
	}
}

// Holding and sending again allocates nothing.
func TestReadyAllocatesNothing(t *testing.T) {
	h := &holder{sent: make([]uint64, 0, 1<<16), data: make([]string, 0, 1<<16)}
	c := composite(t, microproto.Config{}, h)
	h.mask = h.bits[0]
	var m *message
	do(t, c, func(x *exec) {
		m, _ = x.NewMessage(microproto.Down)
		x.Forward(m)
	})
	f := func(x *exec) {
		x.Release(m, h.bits[0])
	}
	again := func(x *exec) { x.Resend(m) }
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if c.Do(0, f) != nil || c.Do(0, again) != nil {
			panic("failed")
		}
	}))
	require.Greater(t, len(h.sent), 100)
}
