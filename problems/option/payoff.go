package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// payoffFunction is the payoff as a function of y. An evaluation needs one exponential, for an arithmetic
// basket one per asset.
type payoffFunction struct {
	sign   float64 // -1 for a put, 1 for a call
	basket Basket
	strike float64
	level  float64 // logarithm of strike
	d      int
	// The logarithm of an asset's price is offset + slope·y. A geometric basket has one entry for the whole basket.
	offset [MaxAssets]float64
	slope  [MaxAssets]problem.Point
	weight [MaxAssets]float64
}

func newPayoffFunction(o *Option, f *frame) *payoffFunction {
	w := &payoffFunction{sign: -1, basket: o.Basket, strike: o.Strike, level: math.Log(o.Strike), d: f.d}
	if o.Payoff == Call {
		w.sign = 1
	}
	for i := range f.d {
		w.offset[i], w.slope[i] = math.Log(f.spot[i]), f.lower[i]
		w.weight[i] = o.weight(i)
	}
	if o.isLognormal() {
		w.basket = Geometric
		w.merge()
	}
	return w
}

// merge replaces the assets of a geometric basket by the basket.
func (w *payoffFunction) merge() {
	var offset float64
	var slope problem.Point
	for i := range w.d {
		offset += w.weight[i] * w.offset[i]
		for j := range slope {
			slope[j] += w.weight[i] * w.slope[i][j]
		}
	}
	w.d = 1
	w.offset[0], w.slope[0] = offset, slope
	w.weight[0] = 1
}

func (w *payoffFunction) log(i int, y problem.Point) float64 {
	s := &w.slope[i]
	return w.offset[i] + float64(s[0]*y[0]) + float64(s[1]*y[1]) + float64(s[2]*y[2])
}

// at returns the payoff.
func (w *payoffFunction) at(y problem.Point) float64 {
	if v := w.sign * (w.value(y) - w.strike); v > 0 {
		return v
	}
	return 0
}

// value returns the value of the basket.
func (w *payoffFunction) value(y problem.Point) float64 {
	switch w.basket {
	case Minimum, Maximum:
		_, v := w.extreme(y)
		return math.Exp(v)
	case Arithmetic:
		sum := 0.0
		for i := range w.d {
			sum += float64(w.weight[i] * math.Exp(w.log(i, y)))
		}
		return sum
	}
	return math.Exp(w.log(0, y))
}

// extreme returns the asset with the minimum or maximum price, and the logarithm of that price.
func (w *payoffFunction) extreme(y problem.Point) (int, float64) {
	which, best := 0, w.log(0, y)
	for i := 1; i < w.d; i++ {
		if v := w.log(i, y); w.basket == Minimum && v < best || w.basket == Maximum && v > best {
			which, best = i, v
		}
	}
	return which, best
}

// branch returns the number of the smooth piece of the payoff at y, 0 where the payoff is 0.
func (w *payoffFunction) branch(y problem.Point) int {
	which, log := 0, 0.0
	switch w.basket {
	case Minimum, Maximum:
		which, log = w.extreme(y)
	case Arithmetic:
		log = math.Log(w.value(y))
	default:
		log = w.log(0, y)
	}
	if w.sign*(log-w.level) > 0 {
		return 1 + which
	}
	return 0
}
