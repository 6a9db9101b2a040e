package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// The pressure peaks before the narrowest gap at θ = π, half-way along the shaft, and the oil
// cavitates behind it, whichever way the problem is solved.
func TestBearing(t *testing.T) {
	p := bearing(0.4, 4, [2]int{63, 31})
	for _, o := range []solver.Options{
		{Tolerance: 1e-8},
		{Tolerance: 1e-8, Peers: 3, Scheme: iterate.Asynchronous(), Threads: 1},
	} {
		s, err := solver.Solve(t.Context(), p, o)
		require.NoError(t, err)
		require.LessOrEqual(t, s.Evaluation.RelativeResidual, 1e-8)
		highest := slices.Max(s.U)
		at := slices.Index(s.U, highest)
		peak := p.At(at%p.N[0]+1, at/p.N[0]+1, 1)
		require.InDelta(t, 2, peak[1], 1e-9)
		require.Greater(t, peak[0], 1.5)
		require.Less(t, peak[0], 3.1)
		require.InDelta(t, 0.4110, highest, 1e-4)
		require.Greater(t, s.Evaluation.ContactPoints, len(s.U)/4)
		require.Less(t, s.Evaluation.ContactPoints, len(s.U)/2)
		require.Contains(t, report(s), "highest pressure   0.4110\n")
	}
}
