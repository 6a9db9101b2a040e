package problems

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// torsion is the elastic–plastic torsion of a bar. The absolute value of the stress function is at most the
// distance from the boundary; where it is equal, the bar yields.
func torsion(d int) Builtin {
	b := Builtin{
		Name: "torsion",
		Summary: "elastic–plastic torsion of a square bar: −Δu = c in (0,1)², " +
			"|u| at most the distance from the boundary",
		Reference: "MINPACK-2 (Averick, Carter, Moré, Xue 1992), section 4.1; PETSc, TAO eptorsion",
		Dimension: d,
		Exact:     d == 1,
		Parameters: []Parameter{
			{"c", 5, "angle of twist per length, in units of the shear modulus; of either sign"},
		},
		build: func(p *problem.Problem, v []float64) error {
			box(p, 0, 1)
			p.Source.Value = v[0]
			p.Upper = func(q problem.Point) float64 { return boundaryDistance(p, q) }
			p.Obstacle = func(q problem.Point) float64 { return -boundaryDistance(p, q) }
			p.Boundary = zero
			if c := v[0]; d == 1 {
				p.Exact = func(q problem.Point) float64 { return torsionSolution(c, q[0]) }
			}
			return nil
		},
	}
	if d == 1 {
		b.Name = "torsion1d"
		b.Summary = "elastic–plastic torsion of a flat bar: −u″ = c in (0,1), |u| at most the distance from the ends"
	}
	return b
}

// boundaryDistance returns the distance from the boundary of the box.
func boundaryDistance(p *problem.Problem, q problem.Point) float64 {
	d := math.Inf(1)
	for a := range p.Dimension {
		d = min(d, q[a]-p.Lo[a], p.Hi[a]-q[a])
	}
	return d
}

// torsionSolution returns the solution in one dimension: elastic for |c| ≤ 2, otherwise plastic up
// to 1/2 − 1/|c| from either end.
func torsionSolution(c, x float64) float64 {
	x = min(x, 1-x)
	size := math.Abs(c)
	plastic := max(0, 0.5-1/size)
	if x <= plastic {
		return math.Copysign(x, c)
	}
	slope := 1.0
	if size <= 2 {
		slope = size / 2
	}
	s := x - plastic
	return math.Copysign(plastic+float64(slope*s)-float64(size/2*float64(s*s)), c)
}

// bearing is the pressure of the film in a journal bearing. The film cavitates where its pressure
// would fall below the vapour pressure.
func bearing(d int) Builtin {
	b := Builtin{
		Name: "bearing",
		Summary: "pressure in a journal bearing with cavitation: " +
			"−div((1+ε cos x)³ ∇u) ≥ ε sin x, u ≥ 0 in (0,2π)×(0,2b)",
		Reference: "MINPACK-2 (Averick, Carter, Moré, Xue 1992), section 4.2; PETSc, TAO jbearing2; " +
			"one dimension: Sommerfeld's substitution with Reynolds' condition",
		Dimension: d,
		Exact:     d == 1,
		Parameters: []Parameter{
			{"eccentricity", 0.1, "ε, from above 0 to below 1"},
			{"b", 10, "half the length of the bearing, positive"},
		},
	}
	if d == 1 {
		b.Name = "bearing1d"
		b.Summary = "pressure in an infinitely long journal bearing with cavitation: " +
			"−((1+ε cos x)³ u′)′ ≥ ε sin x, u ≥ 0 in (0,2π)"
		b.Parameters = b.Parameters[:1]
	}
	b.build = func(p *problem.Problem, v []float64) error {
		e := v[0]
		if err := fraction("eccentricity", e); err != nil {
			return err
		}
		p.Hi[0] = 2 * math.Pi
		if d == 2 {
			if err := positive(v, "", "b"); err != nil {
				return err
			}
			p.Hi[1] = 2 * v[1]
		}
		p.Diffusion.Of = func(q problem.Point) float64 {
			h := 1 + float64(e*math.Cos(q[0]))
			return h * h * h
		}
		p.Source.Of = func(q problem.Point) float64 { return e * math.Sin(q[0]) }
		flat(p)
		p.Boundary = zero
		if d == 1 {
			p.Exact = bearingSolution(e)
		}
		return nil
	}
	return b
}

// bearingSolution returns the pressure in an infinitely long bearing. The equation is (1+ε cos x)³
// u′ = ε (cos x − cos x_c), where the film ruptures at x_c with u = u′ = 0. With J_k = ∫ dx/(1+ε
// cos x)^k the solution is u = J₂ − (1+ε cos x_c) J₃.
func bearingSolution(e float64) problem.Function {
	pressure := func(x, rupture float64) float64 {
		// 1+ε cos x = (1−ε²)/(1−ε cos γ) makes both integrals elementary.
		sin, cos := math.Sincos(x / 2)
		g := 2 * math.Atan2(math.Sqrt(1-e)*sin, math.Sqrt(1+e)*cos)
		s := 1 - e*e
		j2 := (g - e*math.Sin(g)) / math.Pow(s, 1.5)
		j3 := (g - 2*e*math.Sin(g) + e*e/2*g + e*e/4*math.Sin(2*g)) / math.Pow(s, 2.5)
		return j2 - (1+e*math.Cos(rupture))*j3
	}
	low, high := math.Pi, 2*math.Pi // the pressure is positive at low and negative at high
	for range 200 {
		if m := (low + high) / 2; pressure(m, m) > 0 {
			low = m
		} else {
			high = m
		}
	}
	return func(q problem.Point) float64 {
		if q[0] >= low {
			return 0
		}
		return max(0, pressure(q[0], low))
	}
}
