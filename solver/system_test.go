package solver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver"
)

// Every built-in problem, by every method, to the solution of plain Richardson.
func TestMethodsAgreeOnEveryBuiltin(t *testing.T) {
	for _, b := range problems.All() {
		t.Run(b.Name, func(t *testing.T) {
			n := [3]int{12, 1, 1}
			for a := 1; a < b.Dimension; a++ {
				n[a] = 9 + a
			}
			p, err := b.Make(n)
			require.NoError(t, err)
			if e := p.Evolution; e != nil {
				e.Steps = min(e.Steps, 4)
			}
			want, err := solver.SolveSequential(p, solver.Jacobi, 1e-10, 0, 0, 100000)
			require.NoError(t, err)
			require.Equal(t, solver.Converged, want.Reason)
			scale := 0.0
			for _, v := range want.U {
				scale = max(scale, v, -v)
			}
			for _, c := range []solver.MethodConfig{{}, {Name: solver.SOR}, {Name: solver.Multigrid}, {Name: solver.Multigrid, Cycle: "v"}} {
				got, err := solver.SolveBy(p, c, 1e-10, 100000, nil)
				require.NoError(t, err)
				require.Equal(t, solver.Converged, got.Reason, "%+v", c)
				require.InDeltaSlice(t, want.U, got.U, 1e-7*scale, "%+v", c)
				require.Equal(t, p.Steps(), got.Steps)
				t.Logf("%-10s %5d cycles %7.1f sweeps; %s", c.Name+c.Cycle, got.Cycles, got.Work, got.About)
			}
		})
	}
}
