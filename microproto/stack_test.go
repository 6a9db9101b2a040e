package microproto_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// labels is a micro-protocol that writes its letter and a number into its header
// and refuses segments without the letter.
func labels(letter byte) *proto {
	return of("labels", func(b *binder) {
		f := b.Header(3)
		n := uint16(0)
		microproto.Bind(b, microproto.SegmentFromUser, 0, func(_ *exec, m *message) {
			n++
			h := f.Bytes(m)
			h[0], h[1], h[2] = letter, byte(n>>8), byte(n)
		})
		microproto.Bind(b, microproto.SegmentFromNet, 0, func(x *exec, m *message) {
			if f.Bytes(m)[0] != letter {
				x.Drop(m, "letter")
			}
		})
	})
}

func layered(t *testing.T, depth, headroom int, frames *mptest.Frames) *microproto.Stack {
	t.Helper()
	var layers []*microproto.Composite
	for i := range depth {
		c, err := microproto.NewComposite(microproto.Config{
			Name: fmt.Sprintf("layer%d", i), MTU: 100 + 3*i, Headroom: headroom, Frames: frames,
		}, mptest.Top(), labels('A'+byte(i)), mptest.Bottom(nil))
		require.NoError(t, err)
		layers = append(layers, c)
	}
	s, err := microproto.NewStack(layers[0], layers[1:]...)
	require.NoError(t, err)
	return s
}

// TestStacks sends through two and three composites: with headroom the lower ones
// write their headers in front of the upper frame, without it they copy.
func TestStacks(t *testing.T) {
	for _, c := range []struct{ depth, headroom, frames int }{{1, 0, 1}, {2, 3, 1}, {3, 6, 1}, {2, 0, 2}, {3, 3, 2}} {
		t.Run(fmt.Sprintf("%d composites, headroom %d", c.depth, c.headroom), func(t *testing.T) {
			mem := &mptest.Frames{Headroom: c.headroom}
			s := layered(t, c.depth, c.headroom, mem)
			require.NoError(t, s.Open(0))
			m, err := s.Message()
			require.NoError(t, err)
			m.Payload = []byte("payload")
			require.NoError(t, s.Submit(0, m))
			out := s.Drain(nil)
			require.Len(t, out, 1)
			want := "payload"
			for i := range c.depth {
				want = string([]byte{'A' + byte(i), 0, 1}) + want
			}
			require.Equal(t, want, string(out[0].Frame.Data))
			require.Equal(t, c.frames, mem.Acquired, "frames taken")
			out[0].Frame.Release()
			require.Equal(t, mem.Acquired, mem.Released)
			require.NoError(t, s.Close(0))
		})
	}
}

func TestStacksTalk(t *testing.T) {
	var mem [2]*mptest.Frames
	var ends [2]*microproto.Stack
	for i := range ends {
		mem[i] = &mptest.Frames{Headroom: 16}
		ends[i] = layered(t, 3, 16, mem[i])
	}
	p := mptest.NewPair(ends[0], ends[1], 1, mptest.Faults{Delay: time.Millisecond, Duplicate: 0.2, Corrupt: 0.2})
	require.NoError(t, p.Open())
	for i := range 400 {
		require.NoError(t, p.Send(i%2, bytes.Repeat([]byte{byte(i)}, 1+i%5)))
	}
	quiet, err := p.Run(time.Second)
	require.NoError(t, err)
	require.True(t, quiet)
	require.Greater(t, len(p.Received[0])+len(p.Received[1]), 300)
	require.NoError(t, p.Close())
	letters := uint64(0)
	for i, e := range ends {
		for _, c := range e.Layers() {
			n := c.Counters()
			require.True(t, n.Balanced(), "%s: %+v", c.Name(), n)
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

func TestStacksThatDoNotFit(t *testing.T) {
	c := func(name string, mtu int) *microproto.Composite {
		c, err := microproto.NewComposite(microproto.Config{Name: name, MTU: mtu}, mptest.Top(), labels('x'), mptest.Bottom(nil))
		require.NoError(t, err)
		return c
	}
	_, err := microproto.NewStack(c("up", 98), c("down", 100))
	require.ErrorContains(t, err, "the MTU of composite up is 98; composite down below takes payloads of 97 bytes")
	both := c("both", 100)
	_, err = microproto.NewStack(both, both)
	require.ErrorContains(t, err, "twice")
}

func TestTransmitAgainDoesNotTouchTheFrameInFlight(t *testing.T) {
	var number microproto.Attr[uint8]
	var kept *message
	upper, err := microproto.NewComposite(microproto.Config{Name: "up", MTU: 50, Headroom: 8}, mptest.Top(), mptest.Bottom(nil))
	require.NoError(t, err)
	lower, err := microproto.NewComposite(microproto.Config{Name: "down", MTU: 60}, mptest.Top(), of("p", func(b *binder) {
		number = microproto.WireAttr[uint8](b, "number")
		microproto.Bind(b, microproto.SegmentToNet, 0, func(x *exec, m *message) {
			kept = m
			number.Set(m, 1)
			require.NoError(t, x.Transmit(m))
		})
	}))
	require.NoError(t, err)
	s, err := microproto.NewStack(upper, lower)
	require.NoError(t, err)
	require.NoError(t, s.Open(0))
	m, err := s.Message()
	require.NoError(t, err)
	m.Payload = []byte("x")
	require.NoError(t, s.Submit(0, m))
	first := s.Drain(nil)
	require.NoError(t, lower.Do(0, func(x *exec) {
		number.Set(kept, 2)
		require.NoError(t, x.Transmit(kept))
	}))
	second := lower.Drain(nil)
	require.Equal(t, []byte{1, 'x'}, first[0].Frame.Data)
	require.Equal(t, []byte{2, 'x'}, second[0].Frame.Data)
}

func TestCatalog(t *testing.T) {
	c := microproto.NewCatalog()
	make1 := func(name string) microproto.Constructor {
		return func(o microproto.Options) (microproto.MicroProtocol, error) {
			if o["bad"] != 0 {
				return nil, fmt.Errorf("bad is %d", o["bad"])
			}
			return of(name, func(*binder) {}), nil
		}
	}
	require.NoError(t, c.Add("b", make1("b")))
	require.NoError(t, c.Add("a", make1("a")))
	require.ErrorContains(t, c.Add("a", make1("a")), "already")
	require.Error(t, c.Add("", make1("")))
	require.NoError(t, c.Add("liar", make1("other")))
	require.Equal(t, []string{"a", "b", "liar"}, c.Names())
	require.True(t, c.Has("a"))
	require.False(t, c.Has("z"))
	mps, err := c.Build([]string{"b", "a"}, nil)
	require.NoError(t, err)
	require.Equal(t, "b", mps[0].Name())
	_, err = c.Build([]string{"z"}, nil)
	require.ErrorContains(t, err, `no micro-protocol "z" in the catalog (it lists ["a" "b" "liar"])`)
	_, err = c.Build([]string{"a"}, microproto.Options{"bad": 1})
	require.ErrorContains(t, err, "make a: bad is 1")
	_, err = c.Build([]string{"liar"}, nil)
	require.ErrorContains(t, err, `makes a micro-protocol named "other"`)
}
