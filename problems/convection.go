package problems

import (
	"fmt"
	"math"
	"strings"

	"github.com/p2pdc/p2pdc/internal/kernel"
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
		build: buildConvection,
	}
	if d < 3 {
		b.Name = fmt.Sprintf("convection%dd", d)
		b.Summary = fmt.Sprintf("convection, diffusion and reaction in (0,1)%s", exponents[d])
	}
	return b
}

func buildConvection(p *problem.Problem, v []float64) error {
	eta, speed, c, lambda, at := v[0], v[1], v[2], v[3], v[4]
	if err := positive(v, "eta", "", "c", "lambda"); err != nil {
		return err
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
	if !kernel.Finite(value(math.Sqrt(3))) {
		return fmt.Errorf("the solution is too large for float64 (exp(%.3g)): increase eta or reverse speed", r1)
	}
	flat(p)
	setExact(p, func(q problem.Point) float64 { return value(float64(along*(q[0]+q[1]+q[2])) - at) })
	return nil
}

// varying is quartic with the variable diffusion κ = 1 + k·r²/2.
func varying(d int) Builtin {
	b := quartic(d)
	b.Name = strings.Replace(b.Name, "quartic", "varying", 1)
	b.Summary = fmt.Sprintf("diffusion κ = 1 + k·r²/2 in (−1,1)%s, flat obstacle φ = 0, "+
		"a source for which u = max(r² − r0², 0)²", exponents[d])
	b.Parameters = append(b.Parameters, Parameter{"k", 4, "growth of the diffusion, not negative"})
	build := b.build
	b.build = func(p *problem.Problem, v []float64) error {
		if err := build(p, v); err != nil {
			return err
		}
		k := v[1]
		if k < 0 {
			return fmt.Errorf("k = %g: it must not be negative", k)
		}
		dim, r02 := float64(d), v[0]*v[0]
		kappa := func(r2 float64) float64 { return 1 + float64(k*r2/2) }
		p.Diffusion.Of = func(q problem.Point) float64 { return kappa(squares(q)) }
		p.Source.Of = func(q problem.Point) float64 {
			r2 := squares(q)
			s := r2 - r02
			if s <= 0 {
				return -8 * float64(r02*(1-s))
			}
			// div(κ∇u) = κΔu + ∇κ·∇u with ∇u = 4s·x, ∇κ = k·x.
			return -float64(kappa(r2)*4*(2*r2+float64(dim*s))) - float64(4*k*float64(s*r2))
		}
		return nil
	}
	return b
}
