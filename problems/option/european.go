package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// european is the value of the option if it can be exercised at maturity only. It serves as boundary data
// that are as smooth as the solution; the payoff and bounds derived from it have kinks.
//
// One asset and the geometric basket have a closed form (Black and Scholes). An arithmetic basket is
// approximated by the lognormal distribution with the same first two moments (Levy, J. International Money
// and Finance 11, 1992). A minimum or maximum is bounded by the options on the single assets.
type european struct {
	payoff    *payoffFunction
	discount  float64
	forward   [MaxAssets]float64            // logarithm of the growth until maturity
	deviation [MaxAssets]float64            // standard deviation of the logarithm at maturity
	joint     [MaxAssets][MaxAssets]float64 // e^(covariance) for an arithmetic basket
}

// newEuropean returns the value at the positive time tau to maturity.
func newEuropean(o *Option, f *frame, w *payoffFunction, tau float64) *european {
	e := &european{payoff: w, discount: math.Exp(-o.Rate * tau)}
	if w.basket == Geometric {
		_, mu, sigma := o.lognormal(f)
		e.forward[0] = (mu + float64(sigma*sigma)/2) * tau
		e.deviation[0] = sigma * math.Sqrt(tau)
		return e
	}
	for i := range f.d {
		e.forward[i] = f.growth[i] * tau
		e.deviation[i] = o.Assets[i].Volatility * math.Sqrt(tau)
		for j := range f.d {
			covariance := 0.0
			for k := range f.d {
				covariance += f.lower[i][k] * f.lower[j][k]
			}
			e.joint[i][j] = math.Exp(covariance * tau)
		}
	}
	return e
}

func (e *european) at(y problem.Point) float64 {
	w := e.payoff
	switch w.basket {
	case Arithmetic:
		return e.momentMatched(y)
	case Geometric:
		return e.blackFormula(w.log(0, y)+e.forward[0], e.deviation[0])
	}
	greatest := (w.basket == Maximum) == (w.sign > 0) // put on the minimum or call on the maximum
	best := e.blackFormula(w.log(0, y)+e.forward[0], e.deviation[0])
	for i := 1; i < w.d; i++ {
		if v := e.blackFormula(w.log(i, y)+e.forward[i], e.deviation[i]); (v > best) == greatest {
			best = v
		}
	}
	return best
}

// momentMatched returns the value of an arithmetic basket. Forwards are scaled by the largest, so that squares
// do not overflow.
func (e *european) momentMatched(y problem.Point) float64 {
	w := e.payoff
	var log, part [MaxAssets]float64
	top := math.Inf(-1)
	for i := range w.d {
		log[i] = w.log(i, y) + e.forward[i]
		top = max(top, log[i])
	}
	first, second := 0.0, 0.0
	for i := range w.d {
		part[i] = w.weight[i] * math.Exp(log[i]-top)
		first += part[i]
		for j := range i {
			second += 2 * part[i] * part[j] * e.joint[i][j]
		}
		second += part[i] * part[i] * e.joint[i][i]
	}
	return e.blackFormula(top+math.Log(first), math.Sqrt(max(math.Log(second/(first*first)), 0)))
}

// blackFormula returns Black's formula for a lognormal value with the forward e^forward.
func (e *european) blackFormula(forward, deviate float64) float64 {
	w := e.payoff
	if deviate < minDeviation {
		return e.discount * max(w.sign*(math.Exp(forward)-w.strike), 0)
	}
	d := (forward-w.level)/deviate + deviate/2
	v := w.sign * (float64(math.Exp(forward)*normalCDF(w.sign*d)) - float64(w.strike*normalCDF(w.sign*(d-deviate))))
	return e.discount * max(v, 0)
}

// minDeviation is the standard deviation below which the distribution counts as a point.
const minDeviation = 1e-12

// normalCDF is the standard normal distribution function.
func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
