// Package problems checks the example problem files.
package problems

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
)

func load(t *testing.T, ref string, n ...int) *problem.Problem {
	p, _, err := file.Load(ref, n)
	require.NoError(t, err)
	return p
}

func solve(t *testing.T, p *problem.Problem) (richardson.Sequence, verify.Evaluation) {
	s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, s.Reason)
	e, err := verify.Evaluate(p, s.U, nil)
	require.NoError(t, err)
	require.LessOrEqual(t, e.RelativeResidual, 1e-6)
	return s, e
}

func TestEveryProblemFileIsValid(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, f := range files {
		d, err := file.Check(nil, f)
		require.NoError(t, err)
		require.NotEmpty(t, d.String())
	}
}

// The bar is plastic where u touches the distance to its surface, elastic along the diagonals.
func TestTorsion(t *testing.T) {
	p := load(t, "torsion.yaml", 31)
	s, _ := solve(t, p)
	at := func(i, j int) (u, limit float64) { return s.U[(j-1)*31+i-1], p.Upper(p.At(i, j, 1)) }
	u, limit := at(16, 1)
	require.Equal(t, limit, u, "plastic in the middle of a side")
	u, limit = at(16, 16)
	require.Less(t, u, limit, "elastic in the centre")
}

func TestHills(t *testing.T) {
	_, e := solve(t, load(t, "hills.yaml", 15))
	require.Positive(t, e.ContactPoints)
}

// The file and the built-in are one problem.
func TestTerrainIsTheBuiltin(t *testing.T) {
	fromFile, builtin := load(t, "terrain.yaml", 40, 34), load(t, "jacksboro", 40, 34)
	for j := 0; j <= 35; j++ {
		for i := 0; i <= 41; i++ {
			q := builtin.At(i, j, 1)
			require.InDelta(t, builtin.Obstacle(q), fromFile.Obstacle(q), 1e-15)
			require.InDelta(t, builtin.Boundary(q), fromFile.Boundary(q), 1e-15)
		}
	}
	_, e := solve(t, fromFile)
	require.Positive(t, e.ContactPoints)
}

// march solves a nonstationary problem step by step.
func march(t *testing.T, p *problem.Problem) []float64 {
	s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-7, 0, 0, 0)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, s.Reason)
	require.Len(t, s.Steps, p.Steps())
	return s.U
}

// lattice is the value of an American put at the money on a binomial tree.
func lattice(interest, volatility, years float64, steps int) float64 {
	dt := years / float64(steps)
	up := math.Exp(volatility * math.Sqrt(dt))
	p := (math.Exp(interest*dt) - 1/up) / (up - 1/up)
	discount := math.Exp(-interest * dt)
	v := make([]float64, steps+1)
	for n := steps; n >= 0; n-- {
		for i := range n + 1 {
			hold := 0.0
			if n < steps {
				hold = discount * (p*v[i+1] + (1-p)*v[i])
			}
			v[i] = max(hold, 1-math.Pow(up, float64(2*i-n)))
		}
	}
	return v[0]
}

func TestPut(t *testing.T) {
	p := load(t, "put.yaml", 255)
	u := march(t, p)
	want := lattice(0.05, 0.2, 1, 2000)
	require.InDelta(t, 0.0609, want, 5e-5)
	require.InDelta(t, want, u[127], 4e-4, "at the money")
	require.Equal(t, p.Obstacle(p.At(77, 1, 1)), u[76], "deep in the money it is exercised")
}

// The membrane lies on the finger where that is, and has not come down behind it.
func TestFinger(t *testing.T) {
	u := march(t, load(t, "finger.yaml", 31, 15))
	at := func(x float64) float64 { return u[7*31+int(x*16)-1] }
	require.Equal(t, 0.3, at(1.5))
	require.Less(t, at(0.5), 0.2)
	require.Positive(t, at(0.5))
}
