package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// reward is the payoff as a function of y, cheap enough for every point of a grid: one
// exponential, of an arithmetic basket one an asset.
type reward struct {
	sign   float64 // of B − K: -1 put, 1 call
	basket Basket
	strike float64
	level  float64 // its logarithm
	d      int
	// The logarithm of an asset's price (of the whole geometric basket: one line only) is
	// offset + slope·y.
	offset [MaxAssets]float64
	slope  [MaxAssets]problem.Point
	weight [MaxAssets]float64
}

func newReward(o *Option, f *frame) *reward {
	w := &reward{sign: -1, basket: o.Basket, strike: o.Strike, level: math.Log(o.Strike), d: f.d}
	if o.Payoff == Call {
		w.sign = 1
	}
	for i := range f.d {
		w.offset[i], w.slope[i], w.weight[i] = math.Log(f.spot[i]), f.lower[i], o.weight(i)
	}
	if o.closed() {
		w.basket = Geometric
		w.merge()
	}
	return w
}

// merge makes one line of those of a geometric basket.
func (w *reward) merge() {
	var offset float64
	var slope problem.Point
	for i := range w.d {
		offset += w.weight[i] * w.offset[i]
		for j := range slope {
			slope[j] += w.weight[i] * w.slope[i][j]
		}
	}
	w.d, w.offset[0], w.slope[0], w.weight[0] = 1, offset, slope, 1
}

func (w *reward) log(i int, y problem.Point) float64 {
	s := &w.slope[i]
	return w.offset[i] + float64(s[0]*y[0]) + float64(s[1]*y[1]) + float64(s[2]*y[2])
}

// at is the payoff.
func (w *reward) at(y problem.Point) float64 {
	if v := w.sign * (w.value(y) - w.strike); v > 0 {
		return v
	}
	return 0
}

// value is the basket's.
func (w *reward) value(y problem.Point) float64 {
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

// extreme is the asset that a minimum or maximum takes, and its logarithm.
func (w *reward) extreme(y problem.Point) (int, float64) {
	which, best := 0, w.log(0, y)
	for i := 1; i < w.d; i++ {
		if v := w.log(i, y); w.basket == Minimum && v < best || w.basket == Maximum && v > best {
			which, best = i, v
		}
	}
	return which, best
}

// branch numbers the smooth pieces of the payoff: 0 where it is nothing.
func (w *reward) branch(y problem.Point) int {
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
