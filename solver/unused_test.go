package solver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// A setting of another method than the one that is named is refused. Out of lockstep, sor and multigrid are the method
// of a box.
func TestSettingsOfAnotherMethod(t *testing.T) {
	for _, c := range []struct {
		flag   string
		method problem.MethodConfig
		unused bool
	}{
		{"omega", problem.MethodConfig{Name: problem.SOR}, false},
		{"omega", problem.MethodConfig{Name: problem.Multigrid}, true},
		{"cycle", problem.MethodConfig{Name: problem.Schwarz}, false},
		{"omega", problem.MethodConfig{Name: problem.Schwarz}, true},
		{"omega", problem.MethodConfig{Name: problem.Schwarz, Local: problem.SOR}, false},
		{"overlap", problem.MethodConfig{Name: problem.Schwarz, Local: problem.SOR}, false},
		{"overlap", problem.MethodConfig{Name: problem.SOR}, true},
		{"step", problem.MethodConfig{Name: problem.Richardson}, false},
		{"step", problem.MethodConfig{Name: problem.SOR}, true},
		{"step", problem.MethodConfig{Name: "of another module"}, false},
	} {
		require.Equal(t, c.unused, Unused([]string{c.flag}, c.method) != nil, c)
	}
	_, err := Solve(t.Context(), solvertest.String1D(5), Options{Method: problem.MethodConfig{Name: problem.Multigrid, Omega: 1.2}})
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "--omega is for method sor")
}
