package ctp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// datagrams is reused memory for frames of any length.
type datagrams struct{ free []*microproto.Buffer }

func (f *datagrams) Acquire(n int) microproto.Frame {
	if len(f.free) == 0 {
		f.free = append(f.free, microproto.NewBuffer(make([]byte, 65536),
			func(b *microproto.Buffer) { f.free = append(f.free, b) }))
	}
	b := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	return b.Frame(0, 0, n)
}

// BenchmarkMessage measures a message from Send to Receive through both ends of the synchronous
// column within a cluster, with its acknowledgement and copies, without a link: in trains, and
// segment by segment.
func BenchmarkMessage(b *testing.B) {
	for _, train := range []int{trainBytes, 0} {
		for _, size := range []int{8, 8 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("train=%d/bytes=%d", train, size), func(b *testing.B) { message(b, train, size) })
		}
	}
}

func message(b *testing.B, train, size int) {
	var ends [2]*microproto.Composite
	for i := range ends {
		c, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: 1472, Train: train, Frames: &datagrams{}},
			build(b, syncEther, nil)...)
		require.NoError(b, err)
		require.NoError(b, c.Open(0))
		ends[i] = c
	}
	data, dst := make([]byte, size), make([]byte, size)
	label, now := uint64(0), microproto.Instant(1)
	var outs [2][]microproto.Output
	send := func(x *microproto.Exec) { _, _ = ends[0].Endpoint().Send(x, tag, label, data) }
	receive := func(x *microproto.Exec) { _, _ = ends[1].Endpoint().Receive(x, tag, dst, nil) }
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		now += 1000
		label++
		_ = ends[0].Do(now, send)
		for ends[0].Endpoint().Accepted() < label {
			for i, c := range ends {
				outs[i] = c.Drain(outs[i][:0])
				for _, o := range outs[i] {
					_ = ends[1-i].Input(now, o.Frame)
				}
				_ = c.Advance(now)
			}
		}
		_ = ends[1].Do(now, receive)
	}
	segments := (size + ends[0].MaxPayload() - 1) / ends[0].MaxPayload()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*segments), "ns/segment-side")
}
