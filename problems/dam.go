package problems

import (
	"cmp"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// dam is the flow of water through a porous dam with vertical walls, by Baiocchi's transformation: with the
// pressure p, w = ∫ p dz from a point up to the crest solves −Δw ≥ −1, w ≥ 0 on the known box of the dam,
// and the dam is wet where w > 0. On a wall with water up to h, w is (h−z)²/2 below h and 0 above. The base
// is impermeable: w is harmonic along it, with the values of h²/2 on the walls as boundary data.
func dam(d int) Builtin {
	b := Builtin{
		Name:      "dam",
		Summary:   "seepage through a rectangular dam of width a: −Δw ≥ −1, w ≥ 0; wet where w > 0, y upwards",
		Reference: "Baiocchi, Comincioli, Magenes, Pozzi, Ann. Mat. Pura Appl. 97 (1973)",
		Dimension: d,
		Parameters: []Parameter{
			{"a", 1.62, "width of the dam, positive"},
			{"h1", 3.22, "height of the water upstream (x = 0), positive; the dam is as high"},
			{"h2", 0.84, "height of the water downstream (x = a), 0 to h1"},
		},
	}
	if d == 2 {
		b.build = func(p *problem.Problem, v []float64) error {
			a, h1, h2 := v[0], v[1], v[2]
			if err := cmp.Or(positive(v, "a", "h1"), checkLevels(h1, h2)); err != nil {
				return err
			}
			p.Hi[0], p.Hi[1] = a, h1
			level := func(q problem.Point) float64 {
				return float64(h1*h1) + float64((float64(h2*h2)-float64(h1*h1))*(q[0]/a))
			}
			setSeepage(p, 1, level, func(q problem.Point) bool { return q[0] <= 0 || q[0] >= a })
			return nil
		}
		return b
	}
	b.Name = "dam3d"
	b.Summary = "seepage through a porous block of a × b with water on all four sides, " +
		"the square of its level linear between the corners: −Δw ≥ −1, w ≥ 0; wet where w > 0, z upwards"
	b.Parameters = []Parameter{
		{"a", 2, "size along x, positive"},
		{"b", 2, "size along y, positive"},
		{"h00", 2, "height of the water at the corner (0, 0), positive; the block is as high"},
		{"h10", 0.5, "height of the water at the corner (a, 0), 0 to h00"},
		{"h01", 1, "height of the water at the corner (0, b), 0 to h00"},
		{"h11", 0.25, "height of the water at the corner (a, b), 0 to h00"},
	}
	b.build = func(p *problem.Problem, v []float64) error {
		a, c, h00 := v[0], v[1], v[2]
		if err := cmp.Or(positive(v, "a", "b", "h00"), checkLevels(h00, v[3:]...)); err != nil {
			return err
		}
		p.Hi = problem.Point{a, c, h00}
		square := [4]float64{h00 * h00, v[3] * v[3], v[4] * v[4], v[5] * v[5]}
		level := func(q problem.Point) float64 {
			x, y := q[0]/a, q[1]/c
			low := square[0] + float64((square[1]-square[0])*x)
			high := square[2] + float64((square[3]-square[2])*x)
			return low + float64((high-low)*y)
		}
		setSeepage(p, 2, level, func(q problem.Point) bool { return q[0] <= 0 || q[0] >= a || q[1] <= 0 || q[1] >= c })
		return nil
	}
	return b
}

// checkLevels returns an error unless the levels are those of water in a dam with that crest.
func checkLevels(crest float64, levels ...float64) error {
	for _, h := range levels {
		if !(h >= 0 && h <= crest) {
			return fmt.Errorf("a water level of %g: it must be from 0 to %g, the height of the dam", h, crest)
		}
	}
	return nil
}

// setSeepage sets the transformed problem. square is the square of the water level on a wall, continued
// harmonically along the base. up is the vertical axis.
func setSeepage(p *problem.Problem, up int, square problem.Function, wall func(q problem.Point) bool) {
	p.Source.Value = -1
	flat(p)
	p.Boundary = func(q problem.Point) float64 {
		switch {
		case wall(q):
			below := max(0, math.Sqrt(max(0, square(q)))-q[up])
			return below * below / 2
		case q[up] <= 0:
			return max(0, square(q)) / 2
		}
		return 0
	}
}
