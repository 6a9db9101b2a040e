package problems

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// front is a travelling front: the free boundary of u moves along the diagonal of the unit cube at a constant speed.
func front(d int) Builtin {
	b := Builtin{
		Name: "front",
		Summary: "travelling front in (0,1)³: u_t − κΔu ≥ −λ, u ≥ 0; " +
			"the free boundary moves along the diagonal at constant speed",
		Reference: "travelling wave by C¹ matching with u = 0",
		Dimension: d,
		Exact:     true,
		Parameters: []Parameter{
			{"kappa", 1, "diffusion κ, positive"},
			{"lambda", 4, "load λ, positive"},
			{"speed", 1, "speed c of the front, positive"},
			{"at", 0.3, "distance of the front from the origin at t = 0, not negative"},
			{"end", 0.4, "end time, positive"},
			{"steps", 16, "time steps of implicit Euler, a whole number from 1 on"},
		},
		build: buildFront,
	}
	if d < 3 {
		b.Name = fmt.Sprintf("front%dd", d)
		b.Summary = fmt.Sprintf("the travelling front in (0,1)%s", exponents[d])
	}
	return b
}

func buildFront(p *problem.Problem, v []float64) error {
	w := wave{kappa: v[0], lambda: v[1], speed: v[2], at: v[3], along: 1 / math.Sqrt(float64(p.Dimension))}
	end, steps := v[4], v[5]
	if err := positive(v, "kappa", "lambda", "speed", "", "end"); err != nil {
		return err
	}
	switch {
	case w.at < 0:
		return fmt.Errorf("at = %g: it must not be negative", w.at)
	case steps < 1 || steps > problem.MaxSteps || steps != math.Floor(steps):
		return fmt.Errorf("steps = %g: want a whole number from 1 to %d", steps, problem.MaxSteps)
	case !kernel.Finite(w.value(w.speed*end + w.at)):
		return fmt.Errorf("the solution at t = %g is too large for float64; reduce speed or end", end)
	}
	box(p, 0, 1)
	p.Diffusion.Value, p.Source.Value = w.kappa, -w.lambda
	flat(p)
	base := *p
	at := func(t float64) *problem.Problem {
		q := base
		setExact(&q, func(x problem.Point) float64 {
			return w.value(float64(w.speed*t) + w.at - float64(w.along*(x[0]+x[1]+x[2])))
		})
		return &q
	}
	setExact(p, at(end).Exact)
	p.Evolution = &problem.Evolution{End: end, Steps: int(steps), Initial: at(0).Exact, At: at, SteadyObstacles: true}
	return nil
}

// wave is the profile of the front.
type wave struct{ kappa, lambda, speed, at, along float64 }

// value returns u at the distance s behind the front: (λκ/c²)(e^(cs/κ) − cs/κ − 1).
func (w wave) value(s float64) float64 {
	if s <= 0 {
		return 0
	}
	x := w.speed * s / w.kappa
	return w.lambda * w.kappa / float64(w.speed*w.speed) * (math.Expm1(x) - x)
}
