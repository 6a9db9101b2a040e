package ether_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
)

// roundTrip sends and receives frames from one goroutine: loopback delivers at once.
func roundTrip(t testing.TB, a, b *ether.Link, to microproto.LinkAddr, out, in []microproto.Frame, size int) {
	for i := range out {
		out[i] = a.Acquire(size)
		out[i].Peer = to
	}
	if n, err := a.Send(out); n != len(out) || err != nil {
		t.Fatal(n, err)
	}
	for got := 0; got < len(out); {
		n, err := b.Recv(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in[:n] {
			in[i].Release()
		}
		got += n
	}
}

func TestNoAllocationPerFrame(t *testing.T) {
	for _, c := range []ether.Config{
		{Listen: "127.0.0.1"},
		{Listen: "127.0.0.1", DisableGSO: true},
		{Listen: "127.0.0.1", DisableGRO: true},
		{Listen: "127.0.0.1", DisableBatch: true},
	} {
		for _, size := range []int{100, 1400, 8900, 65507} {
			a, b := open(t, c), open(t, c)
			to, _ := join(t, a, b)
			out, in := make([]microproto.Frame, 20), make([]microproto.Frame, 64)
			roundTrip(t, a, b, to, out, in, size)
			n := testing.AllocsPerRun(100, func() { roundTrip(t, a, b, to, out, in, size) })
			require.Zero(t, n, "%+v, frames of %d bytes", c, size)
		}
	}
}

// Beyond the bound of memory received frames are dropped and counted. The link continues when
// frames are released.
func TestBoundedMemory(t *testing.T) {
	const large, small, sent = 32, 4, 200
	a := open(t, ether.Config{Listen: "127.0.0.1"})
	b := open(t, ether.Config{Listen: "127.0.0.1", BufferBytes: large<<16 + small<<11, DisableGRO: true})
	to, _ := join(t, a, b)
	post := func(size int) {
		f := a.Acquire(size)
		f.Peer = to
		send(t, a, []microproto.Frame{f})
	}
	for range sent {
		post(9000)
	}
	post(4) // fits into what the large ones leave
	var kept []microproto.Frame
	in := make([]microproto.Frame, 64)
	for len(kept) == 0 || len(kept[len(kept)-1].Data) != 4 {
		n, err := b.Recv(in)
		require.NoError(t, err)
		kept = append(kept, in[:n]...)
	}
	require.Len(t, kept, large+1)
	require.EqualValues(t, sent-large, b.Stats().NoBuffer)
	for i := range kept {
		kept[i].Release()
	}
	roundTrip(t, a, b, to, make([]microproto.Frame, 10), in, 9000)
	require.EqualValues(t, sent-large, b.Stats().NoBuffer)
}

func BenchmarkExchange(b *testing.B) {
	for _, bench := range []struct {
		name   string
		config ether.Config
		size   int
	}{
		{"gso+gro/1472", ether.Config{Listen: "127.0.0.1", MTU: 1500}, 1472},
		{"mmsg/1472", ether.Config{Listen: "127.0.0.1", MTU: 1500, DisableGSO: true, DisableGRO: true}, 1472},
		{"plain/1472", ether.Config{Listen: "127.0.0.1", MTU: 1500, DisableBatch: true}, 1472},
		{"gso+gro/65507", ether.Config{Listen: "127.0.0.1"}, 65507},
	} {
		b.Run(bench.name, func(b *testing.B) {
			x, y := open(b, bench.config), open(b, bench.config)
			to, _ := join(b, x, y)
			out, in := make([]microproto.Frame, 44), make([]microproto.Frame, 64)
			b.SetBytes(int64(len(out) * bench.size))
			b.ReportAllocs()
			for b.Loop() {
				roundTrip(b, x, y, to, out, in, bench.size)
			}
		})
	}
}
