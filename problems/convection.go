package problems

import (
	"fmt"
	"math"
	"strings"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// convection is an obstacle problem with a nonsymmetric operator.
func convection(d int) Builtin {
	b := Builtin{
		Name: "convection",
		Summary: "convection, diffusion and reaction in (0,1)³: −ηΔu + b·∇u + c·u ≥ −λ, u ≥ 0, b along the diagonal; " +
			"one-sided differences where the cell Péclet number requires them",
		Reference: "C¹ matching with u = 0 of the solution along one direction",
		Dimension: d,
		Exact:     true,
		Parameters: []Parameter{
			{"eta", 1, "diffusion η, positive"},
			{"speed", 2, "speed |b| along the diagonal, negative: towards the origin"},
			{"c", 1, "reaction c, positive"},
			{"lambda", 8, "load λ, positive"},
			{"at", 0.4, "distance of the free boundary from the origin, not negative"},
		},
		build: func(p *problem.Problem, v []float64) error { return buildConvection(p, v) },
	}
	if d < 3 {
		b.Name = fmt.Sprintf("convection%dd", d)
		b.Summary = fmt.Sprintf("convection, diffusion and reaction in (0,1)%s", []string{"", "", "²"}[d])
	}
	return b
}

func buildConvection(p *problem.Problem, v []float64) error {
	eta, speed, c, lambda, at := v[0], v[1], v[2], v[3], v[4]
	for i, name := range []string{"eta", "", "c", "lambda"} {
		if name != "" && !(v[i] > 0) {
			return fmt.Errorf("%s = %g: it must be positive", name, v[i])
		}
	}
	if at < 0 {
		return fmt.Errorf("at = %g: it must not be negative", at)
	}
	box(p, 0, 1)
	along := 1 / math.Sqrt(float64(p.Dimension))
	p.Diffusion.Value, p.Reaction.Value = eta, c
	p.Source.Value = -lambda
	for a := range p.Dimension {
		p.Velocity[a].Value = speed * along
	}
	p.Upwind = true
	root := math.Sqrt(speed*speed + 4*eta*c)
	r1, r2 := (speed+root)/(2*eta), (speed-root)/(2*eta)
	c1, c2 := -lambda/c*r2/(r1-r2), lambda/c*r1/(r1-r2)
	value := func(s float64) float64 {
		if s <= 0 {
			return 0
		}
		return float64(c1*math.Exp(r1*s)) + float64(c2*math.Exp(r2*s)) - lambda/c
	}
	if !finite(value(math.Sqrt(3))) {
		return fmt.Errorf("the solution is too large for float64 (exp(%.3g)): increase eta or reverse speed", r1)
	}
	p.Obstacle, p.Rows.Obstacle = zero, zeroRow
	p.Exact = func(q problem.Point) float64 { return value(float64(along*(q[0]+q[1]+q[2])) - at) }
	p.Boundary = p.Exact
	return nil
}

// varying is quartic with the variable diffusion κ = 1 + k·r²/2.
func varying(d int) Builtin {
	b := Builtin{
		Name: "varying",
		Summary: "diffusion κ = 1 + k·r²/2 in (−1,1)³, flat obstacle φ = 0, " +
			"a source for which u = max(r² − r0², 0)²",
		Reference: "manufactured solution",
		Dimension: d,
		Exact:     true,
		Parameters: []Parameter{
			{"r0", 0.7, "radius of the contact set, between 0 and 1"},
			{"k", 4, "growth of the diffusion, not negative"},
		},
		build: func(p *problem.Problem, v []float64) error {
			r0, k := v[0], v[1]
			if r0 <= 0 || r0 >= 1 {
				return fmt.Errorf("r0 = %g: it must be between 0 and 1", r0)
			}
			if k < 0 {
				return fmt.Errorf("k = %g: it must not be negative", k)
			}
			box(p, -1, 1)
			dim, r02 := float64(d), r0*r0
			kappa := func(r2 float64) float64 { return 1 + float64(k*r2/2) }
			p.Diffusion.Of = func(q problem.Point) float64 { return kappa(squares(q)) }
			p.Obstacle, p.Rows.Obstacle = zero, zeroRow
			p.Source.Of = func(q problem.Point) float64 {
				r2 := squares(q)
				s := r2 - r02
				if s <= 0 {
					return -8 * float64(r02*(1-s))
				}
				// div(κ∇u) = κΔu + ∇κ·∇u with ∇u = 4s·x, ∇κ = k·x.
				return -float64(kappa(r2)*4*(2*r2+float64(dim*s))) - float64(4*k*float64(s*r2))
			}
			p.Exact = quarticSolution(r02)
			p.Boundary = p.Exact
			return nil
		},
	}
	if d == 2 {
		b.Name = "varying2d"
		b.Summary = strings.Replace(b.Summary, "(−1,1)³", "(−1,1)²", 1)
	}
	return b
}
