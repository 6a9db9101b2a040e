package microproto_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// labels is a micro-protocol that writes its letter and a number to its header, and drops segments
// without the letter.
func labels(letter byte) *proto {
	return of("labels", func(b *binder) {
		f := b.Header(3)
		n := uint16(0)
		microproto.Bind(b, microproto.SegmentFromUser, 0, func(_ *exec, m *message) {
			n++
			h := f.Bytes(m)
			h[0] = letter
			binary.BigEndian.PutUint16(h[1:], n)
		})
		microproto.Bind(b, microproto.SegmentFromNet, 0, func(x *exec, m *message) {
			if f.Bytes(m)[0] != letter {
				x.Drop(m, "letter")
			}
		})
	})
}

// layers are composites that stand on one another: the frames of one are the messages of
// the next, as where frames are protected.
type layers []*microproto.Composite

func layered(t *testing.T, depth, headroom int, frames *mptest.Frames) (s layers) {
	t.Helper()
	for i := range depth {
		c, err := microproto.NewComposite(microproto.Config{
			Name: fmt.Sprintf("layer%d", i), MTU: 100 + 3*i, Headroom: headroom, Frames: frames,
		}, mptest.Top(), labels('A'+byte(i)), mptest.Bottom(nil))
		require.NoError(t, err)
		require.NoError(t, c.Open(0))
		s = append(s, c)
	}
	return s
}

func (s layers) submit(t *testing.T, payload []byte) []microproto.Output {
	m, err := s[0].Message()
	require.NoError(t, err)
	m.Payload = payload
	require.NoError(t, s[0].Submit(0, m))
	return s.down(t)
}

// down passes the frames of each composite to the one below and returns those of the lowest.
func (s layers) down(t *testing.T) (out []microproto.Output) {
	for _, lower := range s[1:] {
		for _, o := range s[0].Drain(nil) {
			require.NoError(t, lower.SubmitFrame(0, o.Frame))
		}
		s = s[1:]
	}
	return s[0].Drain(nil)
}

// input passes a frame up through all composites and returns what the highest puts out.
func (s layers) input(t *testing.T, f microproto.Frame) []microproto.Output {
	low := s[len(s)-1]
	require.NoError(t, low.Input(0, f))
	out := low.Drain(nil)
	if len(s) == 1 {
		return out
	}
	var up []microproto.Output
	for _, o := range out {
		require.Equal(t, microproto.OutMessage, o.Kind)
		up = append(up, s[:len(s)-1].input(t, low.RecycleFrame(o.Message))...)
	}
	return up
}

// With headroom a lower composite writes its header in front of the upper frame, without
// it copies the frame.
func TestLayersUseHeadroom(t *testing.T) {
	for _, c := range []struct{ depth, headroom, frames int }{{1, 0, 1}, {2, 3, 1}, {3, 6, 1}, {2, 0, 2}, {3, 3, 2}} {
		t.Run(fmt.Sprintf("%d composites, headroom %d", c.depth, c.headroom), func(t *testing.T) {
			mem := &mptest.Frames{Headroom: c.headroom}
			s := layered(t, c.depth, c.headroom, mem)
			out := s.submit(t, []byte("payload"))
			require.Len(t, out, 1)
			want := "payload"
			for i := range c.depth {
				want = string([]byte{'A' + byte(i), 0, 1}) + want
			}
			require.Equal(t, want, string(out[0].Frame.Data))
			require.Equal(t, c.frames, mem.Acquired, "frames taken")
			out[0].Frame.Release()
			require.Equal(t, mem.Acquired, mem.Released)
		})
	}
}

// Frames are duplicated and corrupted on the way between two stacks of composites: damaged frames
// are dropped for one reason, and every message is accounted for.
func TestLayersTalk(t *testing.T) {
	var mem [2]*mptest.Frames
	var ends [2]layers
	for i := range ends {
		mem[i] = &mptest.Frames{Headroom: 16}
		ends[i] = layered(t, 3, 16, mem[i])
	}
	clock, received := mptest.NewClock(), 0
	link := mptest.NewLink(clock, 1, mptest.Faults{Delay: time.Millisecond, Duplicate: 0.2, Corrupt: 0.2})
	for i, e := range ends {
		link.Receive(i, func(f microproto.Frame) {
			for _, o := range e.input(t, f) {
				received++
				e[0].Recycle(o.Message)
			}
		})
	}
	for i := range 400 {
		for _, o := range ends[i%2].submit(t, bytes.Repeat([]byte{byte(i)}, 1+i%5)) {
			link.Send(i%2, o.Frame)
		}
	}
	for clock.Step() {
	}
	require.Greater(t, received, 300)
	letters := uint64(0)
	for i, e := range ends {
		for _, c := range e {
			require.NoError(t, c.Close(0))
			n := c.Counters()
			require.True(t, n.Balanced(), "%+v", n)
			require.Zero(t, n.Live)
			for _, d := range n.Drops {
				require.Equal(t, "letter", d.Reason)
				letters += d.Count
			}
		}
		require.Equal(t, mem[i].Acquired, mem[i].Released)
	}
	require.Positive(t, letters, "corrupted headers were noticed")
}

func TestTransmitAgainDoesNotTouchTheFrameInFlight(t *testing.T) {
	var number microproto.Attr[uint8]
	var kept *message
	config := microproto.Config{Name: "up", MTU: 50, Headroom: 8}
	upper, err := microproto.NewComposite(config, mptest.Top(), mptest.Bottom(nil))
	require.NoError(t, err)
	config = microproto.Config{Name: "down", MTU: 60}
	lower, err := microproto.NewComposite(config, mptest.Top(), of("p", func(b *binder) {
		number = microproto.WireAttr[uint8](b, "number")
		microproto.Bind(b, microproto.SegmentToNet, 0, func(x *exec, m *message) {
			kept = m
			number.Set(m, 1)
			require.NoError(t, x.Transmit(m))
		})
	}))
	require.NoError(t, err)
	require.NoError(t, upper.Open(0))
	require.NoError(t, lower.Open(0))
	first := layers{upper, lower}.submit(t, []byte("x"))
	require.NoError(t, lower.Do(0, func(x *exec) {
		number.Set(kept, 2)
		require.NoError(t, x.Transmit(kept))
	}))
	second := lower.Drain(nil)
	require.Equal(t, []byte{1, 'x'}, first[0].Frame.Data)
	require.Equal(t, []byte{2, 'x'}, second[0].Frame.Data)
}
