package schwarz

import (
	"math"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// schwarzPeers returns the peers of an asynchronous run with a coarse correction.
func schwarzPeers(t require.TestingT, c problem.Config) []*peer {
	var out []*peer
	for _, q := range solvertest.ConfigsFor(c) {
		p, err := newPeerOf(q)
		require.NoError(t, err)
		out = append(out, p.(*peer))
	}
	return out
}

// coarseResidual returns the sum of the residuals of all shares on the coarse grid.
func coarseResidual(peers []*peer) []float64 {
	g := peers[0].coarse.grid
	sum := make([]float64, g.layout.Points())
	for _, w := range peers {
		s := w.coarse.own
		s.measure(w)
		i := 0
		eachPoint(s.box, func(x, y, z int) {
			sum[g.layout.Dense(x, y, z)] += s.field(0)[i]
			i++
		})
	}
	return sum
}

// TestHalvedFluxesKeepTheCoarseResidual checks that halving fluxes does not change the coarse problem if all peers
// have the same values, for any set of contact points.
func TestHalvedFluxesKeepTheCoarseResidual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		part := solvertest.AnyPartition(t, p)
		c := problem.Config{Problem: p, Partition: part, Scheme: iterate.Asynchronous(), Method: problem.MethodConfig{
			Name: problem.Schwarz, Overlap: rapid.IntRange(0, 3).Draw(t, "overlap"),
			Coarse: rapid.IntRange(1, 30).Draw(t, "coarse"),
		}}
		if _, ok := coarseGridOf(&c); !ok {
			return
		}
		peers := schwarzPeers(t, c)
		value := rapid.SliceOfN(rapid.Float64Range(-1, 1), p.Points(), p.Points()).Draw(t, "values")
		largest := 0.0
		for _, w := range peers {
			largest = math.Max(largest, w.block.Diagonal)
			set := func(at int, idx [3]int) {
				for a := range 3 {
					if idx[a] < 1 || idx[a] > p.N[a] {
						return
					}
				}
				v := value[idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))]
				x := p.At(idx[0], idx[1], idx[2])
				if p.Obstacle != nil {
					v = math.Max(v, p.Obstacle(x))
				}
				if p.Upper != nil {
					v = math.Min(v, p.Upper(x))
				}
				w.work[at] = v
			}
			w.ext.Each(func(_ int, idx [3]int) bool { set(w.block.Index(idx), idx); return true })
			w.block.EachGhost(func(at int, idx [3]int) bool { set(at, idx); return true })
		}
		halved := coarseResidual(peers)
		for _, w := range peers {
			w.coarse.couplings = nil
		}
		for i, v := range coarseResidual(peers) {
			require.InDelta(t, v, halved[i], 1e-11*(1+largest)*float64(p.Points()))
		}
	})
}

// TestFluxesOfDifferentAgesCancel checks that outdated values of another peer leave no source in the coarse problem.
// Without halved fluxes they do.
func TestFluxesOfDifferentAgesCancel(t *testing.T) {
	p := &problem.Problem{
		Name:      "bar",
		Dimension: 1,
		N:         [3]int{40, 1, 1},
		Lo:        problem.Point{0},
		Hi:        problem.Point{1},
		Diffusion: problem.Coefficient{Value: 1},
		Source:    problem.Coefficient{Value: 1},
		Boundary:  func(problem.Point) float64 { return 0 },
	}
	part, err := problem.Slabs(p.N, 2, nil)
	require.NoError(t, err)
	c := problem.Config{
		Problem:   p,
		Partition: part,
		Scheme:    iterate.Asynchronous(),
		Method:    problem.MethodConfig{Name: problem.Schwarz, Overlap: 1, Coarse: 9},
	}
	total := func(late float64, halved bool) (sum float64) {
		peers := schwarzPeers(t, c)
		for r, w := range peers {
			if !halved {
				w.coarse.couplings = nil
			}
			for i := range w.ext.Size()[0] {
				x := w.ext.Lo[0] + i
				v := math.Sin(float64(x))
				if q := x / 20; q != r {
					v -= late
				}
				w.work[w.layout.Index(i, 0, 0)] = v
			}
		}
		for _, v := range coarseResidual(peers) {
			sum += v
		}
		return sum
	}
	require.InDelta(t, total(0, true), total(0.5, true), 1e-9)
	require.InDelta(t, total(0, true), total(0, false), 1e-9)
	require.Greater(t, math.Abs(total(0.5, false)-total(0, false)), 100.0)
}

// TestForecastFitsItsDepth checks that the forecast predicts errors after three relaxations from the second
// round on.
func TestForecastFitsItsDepth(t *testing.T) {
	p := solvertest.Membrane([3]int{31, 31, 1}, 2)
	part, err := problem.GridOf(p.N, [3]int{2, 2, 1})
	require.NoError(t, err)
	w := schwarzPeers(t, problem.Config{
		Problem: p, Partition: part, Scheme: iterate.Asynchronous(),
		Method: problem.MethodConfig{Name: problem.Schwarz, Overlap: 2, Coarse: 225},
	})[0]
	f, l := w.coarse.solver.forecast, w.coarse.grid.layout
	lower, upper := make([]float64, l.Points()), make([]float64, l.Points())
	for i := range lower {
		lower[i], upper[i] = -1, 1
	}
	size := func(e []float64) float64 {
		s := kernel.Sum{}
		for _, v := range e {
			s.Add(v * v)
		}
		return math.Sqrt(s.Float64())
	}
	e := make([]float64, l.Len())
	n := l.N
	eachPoint(l.Interior(), func(x, y, z int) {
		sine := func(i, n int) float64 { return math.Sin(math.Pi * float64(i+1) / float64(n+1)) }
		e[l.Index(x, y, z)] = sine(x, n[0]) * sine(y, n[1])
	})
	left := func(e []float64) []float64 { // the error after the correction has arrived and was added
		after, next := append([]float64(nil), e...), make([]float64, len(e))
		for range 3 {
			f.relax(next, after, lower, upper)
			after, next = next, after
		}
		correction := append([]float64(nil), e...)
		f.correct(correction, lower, upper)
		for i := range after {
			after[i] -= correction[i]
		}
		return after
	}
	first := left(e)
	require.Greater(t, size(first), 0.1*size(e), "the depth is not yet fitted")
	second := left(first)
	require.InDelta(t, 3, f.depth, 1e-9)
	require.Less(t, size(second), 1e-9*size(e))
}

// TestAsynchronousCorrectionsSaveRelaxations checks that, with 27 asynchronous peers of different speeds, a coarse
// correction reduces the number of relaxations.
func TestAsynchronousCorrectionsSaveRelaxations(t *testing.T) {
	p := solvertest.Membrane([3]int{24, 24, 24}, 3)
	part, err := problem.GridOf(p.N, [3]int{3, 3, 3})
	require.NoError(t, err)
	relaxations := func(coarse int, seed uint64) (sum float64) {
		n, err := newNetwork(seed, solvertest.ConfigsFor(problem.Config{
			Problem: p, Partition: part, Scheme: iterate.Asynchronous(), Tolerance: 1e-6,
			Method: problem.MethodConfig{Name: problem.Schwarz, Overlap: 1, InnerCycles: 1, Coarse: coarse},
		}))
		require.NoError(t, err)
		n.Segment, n.Jitter = 1<<20, 10*time.Microsecond
		n.PointTime = func(r int, _ time.Duration) time.Duration { return time.Duration(2 + r%3) }
		require.NoError(t, n.Run())
		for _, q := range n.Peers {
			require.Equal(t, iterate.Converged, q.Outcome().Reason)
			sum += float64(q.Outcome().Sweeps) / float64(len(n.Peers))
		}
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, 1e-6)
		return sum
	}
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		with, without := relaxations(0, seed), relaxations(-1, seed)
		t.Logf("%.0f relaxations with, %.0f without", with, without)
		require.Less(t, with, 0.85*without)
	}
}
