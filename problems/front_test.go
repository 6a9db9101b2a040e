package problems

import (
	"fmt"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// frontError returns the largest error at the end.
func frontError(t *testing.T, name string, n, steps int) float64 {
	t.Helper()
	p := exampleProblem(t, name, n, fmt.Sprintf("steps=%d", steps))
	before, err := verify.AtStart(p, nil)
	require.NoError(t, err)
	s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-9, 0, 0, 0)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, s.Reason)
	require.Len(t, s.Steps, steps)
	e, err := verify.EvaluateStep(p, steps, before, s.U, nil)
	require.NoError(t, err)
	return e.MaxError
}

// Implicit Euler is of first order in Δt, the differences are of second order in h: with Δt ∝ h² the error
// is divided by four when h is halved.
func TestFrontConverges(t *testing.T) {
	found := map[string]float64{}
	frontError := func(name string, n, steps int) float64 {
		key := fmt.Sprint(name, n, steps)
		if _, known := found[key]; !known {
			found[key] = frontError(t, name, n, steps)
		}
		return found[key]
	}
	for _, c := range []struct {
		name         string
		n, steps     int
		finerN, more int // grid and steps of the better one
		least, most  float64
	}{
		{"front1d", 127, 4, 127, 8, 1.8, 2.2},
		{"front1d", 127, 8, 127, 16, 1.8, 2.2},
		{"front1d", 15, 8, 31, 32, 3.4, 4.8},
		{"front1d", 31, 32, 63, 128, 3.4, 4.8},
		{"front2d", 7, 2, 15, 8, 3.0, 5.2},
		{"front", 7, 2, 15, 8, 3.0, 5.2},
	} {
		coarse := frontError(c.name, c.n, c.steps)
		fine := frontError(c.name, c.finerN, c.more)
		t.Logf("%s: n = %d, %d steps: %.3e; n = %d, %d steps: %.3e; ratio %.2f", c.name, c.n, c.steps, coarse,
			c.finerN, c.more, fine, coarse/fine)
		require.True(t, coarse/fine > c.least && coarse/fine < c.most, "ratio %v", coarse/fine)
	}
}

// The free boundary moves with the given speed, and u is 0 ahead of it.
func TestFrontMoves(t *testing.T) {
	p := exampleProblem(t, "front", 9, "speed=2", "at=0.1", "end=0.25")
	for m, at := range []float64{0.1, 0.6} { // at t = 0 and at the end
		q := p.Evolution.At(float64(m) * 0.25)
		along := func(s float64) problem.Point { s /= math.Sqrt(3); return problem.Point{s, s, s} }
		require.Zero(t, q.Exact(along(at+1e-9)))
		require.Positive(t, q.Exact(along(at-1e-3)))
		require.Equal(t, q.Exact(along(0.3)), q.Boundary(along(0.3)))
	}
	require.Equal(t, 16, p.Steps())
}

func TestInvalidFrontsAreRefused(t *testing.T) {
	b, err := Lookup("front")
	require.NoError(t, err)
	for setting, want := range map[string]string{
		"kappa=0":        "kappa = 0: it must be positive",
		"lambda=-1":      "lambda = -1: it must be positive",
		"speed=0":        "speed = 0: it must be positive",
		"at=-1":          "at = -1: it must not be negative",
		"end=0":          "end = 0: it must be positive",
		"steps=0":        "steps = 0: want a whole number from 1 to 1048576",
		"steps=2.5":      "steps = 2.5: want a whole number",
		"steps=10000000": "want a whole number from 1 to 1048576",
		"speed=1e9":      "too large for float64",
	} {
		c, err := b.With([]string{setting})
		require.NoError(t, err)
		_, err = c.Make(cube(3, 3))
		require.ErrorContains(t, err, want)
	}
}
