package seal

import (
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
)

// ring is memory for frames without allocation.
type ring struct{ buffers []*microproto.Buffer }

func newRing(n int) *ring {
	r := &ring{}
	for range n {
		r.buffers = append(r.buffers, microproto.NewBuffer(make([]byte, 2048), nil))
	}
	return r
}

// BenchmarkSeal measures the sealing of an Ethernet frame, including the composite.
// BenchmarkSealAndOpen measures both ends on one processor.
func BenchmarkSeal(b *testing.B) {
	e, _ := newPair(b)
	r := newRing(64)
	b.SetBytes(1400)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f := r.buffers[i%64].Frame(0, room, 1400+TagBytes)
		if e.c.SubmitFrame(0, f.Slice(0, 1400)) != nil {
			b.Fatal("not sealed")
		}
		e.out = e.c.Drain(e.out[:0])
		e.out[0].Frame.Release()
	}
}

func BenchmarkSealAndOpen(b *testing.B) {
	from, to := newPair(b)
	r := newRing(64)
	b.SetBytes(1400)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f := r.buffers[i%64].Frame(0, room, 1400+TagBytes)
		if from.c.SubmitFrame(0, f.Slice(0, 1400)) != nil {
			b.Fatal("not sealed")
		}
		from.out = from.c.Drain(from.out[:0])
		if to.c.Input(0, from.out[0].Frame) != nil {
			b.Fatal("not taken")
		}
		to.out = to.c.Drain(to.out[:0])
		up := to.c.RecycleFrame(to.out[0].Message)
		up.Release()
	}
}

// BenchmarkSmall measures both ends on one processor for a short frame: the latency that
// protection adds to a small message.
func BenchmarkSmall(b *testing.B) {
	from, to := newPair(b)
	r := newRing(64)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f := r.buffers[i%64].Frame(0, room, 64+TagBytes)
		if from.c.SubmitFrame(0, f.Slice(0, 64)) != nil {
			b.Fatal("not sealed")
		}
		from.out = from.c.Drain(from.out[:0])
		if to.c.Input(0, from.out[0].Frame) != nil {
			b.Fatal("not taken")
		}
		to.out = to.c.Drain(to.out[:0])
		up := to.c.RecycleFrame(to.out[0].Message)
		up.Release()
	}
}
