package cli

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// --enclose adds intervals to the answer that contain the solution up to round-off.
func TestEnclose(t *testing.T) {
	p := cube(t, 9)
	solve := func(tol float64) []float64 {
		s, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
		require.NoError(t, err)
		return s.U
	}
	exact, rough := solve(1e-13), solve(1e-3)
	e, err := verify.Evaluate(p, rough, nil)
	require.NoError(t, err)
	places := []problem.Point{{0.2, 0.3, 0.4}, {0, 0.5, 0.5}}
	s := &report.Solution{Probes: []report.Probe{probe(p, rough, places[0]), probe(p, rough, places[1])}}
	n := &enclosureFlags{sweeps: 8}
	require.NoError(t, n.enclose(t.Context(), s, p, rough, &e, places))
	require.Nil(t, s.Enclosure, "not requested")
	n.enabled = true
	require.NoError(t, n.enclose(t.Context(), s, p, rough, &e, places))
	u := probe(p, exact, places[0]).U
	require.LessOrEqual(t, s.Probes[0].Between[0], u)
	require.GreaterOrEqual(t, s.Probes[0].Between[1], u)
	require.Less(t, s.Probes[0].Between[0], s.Probes[0].Between[1])
	require.Equal(t, [2]float64{0, 0}, *s.Probes[1].Between, "boundary data are exact")
	require.Positive(t, float64(s.Enclosure.Width))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = n.enclose(ended, s, p, rough, &e, places)
	require.ErrorContains(t, err, "--enclose: interrupted before the bounds were computed")
	require.Equal(t, ExitStopped, exitCode(err))
	require.Contains(t, s.Enclosure.Why, "interrupted")

	e.Certificate.Why, e.ErrorBound = "A is no M-matrix", math.NaN()
	require.NoError(t, n.enclose(t.Context(), s, p, rough, &e, places))
	require.Equal(t, "A is no M-matrix", s.Enclosure.Why)
}

func TestEncloseRefused(t *testing.T) {
	p := cube(t, 5)
	require.NoError(t, (&enclosureFlags{enabled: true}).check(p))
	require.ErrorContains(t, (&enclosureFlags{sweeps: -1}).check(p), "--enclose-sweeps -1")
	front, _, err := file.Load("front1d", []int{5})
	require.NoError(t, err)
	require.NoError(t, (&enclosureFlags{}).check(front))
	require.ErrorContains(t, (&enclosureFlags{enabled: true}).check(front), "nonstationary")
}
