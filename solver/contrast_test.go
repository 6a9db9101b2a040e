package solver

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// contrastCase is a diffusion that jumps, or varies, by a contrast.
type contrastCase struct {
	name string
	dim  int
	n    int
	of   func(q Point, contrast float64) float64
}

func contrastProblem(c contrastCase, contrast float64) *Problem {
	p := &Problem{
		Name: c.name, Dimension: c.dim, N: [3]int{1, 1, 1}, Source: Coefficient{Value: 1},
		Diffusion: Coefficient{Of: func(q Point) float64 { return c.of(q, contrast) }},
		Boundary:  func(Point) float64 { return 0 },
		Obstacle: func(q Point) float64 {
			v := 0.2
			if c.dim == 3 {
				v = 0.3
			}
			for a := range c.dim {
				v -= 2 * (q[a] - 0.5) * (q[a] - 0.5)
			}
			return v
		},
	}
	for a := range c.dim {
		p.Hi[a], p.N[a] = 1, c.n
	}
	return p
}

func where(inside bool, contrast float64) float64 {
	if inside {
		return contrast
	}
	return 1
}

func contrastCases() []contrastCase {
	disk := func(q Point, k float64) float64 {
		return where((q[0]-0.3)*(q[0]-0.3)+(q[1]-0.4)*(q[1]-0.4) < 0.04, k)
	}
	ball := func(q Point, k float64) float64 {
		return where((q[0]-0.3)*(q[0]-0.3)+(q[1]-0.4)*(q[1]-0.4)+(q[2]-0.45)*(q[2]-0.45) < 0.04, k)
	}
	half := func(q Point, k float64) float64 { return where(q[0] > 0.5, k) }
	layer := func(q Point, k float64) float64 { return where(q[1] > 0.4 && q[1] < 0.45, k) }
	smooth := func(q Point, k float64) float64 {
		return math.Exp(math.Log(k) / 2 * math.Sin(2*math.Pi*q[0]) * math.Cos(2*math.Pi*q[1]))
	}
	checker := func(dim int) func(q Point, k float64) float64 {
		return func(q Point, k float64) float64 {
			sum := 0
			for a := range dim {
				sum += int(8 * q[a])
			}
			return where(sum%2 == 0, k)
		}
	}
	var out []contrastCase
	for _, c := range []contrastCase{
		{"disk", 2, 0, disk}, {"half", 2, 0, half}, {"checker", 2, 0, checker(2)}, {"layer", 2, 0, layer}, {"smooth", 2, 0, smooth},
	} {
		for _, n := range []int{63, 127} {
			c.n = n
			out = append(out, c)
		}
	}
	return append(out, contrastCase{"ball", 3, 31, ball}, contrastCase{"half", 3, 31, half},
		contrastCase{"checker", 3, 31, checker(3)}, contrastCase{"layer", 3, 31, layer}, contrastCase{"smooth", 3, 31, smooth})
}

func TestContrastTable(t *testing.T) {
	for _, c := range contrastCases() {
		line := fmt.Sprintf("%-8s %d-D %3d:", c.name, c.dim, c.n)
		for _, contrast := range []float64{10, 100, 1e3, 1e4, 1e6, 1e-4} {
			p := contrastProblem(c, contrast)
			s, err := SolveBy(p, MethodConfig{Name: Multigrid}, 1e-6, 60, nil)
			require.NoError(t, err)
			line += fmt.Sprintf(" %4d(%5.0f,%.0e)", s.Cycles, s.Work, s.Residual)
		}
		t.Log(line)
	}
}
