package microproto_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

// heap is a frame source that counts its frames.
type heap struct{ out int }

func (h *heap) Acquire(n int) microproto.Frame {
	h.out++
	return microproto.NewBuffer(make([]byte, n), func(*microproto.Buffer) { h.out-- }).Frame(0, 0, n)
}

// A frame with a Body equals the frame without it, as a whole and frame by frame.
func TestFrameWithBody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		header, unit := rapid.IntRange(1, 9).Draw(rt, "header"), rapid.IntRange(1, 30).Draw(rt, "unit")
		body := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(rt, "body")
		n := (len(body) + unit - 1) / unit
		h := &heap{}
		f := h.Acquire(n * header)
		f.Peer, f.Segment = 7, header+unit
		f.Mode, f.Value = microproto.ModeAsynchronous, 3
		f.Body, f.Header = body, header
		var flat []byte
		var each [][]byte
		for i := range n {
			for k := range header {
				f.Data[i*header+k] = byte(i)
			}
			one := append(bytes.Repeat([]byte{byte(i)}, header), body[i*unit:min((i+1)*unit, len(body))]...)
			flat, each = append(flat, one...), append(each, one)
		}
		require.Equal(rt, n, f.Count())
		require.Equal(rt, len(flat), f.Bytes())
		i := 0
		f.Retain().Pieces(func(p microproto.Frame) {
			require.Equal(rt, 1, p.Count())
			g := p.Flatten(h)
			require.Equal(rt, each[i], g.Data)
			require.Zero(rt, g.Segment)
			g.Release()
			i++
		})
		require.Equal(rt, n, i)
		g := f.Flatten(h)
		clear(body) // it is not read any more
		require.Equal(rt, flat, g.Data)
		require.Nil(rt, g.Body)
		require.Equal(rt, n, g.Count())
		require.Equal(rt, microproto.LinkAddr(7), g.Peer)
		require.Equal(rt, microproto.ModeAsynchronous, g.Mode)
		require.EqualValues(rt, 3, g.Value)
		g.Release()
		require.Zero(rt, h.out, "every frame was given back")
	})
}

// none is a frame source without memory.
type none struct{}

func (none) Acquire(int) microproto.Frame { return microproto.Frame{} }

func TestFlattenWithoutMemory(t *testing.T) {
	h := &heap{}
	f := h.Acquire(4)
	f.Body = []byte{1}
	f.Header, f.Segment = 4, 5
	require.Nil(t, f.Flatten(none{}).Data)
	require.Zero(t, h.out)
}
