package verify

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// CheckReaction returns an error if the reaction is negative somewhere and A, in time steps A + I/Δt, is not proved to
// be an M-matrix. Of the time steps it checks the first, the middle and the last. A
// reaction that is not negative costs one evaluation per point, a negative one the search for w.
func CheckReaction(p *problem.Problem, e problem.Executor) error {
	steps := p.Steps()
	if steps == 0 {
		return checkReaction(p, "", e)
	}
	for _, m := range []int{1, (steps + 1) / 2, steps} {
		when := fmt.Sprintf(" with 1/Δt, at t = %.6g,", p.Evolution.Time(m))
		if err := checkReaction(p.AtStep(m), when, e); err != nil {
			return err
		}
	}
	return nil
}

func checkReaction(p *problem.Problem, when string, e problem.Executor) error {
	least, at := p.Reaction.Value, [3]int{1, 1, 1}
	if !p.Reaction.Constant() {
		least = p.Reaction.Of(p.At(1, 1, 1))
		for _, idx := range (problem.Box{Hi: p.N}).Each {
			if c := p.Reaction.Of(p.At(idx[0], idx[1], idx[2])); c < least {
				least, at = c, idx
			}
		}
	}
	if !(least < 0) {
		return nil
	}
	remedy := "raise the reaction or the diffusion, or shrink the domain"
	if when != "" {
		remedy = "take more time steps"
	}
	out, err := Evaluate(p, make([]float64, p.Points()), e)
	if err != nil {
		return fmt.Errorf("the reaction%s is %.6g at %.6g: %w; %s", when, least, p.Location(at), err, remedy)
	}
	if out.Certificate.MMatrix {
		return nil
	}
	return fmt.Errorf("the reaction%s is %.6g at %.6g, and A is not an M-matrix: %s; %s", when, least, p.Location(at),
		out.Certificate.Why, remedy)
}
