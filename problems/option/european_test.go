package option

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// The boundary data are compared with European values of the lattice: equal where there is a closed form, similar
// for an arithmetic basket, and a bound for a minimum or maximum.
func TestEuropeanData(t *testing.T) {
	at := func(o *Option) float64 {
		f, err := newFrame(o)
		require.NoError(t, err)
		return newEuropean(o, f, newPayoffFunction(o, f), o.Maturity).at(problem.Point{})
	}
	tree := func(o *Option) float64 {
		l := latticeOf(o)
		l.early = false
		return l.limit(100)
	}
	for _, kind := range []Payoff{Put, Call} {
		single := one(kind, 0.03)
		require.InDelta(t, blackScholes(float64(2*kind-1), 100, 100, 0.05, 0.03, 0.2, 1), at(single), 1e-12)
		o := several(kind, Geometric, 2)
		require.InEpsilon(t, tree(o), at(o), 2e-3)
		o.Basket, o.Weights = Arithmetic, []float64{0.3, 0.7}
		require.InEpsilon(t, tree(o), at(o), 1e-2)
		o.Weights = nil
		o.Basket = Minimum
		if o.Payoff == Call {
			o.Basket = Maximum
		}
		require.Less(t, at(o), tree(o), "the right to choose has a value")
		o.Basket = Minimum + Maximum - o.Basket
		require.Greater(t, at(o), tree(o))
	}
	o := several(Put, Arithmetic, 3) // near maturity the value is the payoff
	f, err := newFrame(o)
	require.NoError(t, err)
	w := newPayoffFunction(o, f)
	soon := newEuropean(o, f, w, 1e-12)
	for y := -4.0; y <= 4; y++ {
		q := problem.Point{y, -y / 2, y / 3}
		require.InDelta(t, w.at(q), soon.at(q), 1e-3)
	}
}

// Unlike the payoff, the boundary data have no kink at the strike.
func TestDataAreSmooth(t *testing.T) {
	const h = 1e-3
	for _, kind := range []Payoff{Put, Call} {
		for basket := Minimum; basket <= Geometric; basket++ {
			o := several(kind, basket, 2)
			p, err := o.Problem("p", [3]int{9, 9, 1})
			require.NoError(t, err)
			bend := func(f problem.Function, x float64) float64 {
				v := func(x float64) float64 { return f(problem.Point{p.Hi[0], x}) }
				return math.Abs(v(x+h)-2*v(x)+v(x-h)) / h
			}
			payoff, data := 0.0, 0.0
			for x := p.Lo[1] + h; x < p.Hi[1]-h; x += h {
				if at := bend(p.Obstacle, x); at > payoff && p.Obstacle(problem.Point{p.Hi[0], x}) < 1 {
					payoff, data = at, bend(p.Boundary, x)
				}
			}
			if payoff > 1 { // this face has the strike
				require.Less(t, data, payoff/10, "%v on %v", kind, basket)
			}
		}
	}
}
