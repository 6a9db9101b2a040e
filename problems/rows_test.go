package problems

import (
	"fmt"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// Functions and their row versions have the same bits on the whole closed grid at all times.
func TestRowsAreTheFunctions(t *testing.T) {
	found := 0
	for _, b := range All() {
		n := [3]int{1, 1, 1}
		for a := range b.Dimension {
			n[a] = 21 - 4*a
		}
		whole, err := b.Make(n)
		require.NoError(t, err)
		for _, m := range []int{0, 1, whole.Steps()} {
			p := whole.AtStep(m)
			for name, c := range map[string]struct {
				f   problem.Function
				row problem.Row
			}{
				"obstacle": {p.Obstacle, p.Rows.Obstacle}, "upper": {p.Upper, p.Rows.Upper},
				"source": {p.Source.Of, p.Rows.Source}, "exact": {p.Exact, p.Rows.Exact},
			} {
				if c.row == nil {
					continue
				}
				found++
				require.NotNil(t, c.f, "%s: %s", b.Name, name)
				compareRows(t, p, c.f, c.row, fmt.Sprintf("%s: %s", b.Name, name))
			}
		}
	}
	require.Positive(t, found)
}

func compareRows(t *testing.T, p *problem.Problem, f problem.Function, row problem.Row, name string) {
	t.Helper()
	x, v := make([]float64, p.N[0]+2), make([]float64, p.N[0]+2)
	for i := range x {
		x[i] = p.At(i, 1, 1)[0]
	}
	for k := range p.N[2] + 2 {
		for j := range p.N[1] + 2 {
			q := p.At(0, j, k)
			row(v, x, q[1], q[2])
			for i, got := range v {
				want := f(p.At(i, j, k))
				require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%s at %v", name, p.At(i, j, k))
			}
		}
	}
}
