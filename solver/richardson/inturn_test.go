package richardson

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// emulateInTurn is the in-turn method on a partition, by plain loops over the whole grid: in every box a plane reads
// the relaxed plane before it, and iterate k outside the box.
func emulateInTurn(t require.TestingT, c problem.Config) Sequence {
	s, err := newSequential(c.Problem, problem.Jacobi)
	require.NoError(t, err)
	_, in, err := c.Problem.InRange()
	require.NoError(t, err)
	reference := in.Reference(s.residual())
	require.NoError(t, s.start(nil))
	slow := c.Problem.Dimension - 1
	first := map[int]bool{}
	for _, cut := range c.Partition.Cuts[slow] {
		first[cut+1] = true
	}
	r := iterate.NewCheckInterval(c.CheckEvery, c.Lag, c.MaxSweeps)
	u, out := s.iterate(r, reference, c.Tolerance, c.Problem.MayDiverge(), func() {
		s.each(func(i, d int, idx [3]int) {
			below := s.next
			if first[idx[slow]] {
				below = s.cur
			}
			s.next[i] = problem.Clamp(s.cur[i]-float64(s.step*s.defect(below, i, d)), s.phi[d], s.psi[d])
		})
		s.cur, s.next = s.next, s.cur
	})
	out.U = u
	return out
}

func TestInTurnEqualsPlainLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t,
				p), Order: problem.InTurn, Tolerance: 1e-3, CheckEvery: 5, Lag: 3, MaxSweeps: 150,
			Scheme: rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0)}).
				Draw(t, "scheme"),
		}
		want := emulateInTurn(t, c)
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.Run())
		for _, w := range workersOf(n) {
			require.Equal(
				t,
				iterate.Outcome{
					Reason:   want.Reason,
					Sweeps:   want.Sweeps,
					Iterate:  want.Sweeps,
					Residual: want.Residual,
				},
				w.Outcome(),
			)
		}
		solvertest.RequireSameBits(t, want.U, n.Assemble(p))
		if c.Partition.Peers() == 1 {
			alone, err := SolveSequential(p, problem.InTurn, c.Tolerance, c.CheckEvery, c.Lag, c.MaxSweeps)
			require.NoError(t, err)
			solvertest.RequireSameBits(t, alone.U, want.U)
			require.Equal(t, alone.Sweeps, want.Sweeps)
		}
	})
}

// Planes that read newer values need fewer sweeps.
func TestInTurnIsFaster(t *testing.T) {
	p := solvertest.Membrane([3]int{12, 12, 12}, 3)
	a, err := SolveSequential(p, problem.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	b, err := SolveSequential(p, problem.InTurn, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	require.Less(t, b.Sweeps, a.Sweeps)
	require.Equal(t, iterate.Converged, b.Reason)
}

// thePlan checks that a plan relaxes every point once and sends every face once, after all of its points are relaxed.
func TestPlanCoversAndSendsWholeFaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 3).Draw(t, "dimension")
		n := [3]int{1, 1, 1}
		for a := range dim {
			n[a] = rapid.SampledFrom([]int{1, 2, 3, 7, 8, 9, 15, 17, 40, 90}).Draw(t, "n")
		}
		l, err := kernel.NewLayout(dim, n)
		require.NoError(t, err)
		var faces []*face
		for a := range dim {
			for _, side := range []int{-1, 1} {
				if rapid.Bool().Draw(t, "neighbour") {
					faces = append(
						faces,
						newFace(
							l,
							problem.Neighbour{Axis: a, Side: side, FaceBytes: 8 * l.Points() / n[a]},
							iterate.Synchronous(),
						),
					)
				}
			}
		}
		order := rapid.SampledFrom([]problem.Order{problem.Jacobi, problem.InTurn}).Draw(t, "order")
		relaxed := make([]bool, l.Points())
		sent := make([]int, len(faces))
		each := func(b kernel.Box, f func(d int)) {
			problem.Box(b).Each(func(_ int, idx [3]int) bool {
				f(l.Dense(idx[0]-1, idx[1]-1, idx[2]-1))
				return true
			})
		}
		for _, s := range planSweep(l, faces, order, rapid.Bool().Draw(t, "late")) {
			if s.Send {
				sent[s.Face]++
				each(
					faces[s.Face].own,
					func(d int) { require.True(t, relaxed[d], "a face left before it was relaxed") },
				)
				continue
			}
			require.LessOrEqual(t, s.Box.Points(), max(problem.PartPoints, l.Points()/l.N[dim-1]))
			pieces := 0
			for i := range s.Chunks {
				pieces += problem.Chunk(s.Box, s.Axis, i, s.Chunks).Points()
			}
			require.Equal(t, s.Box.Points(), pieces)
			each(s.Box, func(d int) {
				require.False(t, relaxed[d], "relaxed twice")
				relaxed[d] = true
			})
		}
		for d := range relaxed {
			require.True(t, relaxed[d], "point %d is never relaxed", d)
		}
		for i := range sent {
			require.Equal(t, 1, sent[i])
		}
	})
}

func TestFacesLeaveBeforeTheInterior(t *testing.T) {
	p := solvertest.Membrane([3]int{40, 40, 40}, 3)
	part, err := problem.GridOf(p.N, [3]int{2, 2, 2})
	require.NoError(t, err)
	w, err := newWorker(problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous()})
	require.NoError(t, err)
	steps := w.pass.sweep
	require.False(t, steps[len(steps)-1].Send)
	require.Greater(t, steps[len(steps)-1].Box.Points(), 20*20*20/2, "most of the work comes after the last face")
}
