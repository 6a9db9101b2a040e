package solver_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/stretchr/testify/require"
)

// Every method solves every built-in problem to the solution of plain Richardson.
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
			want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-10, 0, 0, 100000)
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, want.Reason)
			scale := 0.0
			for _, v := range want.U {
				scale = max(scale, v, -v)
			}
			for _, c := range []problem.MethodConfig{{}, {Name: problem.SOR}, {Name: problem.Multigrid},
				{Name: problem.Multigrid, Cycle: "v"}} {
				got, err := multilevel.SolveBy(p, c, 1e-10, 100000, nil)
				require.NoError(t, err)
				require.Equal(t, iterate.Converged, got.Reason, "%+v", c)
				require.InDeltaSlice(t, want.U, got.U, 1e-7*scale, "%+v", c)
				require.Equal(t, p.Steps(), got.Steps)
				t.Logf("%-10s %5d cycles %7.1f sweeps; %s", c.Name+c.Cycle, got.Cycles, got.Work, got.Description)
			}
		})
	}
}

// Multigrid needs hardly more cycles with obstacles. Without isolated contact points (package method) the plastic bar
// takes more than sixty, the membrane twelve.
func TestMultigridNeedsFewCycles(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		most int
	}{
		{"membrane", 31, 7},
		{"ball3d", 31, 7},
		{"quartic", 31, 7},
		{"membrane", 32, 12}, // does not halve
		{"ball2d", 95, 7},
		{"torsion", 95, 8},
		{"bearing", 95, 9},
		{"dam", 95, 6},
		{"convection2d", 63, 6},
		{"torsion1d", 191, 8},
		{"bearing1d", 191, 9},
		{"perpetual-put", 191, 8},
	} {
		for _, cycle := range []string{"", "w", "v"} {
			b, err := problems.Lookup(c.name)
			require.NoError(t, err)
			n := [3]int{1, 1, 1}
			for a := range b.Dimension {
				n[a] = c.n
			}
			p, err := b.Make(n)
			require.NoError(t, err)
			got, err := multilevel.SolveBy(
				p,
				problem.MethodConfig{Name: problem.Multigrid, Cycle: cycle},
				1e-8,
				100,
				nil,
			)
			require.NoError(t, err)
			t.Logf("%-14s n = %d, %q: %d cycles, %.1f sweeps, %s", c.name, c.n, cycle, got.Cycles, got.Work,
				got.Description)
			require.Equal(t, iterate.Converged, got.Reason)
			require.LessOrEqual(t, got.Cycles, c.most, "%s, %q cycles", c.name, cycle)
		}
	}
}
