package richardson

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The inner problem of a box with the solution around it has the solution of the whole problem.
func TestInnerOfASolution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 3).Draw(t, "dimension")
		p := &problem.Problem{
			Name: "jump", Dimension: d, N: [3]int{1, 1, 1}, Lo: problem.Point{-0.3, 0.1,
				0}, Reaction: problem.Coefficient{Value: 0.5},
			// Jumps on grid points and half-way between two: rounding must not move them.
			Source:   problem.Coefficient{Of: func(q problem.Point) float64 { return math.Copysign(1, q[0]-0.2) }},
			Boundary: func(q problem.Point) float64 { return 0.1 + q[0]*q[1] },
		}
		for a := range d {
			p.N[a], p.Hi[a] = rapid.IntRange(3, 8).Draw(t, "n"), p.Lo[a]+1
		}
		jump := p.At(2, 1, 1)[0] + p.Spacing(0)/2
		p.Diffusion.Of = func(q problem.Point) float64 { return 1 + 9*math.Round(0.5+math.Copysign(0.5, q[0]-jump)) }
		if rapid.Bool().Draw(t, "obstacle") {
			p.Obstacle = func(q problem.Point) float64 { return 0.05 - q[0]*q[0] - 1 }
		}
		if rapid.Bool().Draw(t, "rows") {
			p.Rows.Obstacle, p.Rows.Source = rowOf(p.Obstacle), rowOf(p.Source.Of)
		}
		whole, err := SolveSequential(p, problem.InTurn, 1e-12, 0, 0, 0)
		require.NoError(t, err)
		var box problem.Box
		box.Hi = [3]int{1, 1, 1}
		for a := range d {
			box.Lo[a] = rapid.IntRange(0, p.N[a]-1).Draw(t, "lo")
			box.Hi[a] = rapid.IntRange(box.Lo[a]+1, p.N[a]).Draw(t, "hi")
		}
		u := append([]float64(nil), whole.U...)
		var fixed func([3]int) bool
		if rapid.Bool().Draw(t, "fixed") { // every third point of the box is known, too
			fixed = func(at [3]int) bool { return p.Dense(at)%3 == 0 }
		}
		sub := p.Inner(box, func(at [3]int) float64 { return p.ValueAt(u, at) }, fixed)
		st, su := problem.NewStencil(p), problem.NewStencil(sub)
		box.Each(func(_ int, idx [3]int) bool {
			for a := range d {
				idx[a] -= box.Lo[a]
			}
			at := idx
			for a := range d {
				at[a] += box.Lo[a]
			}
			require.Equal(t, st.At(at), su.At(idx), "coefficients at %v", idx)
			require.Equal(t, p.Source.At(p.At(at[0], at[1], at[2])), sub.Source.At(sub.At(idx[0], idx[1], idx[2])))
			return true
		})
		part, err := SolveSequential(sub, problem.InTurn, 1e-12, 0, 0, 0)
		require.NoError(t, err)
		i := 0
		for z := box.Lo[2]; z < box.Hi[2]; z++ {
			for y := box.Lo[1]; y < box.Hi[1]; y++ {
				for x := box.Lo[0]; x < box.Hi[0]; x++ {
					require.InDelta(t, whole.U[x+p.N[0]*(y+p.N[1]*z)], part.U[i], 1e-8)
					i++
				}
			}
		}
	})
}

// rowOf returns f by rows, nil if there is none.
func rowOf(f problem.Function) problem.Row {
	if f == nil {
		return nil
	}
	return func(dst, x []float64, y, z float64) {
		for i := range dst {
			dst[i] = f(problem.Point{x[i], y, z})
		}
	}
}
