package option

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Quote is the value of an option today and its derivatives with respect to the assets' prices.
type Quote struct {
	Price    float64
	Delta    []float64   // ∂V/∂Sᵢ
	Gamma    [][]float64 // ∂²V/∂Sᵢ∂Sⱼ
	Exercise bool        // the option is exercised immediately at today's prices
}

// Quote computes price, delta and gamma from a solution u, [z][y][x], of p, which must be made by Problem or
// be a time step of such a problem. Today's prices are a grid point. The derivatives are central differences of
// fourth order (second order with one or two points along an axis), converted from y to S by the chain rule.
func (o *Option) Quote(p *problem.Problem, u []float64) (Quote, error) {
	f, err := newFrame(o)
	if err != nil {
		return Quote{}, err
	}
	g, err := newSamples(p, u, f.d)
	if err != nil {
		return Quote{}, err
	}
	q := Quote{Price: g.p.ValueAt(g.u, g.center)}
	q.Exercise = q.Price <= p.Obstacle(problem.Point{}) && q.Price > 0
	slope, curve := f.returns(g.derivatives())
	q.Delta, q.Gamma = make([]float64, f.d), make([][]float64, f.d)
	for i := range f.d {
		q.Delta[i] = slope[i] / f.spot[i]
		q.Gamma[i] = make([]float64, f.d)
		for j := range f.d {
			v := curve[i][j]
			if i == j {
				v -= slope[i]
			}
			q.Gamma[i][j] = v / (f.spot[i] * f.spot[j])
		}
	}
	return q, nil
}

type (
	vector [MaxAssets]float64
	matrix [MaxAssets][MaxAssets]float64
)

// returns converts first and second derivatives with respect to y to those with respect to x = log S: with
// y = L⁻¹·x, ∇ₓ = L⁻ᵀ∇ and the Hessian is L⁻ᵀ·H·L⁻¹.
func (f *frame) returns(slope vector, curve matrix) (s vector, c matrix) {
	for i := range f.d {
		for a := range f.d {
			s[i] += f.inverse[a][i] * slope[a]
			for j := range f.d {
				for b := range f.d {
					c[i][j] += f.inverse[a][i] * curve[a][b] * f.inverse[b][j]
				}
			}
		}
	}
	return s, c
}

// samples gives access to the values of a solution around today's prices.
type samples struct {
	p      *problem.Problem
	u      []float64
	center [3]int
	first  [MaxAssets][]float64 // weights of the first derivative along an axis, centred
	second [MaxAssets][]float64
}

func newSamples(p *problem.Problem, u []float64, d int) (*samples, error) {
	if p.Dimension != d || len(u) != p.Points() {
		return nil, fmt.Errorf("option: a %d-D solution of %d values does not fit %d assets and a grid of %d points",
			p.Dimension, len(u), d, p.Points())
	}
	g := &samples{p: p, u: u, center: [3]int{1, 1, 1}}
	for a := range d {
		h := p.Spacing(a)
		g.center[a] = Center(p.N[a])
		first, second := []float64{-0.5, 0, 0.5}, []float64{1, -2, 1}
		if p.N[a] >= 3 {
			first = []float64{1. / 12, -8. / 12, 0, 8. / 12, -1. / 12}
			second = []float64{-1. / 12, 16. / 12, -30. / 12, 16. / 12, -1. / 12}
		}
		for i := range first {
			first[i] /= h
			second[i] /= h * h
		}
		g.first[a], g.second[a] = first, second
	}
	return g, nil
}

// derivatives returns the first and second derivatives at the center.
func (g *samples) derivatives() (s vector, c matrix) {
	for a := range g.p.Dimension {
		s[a], c[a][a] = g.along(a, g.first[a], g.center), g.along(a, g.second[a], g.center)
		for b := range a {
			sum := 0.0
			for i, w := range g.first[b] {
				idx := g.center
				idx[b] += i - len(g.first[b])/2
				sum += w * g.along(a, g.first[a], idx)
			}
			c[a][b], c[b][a] = sum, sum
		}
	}
	return s, c
}

// along returns a weighted sum of values along an axis, centred at idx.
func (g *samples) along(a int, weights []float64, idx [3]int) float64 {
	sum := 0.0
	for i, w := range weights {
		if w != 0 {
			q := idx
			q[a] += i - len(weights)/2
			sum += w * g.p.ValueAt(g.u, q)
		}
	}
	return sum
}
