package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pressure has its maximum before the narrowest gap at θ = π, at the middle of the shaft. The oil cavitates after
// the gap.
func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	var residual, pressure, theta, y float64
	var sweeps, contact, points int
	_, err := fmt.Sscanf(out.String(),
		"relative residual  %g after %d sweeps\nhighest pressure   %g at θ = %g, y = %g\ncavitation         %d of %d points\n",
		&residual, &sweeps, &pressure, &theta, &y, &contact, &points)
	require.NoError(t, err, out.String())
	require.LessOrEqual(t, residual, 1e-8)
	require.Positive(t, sweeps)
	require.InDelta(t, 2, y, 1e-9)
	require.Greater(t, theta, 1.5)
	require.Less(t, theta, 3.1)
	require.Greater(t, pressure, 0.1)
	require.Equal(t, 63*31, points)
	require.Greater(t, contact, points/4)
	require.Less(t, contact, points/2)
}
