package seal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

// sealTrain submits payloads as one frame of the upper composite.
func (e *end) sealTrain(payloads [][]byte) (wire []byte, unit int) {
	all := bytes.Join(payloads, nil)
	f := e.plain.Acquire(len(all))
	copy(f.Data, all)
	if len(payloads) > 1 {
		f.Segment = len(payloads[0])
	}
	require.NoError(e.t, e.c.SubmitFrame(0, f))
	e.out = e.c.Drain(e.out[:0])
	require.Len(e.t, e.out, 1)
	out := &e.out[0].Frame
	wire, unit = bytes.Clone(out.Data), out.Segment
	if unit == 0 {
		unit = len(wire)
	}
	out.Release()
	return wire, unit
}

// openTrain passes several frames as one, and returns the payloads that pass.
func (e *end) openTrain(frames [][]byte) (payloads [][]byte) {
	wire := bytes.Join(frames, nil)
	f := microproto.NewBuffer(wire, nil).Frame(1, 0, len(wire))
	if len(frames) > 1 {
		f.Segment = len(frames[0])
	}
	require.NoError(e.t, e.c.Input(0, f))
	e.out = e.c.Drain(e.out[:0])
	for i := range e.out {
		e.c.RecycleFrame(e.out[i].Message).Pieces(func(p microproto.Frame) {
			payloads = append(payloads, bytes.Clone(p.Data))
			p.Release()
		})
	}
	return payloads
}

// cut divides a train into its frames.
func cut(wire []byte, unit int) (frames [][]byte) {
	for ; len(wire) > unit; wire = wire[unit:] {
		frames = append(frames, wire[:unit])
	}
	return append(frames, wire)
}

// Trains consist of the same frames as single transmissions, and the other end may group them in
// any way, whatever is lost, duplicated or forged.
func TestTrainsAreFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := newPair(t)
		single, _ := newPair(t)
		every := rapid.SampledFrom([]uint64{4, 16, KeyFrames}).Draw(t, "every")
		for _, e := range []*end{a, b, single} {
			e.aead.every = every
		}
		for range rapid.IntRange(1, 6).Draw(t, "trains") {
			unit := rapid.IntRange(20, 60).Draw(t, "unit")
			var payloads [][]byte
			for i := range rapid.IntRange(1, 20).Draw(t, "segments") {
				payloads = append(payloads, bytes.Repeat([]byte{byte(i)}, unit))
			}
			last := &payloads[len(payloads)-1]
			*last = (*last)[:rapid.IntRange(1, unit).Draw(t, "last")]
			frames := cut(a.sealTrain(payloads))
			require.Len(t, frames, len(payloads))
			for i, p := range payloads {
				require.Equal(t, single.seal(p), frames[i], "frame %d", i)
			}
			var arrive, want [][]byte
			forged := uint64(0)
			for i, f := range frames {
				switch rapid.IntRange(0, 9).Draw(t, "fate") {
				case 0: // lost
				case 1: // changed
					f = bytes.Clone(f)
					f[rapid.IntRange(0, len(f)-1).Draw(t, "at")] ^= 4
					arrive = append(arrive, f)
					forged++
				case 2: // doubled
					arrive, want = append(arrive, f, f), append(want, payloads[i])
				default:
					arrive, want = append(arrive, f), append(want, payloads[i])
				}
			}
			before := b.flow.Counts()
			var got [][]byte
			for len(arrive) > 0 { // frames of one length may arrive as one, with a shorter one at the end
				n := 1
				for n < len(arrive) && len(arrive[n-1]) == len(arrive[0]) && len(arrive[n]) <= len(arrive[0]) {
					n++
				}
				n = rapid.IntRange(1, n).Draw(t, "together")
				got = append(got, b.openTrain(arrive[:n])...)
				arrive = arrive[n:]
			}
			require.Equal(t, want, got)
			after := b.flow.Counts()
			require.LessOrEqual(t, after.Forged-before.Forged, forged)
			b.balanced()
			a.balanced()
			require.Equal(t, b.mem.Acquired, b.mem.Released)
		}
	})
}

func TestTrainsAllocateNothing(t *testing.T) {
	a, b := newPair(t)
	buffer := microproto.NewBuffer(make([]byte, 1<<16), nil)
	pool := [2]*microproto.Buffer{microproto.NewBuffer(make([]byte, 1<<17), nil),
		microproto.NewBuffer(make([]byte, 1<<17), nil)}
	mem := &turns{pool: pool[:]}
	for _, e := range []*end{a, b} {
		var err error
		e.c, err = microproto.NewComposite(microproto.Config{Name: "seal", MTU: testMTU, Train: 65507, Frames: mem},
			&mark{}, e.aead, NewAntiReplay(e.flow))
		require.NoError(t, err)
		require.NoError(t, e.c.Open(0))
	}
	one := func() {
		f := buffer.Frame(0, 0, 40*1400)
		f.Segment = 1400
		require.NoError(t, a.c.SubmitFrame(0, f))
		a.out = a.c.Drain(a.out[:0])
		require.NoError(t, b.c.Input(0, a.out[0].Frame))
		b.out = b.c.Drain(b.out[:0])
		up := b.c.RecycleFrame(b.out[0].Message)
		require.Equal(t, 40, up.Count())
		up.Release()
	}
	one()
	require.Zero(t, testing.AllocsPerRun(100, one))
}

// turns is a frame source of a few buffers in turn.
type turns struct {
	pool []*microproto.Buffer
	next int
}

func (r *turns) Acquire(n int) microproto.Frame {
	r.next = (r.next + 1) % len(r.pool)
	return r.pool[r.next].Frame(0, 0, n)
}

// BenchmarkTrain measures both ends on one processor, with trains of 46 Ethernet frames.
func BenchmarkTrain(b *testing.B) {
	from, to := newPair(b)
	mem := &turns{}
	for range 8 {
		mem.pool = append(mem.pool, microproto.NewBuffer(make([]byte, 1<<17), nil))
	}
	for _, e := range []*end{from, to} {
		var err error
		e.c, err = microproto.NewComposite(microproto.Config{Name: "seal", MTU: testMTU, Train: 1 << 17, Frames: mem},
			&mark{}, e.aead, NewAntiReplay(e.flow))
		require.NoError(b, err)
		require.NoError(b, e.c.Open(0))
	}
	plain := microproto.NewBuffer(make([]byte, 1<<17), nil)
	b.SetBytes(46 * 1400)
	b.ReportAllocs()
	for b.Loop() {
		f := plain.Frame(0, 0, 46*1400)
		f.Segment = 1400
		if from.c.SubmitFrame(0, f) != nil {
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
