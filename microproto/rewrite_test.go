package microproto_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// mirror reverses payloads and appends a byte with their length. It drops segments whose length
// does not fit the byte.
type mirror struct {
	number microproto.Attr[uint16]
	next   uint16
}

func (*mirror) Name() string { return "Mirror" }
func (r *mirror) Attach(b *binder) error {
	b.TakesTrains()
	r.number = microproto.SteppedAttr[uint16](b, "mirror.number", microproto.StepSegments)
	microproto.Bind(b, microproto.MessageFromUser, microproto.Normal, func(x *exec, m *message) {
		r.number.Set(m, r.next)
		r.next += uint16(m.Segments())
		if err := x.TransmitWith(m, 1, func(_ int, dst, _, payload []byte) {
			for i, c := range payload {
				dst[len(payload)-1-i] = c
			}
			dst[len(payload)] = byte(len(payload))
		}); err != nil {
			x.Drop(m, "link")
			return
		}
		x.Done(m)
	})
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Normal, func(x *exec, m *message) {
		left := x.Rewrite(m, func(i int, dst, header, payload []byte) int {
			n := len(payload) - 1
			if n < 0 || int(payload[n]) != n || len(header) != 2 {
				return -1
			}
			for i, c := range payload[:n] {
				dst[n-1-i] = c
			}
			return n
		})
		switch {
		case left < 0:
			x.Drop(m, "memory")
		case left == 0:
			x.Drop(m, "length")
		default:
			x.Deliver(m)
		}
	})
	return nil
}

func reversed(b []byte) string {
	b = bytes.Clone(b)
	slices.Reverse(b)
	return string(b)
}

func mirrored(t *testing.T, train int) (*microproto.Composite, *mptest.Frames) {
	t.Helper()
	mem := &mptest.Frames{}
	c, err := microproto.NewComposite(microproto.Config{Name: "m", MTU: 50, Train: train, Frames: mem}, &mirror{})
	require.NoError(t, err)
	require.NoError(t, c.Open(0))
	return c, mem
}

// Rewriting a train changes each of its segments as if it were alone, and the frames are the same.
func TestRewriting(t *testing.T) {
	text := []byte("every good boy does fine, always")
	var want []byte
	for _, train := range []int{0, 4096} {
		c, mem := mirrored(t, train)
		f := microproto.NewBuffer(bytes.Clone(text), nil).Frame(0, 0, len(text))
		f.Segment = 10
		require.NoError(t, c.SubmitFrame(0, f))
		var wire []byte
		for _, o := range c.Drain(nil) {
			if train > 0 {
				require.Equal(t, 13, o.Frame.Segment)
			}
			wire = append(wire, o.Frame.Data...)
			o.Frame.Release()
		}
		require.Len(t, wire, len(text)+4*3)
		require.Equal(t, "\x00\x00"+reversed(text[:10])+"\x0a", string(wire[:13]))
		if want == nil {
			want = bytes.Clone(wire)
		}
		require.Equal(t, want, wire)

		wire[13+12]++ // the second frame's length
		g := microproto.NewBuffer(wire, nil).Frame(3, 0, len(wire))
		g.Segment = 13
		if train == 0 {
			g.Pieces(func(p microproto.Frame) { require.NoError(t, c.Input(0, p)) })
		} else {
			require.NoError(t, c.Input(0, g))
		}
		got := ""
		for _, o := range c.Drain(nil) {
			up := c.RecycleFrame(o.Message)
			require.EqualValues(t, 3, up.Peer)
			got += string(up.Data)
			up.Release()
		}
		require.Equal(t, string(text[:10])+string(text[20:]), got)
		n := c.Counters()
		require.True(t, n.Balanced(), "%+v", n)
		require.Zero(t, n.Live)
		require.Equal(t, mem.Acquired, mem.Released)
	}
}

func TestRewritingWithoutMemory(t *testing.T) {
	c, mem := mirrored(t, 4096)
	mem.Limit = 1
	held := mem.Acquire(10)
	f := microproto.NewBuffer(make([]byte, 30), nil).Frame(0, 0, 30)
	require.NoError(t, c.SubmitFrame(0, f))
	require.Empty(t, c.Drain(nil))
	require.NoError(t, c.Input(0, microproto.NewBuffer(make([]byte, 30), nil).Frame(1, 0, 30)))
	require.Empty(t, c.Drain(nil))
	held.Release()
	require.Equal(t, []microproto.Drops{{Reason: "link", Count: 1}, {Reason: "memory", Count: 1}}, c.Counters().Drops)
	f = microproto.NewBuffer(make([]byte, 49), nil).Frame(0, 0, 49)
	require.NoError(t, c.SubmitFrame(0, f), "longer than the MTU")
	require.Empty(t, c.Drain(nil))
}
