package solver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// membrane is a small obstacle problem with contact.
func membrane(n [3]int, dim int) *Problem {
	p := &Problem{Name: "membrane", Dimension: dim, N: n, Diffusion: Coefficient{Value: 1}}
	for a := range dim {
		p.Hi[a] = 1
	}
	p.Obstacle = func(q Point) float64 {
		s := 0.0
		for a := range dim {
			s += (q[a] - 0.5) * (q[a] - 0.5)
		}
		return 0.5 - 4*s
	}
	p.Boundary = func(Point) float64 { return 0 }
	return p
}

// anyProblem draws a small problem: every dimension, form of operator, obstacle.
func anyProblem(t *rapid.T) *Problem {
	dim := rapid.IntRange(1, 3).Draw(t, "dimension")
	n := [3]int{1, 1, 1}
	for a := range dim {
		n[a] = rapid.IntRange(1, []int{24, 12, 8}[dim-1]).Draw(t, "n")
	}
	return anyProblemOf(t, dim, n)
}

// anyProblemOf is anyProblem on a given grid.
func anyProblemOf(t *rapid.T, dim int, n [3]int) *Problem {
	p := membrane(n, dim)
	p.Hi[0] = rapid.SampledFrom([]float64{1, 1.5}).Draw(t, "length")
	switch rapid.IntRange(0, 3).Draw(t, "operator") {
	case 1:
		p.Velocity[0].Value, p.Reaction.Value = 1.5, 2
	case 2:
		p.Diffusion.Of = func(q Point) float64 { return 1 + q[0] + 0.5*math.Sin(3*q[1]+q[2]) }
	case 3:
		p.Reaction.Of = func(q Point) float64 { return q[0] * 3 }
		p.Velocity[dim-1].Of = func(q Point) float64 { return q[0] - 0.3 }
	}
	switch rapid.IntRange(0, 2).Draw(t, "source") {
	case 1:
		p.Source.Value = -3
	case 2:
		p.Source.Of = func(q Point) float64 { return 8 * math.Cos(5*q[0]+q[1]) }
	}
	if rapid.Bool().Draw(t, "upper") {
		p.Upper = func(q Point) float64 { return 0.55 + 0.1*q[0] }
	}
	if rapid.IntRange(0, 4).Draw(t, "initial") == 0 {
		p.Initial = func(q Point) float64 { return 0.3 * q[0] * (1.5 - q[0]) }
	}
	if rapid.IntRange(0, 6).Draw(t, "free") == 0 {
		p.Obstacle = nil
	}
	return p
}

func anyPartition(t *rapid.T, p *Problem) Partition {
	var part Partition
	for a := range 3 {
		cuts := []int{0}
		for i := 1; i < p.N[a]; i++ {
			if len(cuts) < 4 && rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
				cuts = append(cuts, i)
			}
		}
		part.Cuts[a] = append(cuts, p.N[a])
	}
	return part
}

func TestSynchronousIsBitwiseSequential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLockstep(t, Synchronous()) })
}

func TestDelayZeroIsBitwiseSequential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLockstep(t, BoundedDelay(0)) })
}

func checkLockstep(t *rapid.T, s Scheme) {
	p := anyProblem(t)
	c := Config{
		Problem: p, Partition: anyPartition(t, p), Scheme: s,
		Tolerance:  rapid.SampledFrom([]float64{1e-1, 1e-3}).Draw(t, "tolerance"),
		CheckEvery: Iteration(rapid.IntRange(0, 9).Draw(t, "every")),
		MaxSweeps:  Iteration(rapid.SampledFrom([]int{1, 7, 16, 60, 200, 800}).Draw(t, "max")),
		Executor:   backwards{},
		Tiling:     Tiling{Sweeps: rapid.IntRange(0, 9).Draw(t, "together"), Rows: rapid.IntRange(0, 5).Draw(t, "rows"), Pieces: rapid.IntRange(0, 3).Draw(t, "pieces")},
	}
	if rapid.IntRange(0, 3).Draw(t, "alone") == 0 {
		c.Partition, _ = GridOf(p.N, [3]int{1, 1, 1})
	}
	c.Lag = Iteration(rapid.IntRange(0, int(c.CheckEvery)).Draw(t, "lag"))
	if s.Name() == "hybrid" {
		c.Scheme = Hybrid(make([]int, c.Partition.Peers()))
	}
	want, err := SolveSequential(p, Jacobi, c.Tolerance, c.CheckEvery, c.Lag, c.MaxSweeps)
	require.NoError(t, err)
	n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
	require.NoError(t, err)
	if s.Asynchronous() {
		n.loss, n.double = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
	}
	require.NoError(t, n.run())
	for r, w := range n.workers {
		o := w.Outcome()
		require.Equal(t, Outcome{Reason: want.Reason, Sweeps: want.Sweeps, Iterate: want.Sweeps, Residual: want.Residual}, o, "rank %d", r)
	}
	requireSameBits(t, want.U, n.assemble(p, c.Partition))
}

func requireSameBits(t require.TestingT, want, got []float64) {
	require.Len(t, got, len(want))
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
			require.Failf(t, "different bits", "at %d: %v and %v", i, want[i], got[i])
		}
	}
}

// backwards is an Executor in another order.
type backwards struct{}

func (backwards) For(n int, f func(int)) {
	for i := n - 1; i >= 0; i-- {
		f(i)
	}
}

func TestAsynchronousMeetsTheTolerance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		s := rapid.SampledFrom([]Scheme{Asynchronous(), BoundedDelay(1), BoundedDelay(4)}).Draw(t, "scheme")
		c := Config{
			Problem: p, Partition: anyPartition(t, p), Scheme: s, Tolerance: 1e-4,
			CheckEvery: Iteration(rapid.IntRange(1, 9).Draw(t, "every")),
			Order:      rapid.SampledFrom([]Order{Jacobi, InTurn}).Draw(t, "order"),
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
		require.NoError(t, err)
		n.loss, n.double = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
		require.NoError(t, n.run())
		e, err := Evaluate(p, n.assemble(p, c.Partition), nil)
		require.NoError(t, err)
		for _, w := range n.workers {
			require.Equal(t, Converged, w.Outcome().Reason)
			require.Equal(t, e.RelativeResidual, w.Outcome().Residual, "what was agreed is what is true")
		}
		require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
	})
}
