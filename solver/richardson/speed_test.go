package richardson

import (
	"runtime"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// twins runs two workers without a network. Faces are passed in buffers that exist from the start.
type twins struct {
	w      [2]*worker
	scheme iterate.Scheme
	slots  [2][2][]byte
	now    time.Duration
}

func newTwins(t testing.TB, c problem.Config) *twins {
	part, err := problem.Slabs(c.Problem.N, 2, nil)
	require.NoError(t, err)
	tw := &twins{scheme: c.Scheme}
	c.Partition = part
	for r := range tw.w {
		c.Rank = iterate.Rank(r)
		tw.w[r], err = newWorker(c)
		require.NoError(t, err)
		for tag := range tw.slots[r] {
			tw.slots[r][tag] = make([]byte, tw.w[r].faces[0].to.FaceBytes)
		}
	}
	return tw
}

// step performs one operation of worker r; false: it waits or has ended.
func (tw *twins) step(t testing.TB, r int) bool {
	tw.now += time.Microsecond
	w, other := tw.w[r], tw.w[1-r]
	switch op := w.Next(tw.now); op.Kind {
	case iterate.OpRelax:
		w.Relax(op)
	case iterate.OpSend:
		dst := tw.slots[1-r][op.Tag]
		w.Pack(op, dst)
		if err := other.Halo(tw.now, iterate.Rank(r), op.Tag, op.Label, tw.slots[1-r][op.Tag:op.Tag+1]...); err != nil {
			t.Fatal(err)
		}
	case iterate.OpAgree:
		if err := other.Agree(tw.now, iterate.Rank(r), op.Message); err != nil {
			t.Fatal(err)
		}
	default:
		return false
	}
	return true
}

// until runs both until rank 0 has made n sweeps.
func (tw *twins) until(t testing.TB, n iterate.Iteration) {
	for tw.w[0].Iterate < n {
		a := tw.step(t, 0)
		b := tw.step(t, 1)
		if !a && !b {
			t.Fatal("both wait")
		}
	}
}

func TestSweepsAllocateNothing(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(0),
		iterate.BoundedDelay(2)} {
		for _, order := range []problem.Order{problem.Jacobi, problem.InTurn} {
			tw := newTwins(
				t,
				problem.Config{
					Problem:    solvertest.Membrane([3]int{12, 12, 12}, 3),
					Scheme:     s,
					Order:      order,
					CheckEvery: 1000,
					Lag:        1,
				},
			)
			tw.until(t, 10)
			next := iterate.Iteration(10)
			allocs := testing.AllocsPerRun(20, func() {
				next += 10
				tw.until(t, next)
			})
			require.Zero(t, allocs, "%s %v", s.Name(), order)
		}
	}
}

// A peer's memory at 256³ on 2 peers is 44 bytes per own point at most, in the
// worst case of one source value a point and a snapshot taken. Measured at 128³,
// where the ghosts weigh more.
func TestMemoryPerPoint(t *testing.T) {
	p := solvertest.Membrane([3]int{128, 128, 128}, 3)
	p.Source.Of = func(q problem.Point) float64 { return q[0] }
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	tw := newTwins(t, problem.Config{Problem: p, Scheme: iterate.Asynchronous(), Tolerance: 1e-9})
	tw.until(t, 3)
	for !tw.w[0].pass.sweeping() || !tw.w[1].pass.sweeping() {
		tw.step(t, 0)
		tw.step(t, 1)
	}
	tw.w[0].Stop(tw.now, iterate.Interrupted) // a snapshot in the middle of a sweep
	for a, b := true, true; a || b; {
		a, b = tw.step(t, 0), tw.step(t, 1)
	}
	for _, w := range tw.w {
		require.Equal(t, iterate.Interrupted, w.Outcome().Reason)
		require.False(t, problem.SameArray(w.captured, w.cur), "the worst case: three arrays")
	}
	perPoint := float64(heap()-before) / float64(p.Points())
	t.Logf("%.1f bytes per point", perPoint)
	require.Less(t, perPoint, 44.0)
	runtime.KeepAlive(tw)
}

func benchmarkSweeps(b *testing.B, n int, s iterate.Scheme, every iterate.Iteration) {
	p := solvertest.Membrane([3]int{n, n, n}, 3)
	part, err := problem.Slabs(p.N, 1, nil)
	require.NoError(b, err)
	w, err := newWorker(problem.Config{Problem: p, Partition: part, Scheme: s, CheckEvery: every})
	require.NoError(b, err)
	tw := func(until iterate.Iteration) {
		for w.Iterate < until {
			if op := w.Next(0); op.Kind == iterate.OpRelax {
				w.Relax(op)
			}
		}
	}
	tw(1)
	b.ResetTimer()
	b.ReportAllocs()
	tw(iterate.Iteration(b.N))
	b.ReportMetric(float64(p.Points())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GLUP/s")
}

func BenchmarkSweep64(b *testing.B)         { benchmarkSweeps(b, 64, iterate.Synchronous(), 1<<40) }
func BenchmarkSweep64Checked(b *testing.B)  { benchmarkSweeps(b, 64, iterate.Synchronous(), 0) }
func BenchmarkSweep128(b *testing.B)        { benchmarkSweeps(b, 128, iterate.Synchronous(), 1<<40) }
func BenchmarkSweep128Checked(b *testing.B) { benchmarkSweeps(b, 128, iterate.Synchronous(), 0) }
func BenchmarkSweep256(b *testing.B)        { benchmarkSweeps(b, 256, iterate.Synchronous(), 1<<40) }
func BenchmarkSweep256Checked(b *testing.B) { benchmarkSweeps(b, 256, iterate.Synchronous(), 0) }
func BenchmarkSweep128Async(b *testing.B)   { benchmarkSweeps(b, 128, iterate.Asynchronous(), 0) }
func BenchmarkSequential32(b *testing.B) {
	p := solvertest.Membrane([3]int{32, 32, 32}, 3)
	s, err := newSequential(p, problem.Jacobi)
	require.NoError(b, err)
	for b.Loop() {
		s.sweep()
	}
}
