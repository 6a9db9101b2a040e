package microproto_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// splitter numbers segments and offsets, and forwards each train split before segment k, the
// second part first.
type splitter struct {
	k      int
	number microproto.Attr[uint16]
	offset microproto.Attr[uint32]
	mark   microproto.Attr[uint8]
	bit    microproto.HoldBit
	err    error
}

func (*splitter) Name() string { return "Splitter" }

func (s *splitter) Attach(b *binder) error {
	b.TakesTrains()
	s.number = microproto.SteppedAttr[uint16](b, "number", microproto.StepSegments)
	s.offset = microproto.SteppedAttr[uint32](b, "offset", microproto.StepBytes)
	s.mark = microproto.LocalAttr[uint8](b, "mark")
	s.bit = b.HoldBit("Splitter")
	microproto.Bind(b, microproto.MessageFromUser, microproto.Normal, func(x *exec, m *message) {
		s.number.Set(m, 65535)
		s.mark.Set(m, 7)
		x.Hold(m, s.bit)
		x.Forward(m)
		var rest *message
		if rest, s.err = x.Split(m, s.k); s.err == nil {
			x.Release(rest, s.bit)
		}
		x.Release(m, s.bit)
	})
	microproto.Bind(b, microproto.SegmentToNet, microproto.Normal, func(x *exec, m *message) {
		if s.mark.Get(m) != 7 || x.Transmit(m) != nil {
			x.Drop(m, "mark")
			return
		}
		x.Done(m)
	})
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Normal, func(x *exec, m *message) {
		rest, err := x.Split(m, s.k)
		if s.err = err; err == nil {
			x.Deliver(rest)
		}
		x.Deliver(m)
	})
	return nil
}

// A train split anywhere keeps the content of each segment, in both directions.
func TestSplit(t *testing.T) {
	text := []byte("every good boy does fine, always")
	for k := 1; k <= 3; k++ {
		mem := &mptest.Frames{}
		s := &splitter{k: k}
		c, err := microproto.NewComposite(microproto.Config{Name: "s", MTU: 50, Train: 4096, Frames: mem}, s)
		require.NoError(t, err)
		require.NoError(t, c.Open(0))
		f := microproto.NewBuffer(bytes.Clone(text), nil).Frame(0, 0, len(text))
		f.Segment = 10
		require.NoError(t, c.SubmitFrame(0, f))
		require.NoError(t, s.err)
		out := c.Drain(nil)
		require.Len(t, out, 2)
		require.Equal(t, 4-k, out[0].Frame.Count())
		var wire []byte
		for _, i := range []int{1, 0} {
			wire = append(wire, out[i].Frame.Data...)
			out[i].Frame.Release()
		}
		for i, at := range []int{0, 16, 32, 48} { // the numbers wrap
			n := uint16(65535 + i)
			require.Equal(t, []byte{byte(n >> 8), byte(n), 0, 0, 0, byte(10 * i)}, wire[at:at+6], "segment %d", i)
			require.Equal(t, text[10*i:min(10*i+10, len(text))], wire[at+6:min(at+16, len(wire))])
		}

		g := microproto.NewBuffer(wire, nil).Frame(3, 0, len(wire))
		g.Segment = 16
		require.NoError(t, c.Input(0, g))
		require.NoError(t, s.err)
		got := map[uint32]string{}
		for _, o := range c.Drain(nil) {
			m := o.Message
			for i := range m.Segments() {
				got[s.offset.Get(m)+uint32(10*i)] = string(m.Piece(i))
			}
			c.Recycle(m)
		}
		require.Equal(t, map[uint32]string{0: "every good", 10: " boy does ", 20: "fine, alwa", 30: "ys"}, got)
		n := c.Counters()
		require.True(t, n.Balanced() && n.Live == 0 && n.Held == 0, "%+v", n)
		require.Equal(t, mem.Acquired, mem.Released)
	}
}

// Without a message for the second part nothing changes. A split with an empty part is an error.
func TestSplitRefuses(t *testing.T) {
	for _, c := range []struct {
		k, messages int
		want        error
	}{{2, 1, microproto.ErrPool}, {4, 9, microproto.ErrMessage}, {0, 9, microproto.ErrMessage}} {
		s := &splitter{k: c.k}
		limits := microproto.Limits{Messages: c.messages}
		comp, err := microproto.NewComposite(microproto.Config{Name: "s", MTU: 50, Train: 4096, Limits: limits}, s)
		require.NoError(t, err)
		require.NoError(t, comp.Open(0))
		f := microproto.NewBuffer(make([]byte, 32), nil).Frame(0, 0, 32)
		f.Segment = 10
		_ = comp.SubmitFrame(0, f)
		require.ErrorIs(t, s.err, c.want)
		if c.want == microproto.ErrPool {
			require.Equal(t, 4, comp.Drain(nil)[0].Frame.Count())
		}
	}
}
