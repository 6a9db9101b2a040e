package ether_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
)

// A train arrives with its bytes, each frame as a datagram of its own on the wire. The kernel
// segments and coalesces it where it can. Otherwise the link sends the frames one by one.
func TestTrains(t *testing.T) {
	const unit, count, last = 1200, 40, 77
	for _, c := range []struct {
		name  string
		from  ether.Config
		to    ether.Config
		whole bool
		body  bool
	}{
		{"offload", ether.Config{}, ether.Config{}, true, false},
		{"no coalescing", ether.Config{}, ether.Config{DisableGRO: true}, false, false},
		{"no segmentation", ether.Config{DisableGSO: true}, ether.Config{}, false, false},
		{"no batches", ether.Config{DisableBatch: true}, ether.Config{DisableBatch: true}, false, false},
		{"gathered", ether.Config{}, ether.Config{}, true, true},
		{"gathered, no segmentation", ether.Config{DisableGSO: true}, ether.Config{}, false, true},
		{"gathered, no batches", ether.Config{DisableBatch: true}, ether.Config{DisableBatch: true}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.from.Listen, c.to.Listen = "127.0.0.1", "127.0.0.1"
			a, b := open(t, c.from), open(t, c.to)
			toB, _ := join(t, a, b)
			if c.whole && (!a.Stats().GSO || !b.Stats().GRO) {
				t.Skip("the kernel has no UDP segmentation offload")
			}
			takesTrains := a.Caps(microproto.ModeSynchronous).Train > 0
			require.Equal(t, a.Stats().GSO, takesTrains, "trains are accepted where the kernel segments them")
			f := a.Acquire(unit*count + last)
			f.Peer, f.Segment = toB, unit
			for i := range f.Data {
				f.Data[i] = byte(i / unit)
			}
			want := bytes.Clone(f.Data)
			if c.body {
				f = split(f, 72)
			}
			send(t, a, []microproto.Frame{f})
			require.EqualValues(t, count+1, a.Stats().FramesSent)
			require.EqualValues(t, len(want), a.Stats().BytesSent)
			var got []byte
			batch, joined := make([]microproto.Frame, 4), 0
			for len(got) < len(want) {
				n, err := b.RecvTrains(batch)
				require.NoError(t, err)
				for i := range batch[:n] {
					if batch[i].Count() > 1 {
						require.Equal(t, unit, batch[i].Segment)
						joined++
					}
					got = append(got, batch[i].Data...)
					batch[i].Release()
				}
			}
			require.Equal(t, want, got)
			require.EqualValues(t, count+1, b.Stats().FramesReceived)
			if c.whole {
				require.Equal(t, 1, joined)
			}
			if c.from.DisableGSO || c.from.DisableBatch {
				require.Zero(t, a.Stats().SuperSent, "segmentation offload is disabled")
			}
		})
	}
}

// Recv splits a received train into frames.
func TestRecvSplitsTrains(t *testing.T) {
	c := ether.Config{Listen: "127.0.0.1"}
	a, b := open(t, c), open(t, c)
	toB, _ := join(t, a, b)
	f := a.Acquire(10 * 100)
	f.Peer, f.Segment = toB, 100
	send(t, a, []microproto.Frame{f})
	batch, got := make([]microproto.Frame, 3), 0
	for got < 10 {
		n, err := b.Recv(batch)
		require.NoError(t, err)
		for i := range batch[:n] {
			require.Equal(t, 1, batch[i].Count())
			require.Len(t, batch[i].Data, 100)
			batch[i].Release()
		}
		got += n
	}
	require.Equal(t, 10, got)
}

// split turns a train into one with a Body.
func split(f microproto.Frame, header int) microproto.Frame {
	g := microproto.Frame{Peer: f.Peer, Segment: f.Segment, Header: header, Body: []byte{}}
	for at := 0; at < len(f.Data); at += f.Segment {
		one := f.Data[at:min(at+f.Segment, len(f.Data))]
		g.Data, g.Body = append(g.Data, one[:header]...), append(g.Body, one[header:]...)
	}
	f.Release()
	return g
}

// Frames that need more vectors than one system call takes, in long trains and single frames, all
// arrive in order.
func TestMoreVectorsThanOneCallTakes(t *testing.T) {
	c := ether.Config{Listen: "127.0.0.1"}
	a, b := open(t, c), open(t, c)
	toB, _ := join(t, a, b)
	const unit, header, rounds = 200, 64, 24
	var frames []microproto.Frame
	var want []byte
	for i := range rounds {
		for _, n := range []int{60, 1} {
			f := a.Acquire(n * unit)
			f.Peer, f.Segment = toB, unit
			for k := range f.Data {
				f.Data[k] = byte(i + k)
			}
			want = append(want, f.Data...)
			frames = append(frames, split(f, header))
		}
	}
	send(t, a, frames)
	var got []byte
	batch := make([]microproto.Frame, 64)
	for len(got) < len(want) {
		n, err := b.RecvTrains(batch)
		require.NoError(t, err)
		for i := range batch[:n] {
			got = append(got, batch[i].Data...)
			batch[i].Release()
		}
	}
	require.True(t, bytes.Equal(want, got))
}
