package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Problem returns the option as an obstacle problem in the coordinates y on a grid of n interior points per axis. Its
// time is the time to maturity. Today's prices, y = 0, are the grid point Center. It returns the errors of Check.
func (o *Option) Problem(name string, n [3]int) (*problem.Problem, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	f, err := newFrame(o)
	if err != nil {
		return nil, err
	}
	w := newPayoffFunction(o, f)
	p := &problem.Problem{
		Name: name, Dimension: f.d, N: n,
		Diffusion: problem.Coefficient{Value: 0.5}, Reaction: problem.Coefficient{Value: o.Rate},
		Obstacle: w.at, Upwind: true,
	}
	half := o.halfWidth(f)
	for a := range f.d {
		h := 2 * half / float64(n[a]+1)
		center := float64(Center(n[a]))
		p.Lo[a], p.Hi[a] = -h*center, h*(float64(n[a]+1)-center)
		p.Velocity[a].Value = -f.drift[a]
	}
	if !o.Perpetual {
		o.evolve(p, f, w)
		return p, nil
	}
	if p.Exact = o.perpetualValue(f, w); p.Exact != nil {
		p.Boundary = p.Exact
	} else {
		p.Boundary = o.perpetualBound(f, w)
	}
	return p, nil
}

// Center returns the index, 1 to n, of today's price along an axis of n interior points.
func Center(n int) int { return (n + 1) / 2 }

// evolve adds the evolution in time. The boundary data are the larger of the payoff and the value without the
// right to exercise early.
func (o *Option) evolve(p *problem.Problem, f *frame, w *payoffFunction) {
	base := *p
	at := func(t float64) *problem.Problem {
		q := base
		if q.Boundary = w.at; t > 0 {
			e := newEuropean(o, f, w, t)
			q.Boundary = func(y problem.Point) float64 { return max(w.at(y), e.at(y)) }
		}
		return &q
	}
	p.Boundary = at(o.Maturity).Boundary
	p.Evolution = &problem.Evolution{
		End: o.Maturity, Steps: o.Steps, At: at, SteadyObstacles: true,
		Initial: newCellAverage(w, p).at,
	}
}

// halfWidth returns half the width of the domain in y.
func (o *Option) halfWidth(f *frame) float64 {
	width := o.width()
	if !o.Perpetual {
		drift := 0.0
		for _, m := range f.drift {
			drift = max(drift, math.Abs(m))
		}
		return width*math.Sqrt(o.Maturity) + drift*o.Maturity
	}
	half := width / math.Sqrt(o.Rate)
	if o.isLognormal() { // exact boundary data; the domain must contain the exercise boundary
		value, mu, sigma := o.lognormal(f)
		p := newPerpetual(o, mu, sigma)
		half = max(half, 1.25*math.Abs(math.Log(p.critical/value))/sigma)
	}
	return half
}

// Reach returns the range of an asset's price along the diagonal of the domain through today's prices,
// S₀·e^(∓Σ|Lᵢⱼ|·w), for descriptions.
func (o *Option) Reach(i int) (low, high float64) {
	f, err := newFrame(o)
	if err != nil || i >= f.d {
		return math.NaN(), math.NaN()
	}
	reach := 0.0
	for _, l := range f.lower[i] {
		reach += math.Abs(l) * o.halfWidth(f)
	}
	return f.spot[i] * math.Exp(-reach), f.spot[i] * math.Exp(reach)
}

// Prices returns the assets' prices as functions of a point of the domain.
func (o *Option) Prices() ([]problem.Function, error) {
	f, err := newFrame(o)
	if err != nil {
		return nil, err
	}
	out := make([]problem.Function, f.d)
	for i := range out {
		out[i] = func(y problem.Point) float64 { return f.prices(y)[i] }
	}
	return out, nil
}
