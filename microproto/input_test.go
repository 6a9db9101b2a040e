package microproto_test

import (
	"testing"
	"testing/quick"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// FuzzInput passes frames of arbitrary bytes to two layers of composites: no composite fails, and
// every message is accounted for.
func FuzzInput(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte("B\x00\x01A\x00\x01payload"), uint8(13))
	f.Add([]byte("B\x00\x01A\x00B\x00\x01x"), uint8(5))
	f.Add([]byte("B\x00\x01short"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		mem := &mptest.Frames{}
		s := layered(t, 2, 0, mem)
		for len(data) > 0 {
			n := min(len(data), 1+int(cut)%64)
			fr := mem.Acquire(n)
			copy(fr.Data, data)
			data = data[n:]
			for _, o := range s.input(t, fr) {
				require.Equal(t, microproto.OutMessage, o.Kind)
				s[0].Recycle(o.Message)
			}
		}
		require.Equal(t, mem.Acquired, mem.Released)
		for _, c := range s {
			require.True(t, c.Counters().Balanced())
			require.Zero(t, c.Counters().Live)
		}
	})
}

func TestAttributesKeepTheirValues(t *testing.T) {
	var (
		u8       microproto.Attr[uint8]
		u16      microproto.Attr[uint16]
		u32      microproto.Attr[uint32]
		u64      microproto.Attr[uint64]
		i32, l32 microproto.Attr[int32]
		i64, l64 microproto.Attr[int64]
	)
	c := composite(t, microproto.Config{}, of("p", func(b *binder) {
		u8, u16 = microproto.WireAttr[uint8](b, "u8"), microproto.WireAttr[uint16](b, "u16")
		u32, u64 = microproto.WireAttr[uint32](b, "u32"), microproto.WireAttr[uint64](b, "u64")
		i32, i64 = microproto.WireAttr[int32](b, "i32"), microproto.WireAttr[int64](b, "i64")
		l32, l64 = microproto.LocalAttr[int32](b, "l32"), microproto.LocalAttr[int64](b, "l64")
	}))
	require.Equal(t, 1+2+4+8+4+8, c.HeaderBytes())
	do(t, c, func(x *exec) {
		m, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		require.NoError(t, quick.Check(func(a uint8, b uint16, c uint32, d uint64, e int32, f int64) bool {
			u8.Set(m, a)
			u16.Set(m, b)
			u32.Set(m, c)
			u64.Set(m, d)
			i32.Set(m, e)
			i64.Set(m, f)
			l32.Set(m, e)
			l64.Set(m, f)
			return u8.Get(m) == a && u16.Get(m) == b && u32.Get(m) == c && u64.Get(m) == d &&
				i32.Get(m) == e && i64.Get(m) == f && l32.Get(m) == e && l64.Get(m) == f
		}, nil))
	})
}

func TestAMessageUsedAgainIsAsNew(t *testing.T) {
	var wire, local microproto.Attr[uint32]
	c := composite(t, microproto.Config{}, &gate{}, of("p", func(b *binder) {
		wire, local = microproto.WireAttr[uint32](b, "wire"), microproto.LocalAttr[uint32](b, "local")
	}))
	do(t, c, func(x *exec) {
		first, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		wire.Set(first, 7)
		local.Set(first, 7)
		x.Hold(first, 1)
		first.Payload = []byte("x")
		id := first.ID()
		x.Done(first)
		again, err := x.NewMessage(microproto.Up)
		require.NoError(t, err)
		require.Same(t, first, again)
		require.NotEqual(t, id, again.ID())
		require.Zero(t, wire.Get(again))
		require.False(t, local.Has(again))
		require.Zero(t, x.Held(again))
		require.Nil(t, again.Payload)
		require.Equal(t, microproto.Up, again.Direction())
	})
}

// A message is sent as a frame, and the frame is received as a message, through micro-protocols
// with timers, hold bits and attributes, without allocation.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	g := &gate{}
	var local microproto.Attr[uint64]
	pool := &reuse{}
	c := composite(t, microproto.Config{Frames: pool}, mptest.Top(), g, of("p", func(b *binder) {
		local = microproto.LocalAttr[uint64](b, "local")
		microproto.Bind(b, microproto.SegmentFromUser, 0, func(x *exec, m *message) {
			local.Set(m, m.ID())
			x.Hold(m, g.bits[0])
			id := microproto.RaiseAfter(x, microproto.SegmentTimeout, 1000, m)
			microproto.RaiseAfter(x, microproto.SegmentTimeout, 500, m)
			require.True(t, x.Cancel(id))
		})
		microproto.Bind(b, microproto.SegmentTimeout, 0, func(x *exec, m *message) { x.Release(m, g.bits[0]) })
	}), labels('L'), mptest.Bottom(nil))
	payload := make([]byte, 1000)
	var out []microproto.Output
	now := microproto.Instant(0)
	cycle := func() {
		m, err := c.Message()
		if err != nil {
			t.Fatal(err)
		}
		m.Payload = payload
		if c.Submit(now, m) != nil || c.Advance(now+500) != nil {
			t.Fatal("failed")
		}
		out = c.Drain(out[:0])
		frame := out[0].Frame
		if c.Input(now, frame) != nil {
			t.Fatal("failed")
		}
		out = c.Drain(out[:0])
		c.Recycle(out[0].Message)
		now += 1000
	}
	for range 100 {
		cycle()
	}
	require.Zero(t, testing.AllocsPerRun(500, cycle))
	require.Equal(t, 1, pool.made)
	require.True(t, c.Counters().Balanced())
}

// reuse is a FrameSource that reuses released buffers.
type reuse struct {
	free []*microproto.Buffer
	made int
}

func (r *reuse) Acquire(n int) microproto.Frame {
	if k := len(r.free); k > 0 {
		b := r.free[k-1]
		r.free = r.free[:k-1]
		return b.Frame(0, 0, n)
	}
	r.made++
	free := func(b *microproto.Buffer) { r.free = append(r.free, b) }
	return microproto.NewBuffer(make([]byte, 2048), free).Frame(0, 0, n)
}
