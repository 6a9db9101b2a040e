package solver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Diffusion between two points 0 and 1 is the harmonic mean along the edge where κ jumps
// between them, wherever that is, and κ half-way everywhere else.
func TestDiffusionOfAnEdge(t *testing.T) {
	step := func(at, left, right float64) func(Point) float64 {
		return func(q Point) float64 {
			if q[0] < at {
				return left
			}
			return right
		}
	}
	for name, c := range map[string]struct {
		of    func(Point) float64
		want  float64
		jumps bool
	}{
		"constant":                  {func(Point) float64 { return 3 }, 3, false},
		"jump at 0.2":               {step(0.2, 1, 10), 1 / (0.2 + 0.8/10), true},
		"jump half-way":             {step(0.5, 1, 10), 1 / (0.5 + 0.5/10), true},
		"just behind half-way":      {step(math.Nextafter(0.5, 1), 10, 1), 1 / (0.5/10 + 0.5), true},
		"jump down at 0.9":          {step(0.9, 1e6, 1), 1 / (0.9/1e6 + 0.1), true},
		"two jumps":                 {func(q Point) float64 { return step(0.25, 1, 100)(q) * step(0.75, 1, 100)(q) }, 1 / (0.25 + 0.5/100 + 0.25/1e4), true},
		"jump at the first point":   {step(0, 1, 10), 10, false},
		"jump at the second point":  {step(1, 1, 10), 1, false},
		"steep and smooth":          {func(q Point) float64 { return math.Exp(4 * q[0]) }, math.Exp(2), false},
		"over many decades, smooth": {func(q Point) float64 { return math.Exp(20 * q[0]) }, math.Exp(10), false},
	} {
		k := Coefficient{Of: c.of}
		got, jumps := k.edge(Point{}, 0, 1, c.of(Point{0}), c.of(Point{1}))
		require.Equal(t, c.jumps, jumps, name)
		if !jumps {
			require.Equal(t, c.want, got, name)
		}
		require.InEpsilon(t, c.want, got, 1e-8, name)
	}
}
