// Package solvertest holds problems, partitions, reference solutions and a network in virtual time for the tests
// of several packages.
package solvertest

import (
	"math"
	"sync"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Where returns contrast if inside is true, and 1 otherwise.
func Where(inside bool, contrast float64) float64 {
	if inside {
		return contrast
	}
	return 1
}

// ConfigsFor returns the configurations of all ranks of a run.
func ConfigsFor(c problem.Config) []problem.Config {
	out := make([]problem.Config, c.Partition.Peers())
	for r := range out {
		out[r] = c
		out[r].Rank = iterate.Rank(r)
	}
	return out
}

// MostPeers bounds the peers of a drawn run that ends by its tolerance, because every pair may have a session.
const MostPeers = 12

// String1D returns a one-dimensional problem of n points without obstacle.
func String1D(n int) *problem.Problem {
	p := Membrane([3]int{n, 1, 1}, 1)
	p.Obstacle, p.Source.Of = nil, func(q problem.Point) float64 { return 1 + math.Cos(5*q[0]) }
	return p
}

// Impossible is a tolerance that a residual meets only if it is exactly 0.
const Impossible = 1e-300

// SlabsOf returns a partition of the grid of p into slabs.
func SlabsOf(t require.TestingT, p *problem.Problem, peers int) problem.Partition {
	part, err := problem.Slabs(p.N, peers, nil)
	require.NoError(t, err)
	return part
}

// Threads is an Executor with one goroutine for each chunk.
type Threads struct{}

func (Threads) For(n int, f func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// Evolving draws a small nonstationary problem. Its obstacle, source and boundary data depend on time, and its
// operator may vary in space and time.
func Evolving(t *rapid.T) *problem.Problem { return Evolve(t, AnyProblem(t)) }

// Evolve draws a nonstationary problem whose operator and obstacles at the start are those of base.
func Evolve(t *rapid.T, base *problem.Problem) *problem.Problem {
	base.Initial = nil
	if rapid.Bool().Draw(t, "moving obstacle") && base.Upper == nil {
		base.Obstacle = func(q problem.Point) float64 { return 0 }
	}
	moving := rapid.IntRange(0, 2).Draw(t, "moving")
	e := &problem.Evolution{
		End:   rapid.SampledFrom([]float64{0.02, 0.3, 5}).Draw(t, "end"),
		Steps: rapid.IntRange(1, 5).Draw(t, "steps"),
	}
	if rapid.Bool().Draw(t, "start") {
		e.Initial = func(q problem.Point) float64 { return 0.2 * q[0] }
	}
	frozen := *base
	e.At = func(at float64) *problem.Problem {
		q := frozen
		if moving > 0 {
			source := q.Source
			q.Source = problem.Coefficient{Of: func(x problem.Point) float64 { return source.At(x) - 2*at }}
			q.Boundary = func(x problem.Point) float64 { return 0.05 * at * x[0] }
		}
		if obstacle := q.Obstacle; moving > 1 && obstacle != nil {
			q.Obstacle = func(x problem.Point) float64 { return obstacle(x) - 0.1*math.Sin(3*at) - 0.11 }
		}
		if diffusion := q.Diffusion; moving > 1 && !diffusion.Constant() {
			q.Diffusion.Of = func(x problem.Point) float64 { return diffusion.Of(x) + at*x[0] }
		}
		return &q
	}
	p := *e.At(e.End)
	p.Evolution = e
	return &p
}

// Heating returns a nonstationary problem whose boundary values grow at one side.
func Heating(n, steps int) *problem.Problem {
	p := Membrane([3]int{n, n, n}, 3)
	e := &problem.Evolution{End: 0.1, Steps: steps}
	base := *p
	e.At = func(t float64) *problem.Problem {
		q := base
		q.Boundary = func(x problem.Point) float64 { return t * x[0] }
		return &q
	}
	p.Boundary = e.At(e.End).Boundary
	p.Evolution = e
	return p
}

// Membrane returns an obstacle problem with contact.
func Membrane(n [3]int, dim int) *problem.Problem {
	p := &problem.Problem{Name: "membrane", Dimension: dim, N: n, Diffusion: problem.Coefficient{Value: 1}}
	for a := range dim {
		p.Hi[a] = 1
	}
	p.Obstacle = func(q problem.Point) float64 {
		s := 0.0
		for a := range dim {
			s += (q[a] - 0.5) * (q[a] - 0.5)
		}
		return 0.5 - 4*s
	}
	p.Boundary = func(problem.Point) float64 { return 0 }
	return p
}

// Islands returns a problem with small regions of high diffusion, which the coarse grids of multigrid do not represent.
func Islands(n int, contrast float64) *problem.Problem {
	p := Membrane([3]int{n, n, 1}, 2)
	p.Diffusion.Of = func(q problem.Point) float64 {
		return Where(math.Sin(22*math.Floor(8*q[0])+62*math.Floor(8*q[1])) > 0.2, contrast)
	}
	return p
}

// AnyProblem draws a small problem of any dimension, form of the operator and obstacles.
func AnyProblem(t *rapid.T) *problem.Problem {
	dim := rapid.IntRange(1, 3).Draw(t, "dimension")
	n := [3]int{1, 1, 1}
	for a := range dim {
		n[a] = rapid.IntRange(1, []int{24, 12, 8}[dim-1]).Draw(t, "n")
	}
	return AnyProblemOf(t, dim, n)
}

// AnyProblemOf is AnyProblem with a given grid.
func AnyProblemOf(t *rapid.T, dim int, n [3]int) *problem.Problem {
	p := Membrane(n, dim)
	p.Hi[0] = rapid.SampledFrom([]float64{1, 1.5}).Draw(t, "length")
	switch rapid.IntRange(0, 3).Draw(t, "operator") {
	case 1:
		p.Velocity[0].Value, p.Reaction.Value = 1.5, 2
	case 2:
		p.Diffusion.Of = func(q problem.Point) float64 { return 1 + q[0] + 0.5*math.Sin(3*q[1]+q[2]) }
	case 3:
		p.Reaction.Of = func(q problem.Point) float64 { return q[0] * 3 }
		p.Velocity[dim-1].Of = func(q problem.Point) float64 { return q[0] - 0.3 }
	}
	switch rapid.IntRange(0, 2).Draw(t, "source") {
	case 1:
		p.Source.Value = -3
	case 2:
		p.Source.Of = func(q problem.Point) float64 { return 8 * math.Cos(5*q[0]+q[1]) }
	}
	if rapid.Bool().Draw(t, "upper") {
		p.Upper = func(q problem.Point) float64 { return 0.55 + 0.1*q[0] }
	}
	if rapid.IntRange(0, 4).Draw(t, "initial") == 0 {
		p.Initial = func(q problem.Point) float64 { return 0.3 * q[0] * (1.5 - q[0]) }
	}
	if rapid.IntRange(0, 6).Draw(t, "free") == 0 {
		p.Obstacle = nil
	}
	return p
}

// AnyPartition draws a partition into boxes.
func AnyPartition(t *rapid.T, p *problem.Problem) problem.Partition {
	var part problem.Partition
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

// Backwards is an Executor that runs chunks in descending order.
type Backwards struct{}

func (Backwards) For(n int, f func(int)) {
	for i := n - 1; i >= 0; i-- {
		f(i)
	}
}

// Windy returns a problem whose convection is so strong that the safeguard of multigrid rejects cycles.
func Windy(n int) *problem.Problem {
	p := Membrane([3]int{n, n, n}, 3)
	p.Velocity[0].Value = 200 // central differences beyond Péclet 2
	p.Velocity[1].Value = -150
	p.Source.Value = 1
	return p
}

// Samples returns one message of each kind.
func Samples() []iterate.Message {
	var out []iterate.Message
	for k := iterate.MsgDiagonal; k < iterate.MsgKinds; k++ {
		m := iterate.Message{
			Kind: k, Number: 77, Reason: iterate.Interrupted, Step: int(k) % 3,
			A: math.Pi, B: 1e-3, Iterate: 12, Count: -3,
		}
		switch k {
		case iterate.MsgCaptured:
			m.Mark, m.Values = 3, []byte("sixteen bytes ok")
		case iterate.MsgPlane:
			m.Values = []byte("sixteen bytes ok")
		case iterate.MsgResidual:
			m.Mark = 1
			m.Squares.Add(1e300)
			m.Squares.Add(1e-300)
			m.Start.Add(3)
		}
		out = append(out, m)
	}
	return out
}

// AnySchwarz draws a method without a coarse correction and with a fixed amount of work.
func AnySchwarz(t *rapid.T) problem.MethodConfig {
	return problem.MethodConfig{
		Name: problem.Schwarz, Coarse: -1, Omega: 1.2,
		Local:       rapid.SampledFrom([]string{problem.Richardson, problem.SOR, problem.Multigrid}).Draw(t, "local"),
		Overlap:     rapid.SampledFrom([]int{0, 1, 2, 3, 8}).Draw(t, "overlap"),
		InnerCycles: rapid.IntRange(1, 3).Draw(t, "work"),
	}
}

// CheckUntil checks the property, as often as rapid.Check does and again until the draws have covered what covered
// asks for. It fails the test when 100 rounds have not: few draws, as with -short, may miss a case that many contain.
func CheckUntil(t *testing.T, covered func() bool, property func(*rapid.T)) {
	t.Helper()
	for range 100 {
		rapid.Check(t, property)
		if t.Failed() || covered() {
			return
		}
	}
	t.Error("no draw of 100 rounds covers the case that the test is for")
}
