package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// european is what the option would be worth if it could be exercised at maturity only:
// data for the boundary of the domain, as smooth as the solution, where the payoff and
// bounds made of it have kinks. One asset and the geometric basket have a closed form
// (Black and Scholes); of an arithmetic basket the lognormal law with the same two
// moments is taken (Levy, J. International Money and Finance 11, 1992); of a minimum or
// maximum the options on each asset alone, and of those the least or the greatest.
type european struct {
	reward   *reward
	discount float64
	forward  [MaxAssets]float64            // logarithm of what a line's value grows by
	deviate  [MaxAssets]float64            // standard deviation of its logarithm at maturity
	joint    [MaxAssets][MaxAssets]float64 // e^(covariance), of an arithmetic basket
}

// newEuropean is the value at the time tau to maturity, positive.
func newEuropean(o *Option, f *frame, w *reward, tau float64) *european {
	e := &european{reward: w, discount: math.Exp(-o.Rate * tau)}
	if w.basket == Geometric {
		_, mu, sigma := o.lognormal(f)
		e.forward[0] = (mu + float64(sigma*sigma)/2) * tau
		e.deviate[0] = sigma * math.Sqrt(tau)
		return e
	}
	for i := range f.d {
		e.forward[i] = f.growth[i] * tau
		e.deviate[i] = o.Assets[i].Volatility * math.Sqrt(tau)
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
	w := e.reward
	switch w.basket {
	case Arithmetic:
		return e.fitted(y)
	case Geometric:
		return e.black(w.log(0, y)+e.forward[0], e.deviate[0])
	}
	greatest := (w.basket == Maximum) == (w.sign > 0) // a put on the minimum, a call on the maximum
	best := e.black(w.log(0, y)+e.forward[0], e.deviate[0])
	for i := 1; i < w.d; i++ {
		if v := e.black(w.log(i, y)+e.forward[i], e.deviate[i]); (v > best) == greatest {
			best = v
		}
	}
	return best
}

// fitted is the value of an arithmetic basket. Forwards are in units of the largest, so
// that squares stay numbers.
func (e *european) fitted(y problem.Point) float64 {
	w := e.reward
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
	return e.black(top+math.Log(first), math.Sqrt(max(math.Log(second/(first*first)), 0)))
}

// black is Black's formula for a lognormal value with the forward e^forward.
func (e *european) black(forward, deviate float64) float64 {
	w := e.reward
	if deviate < leastDeviate {
		return e.discount * max(w.sign*(math.Exp(forward)-w.strike), 0)
	}
	d := (forward-w.level)/deviate + deviate/2
	v := w.sign * (float64(math.Exp(forward)*gauss(w.sign*d)) - float64(w.strike*gauss(w.sign*(d-deviate))))
	return e.discount * max(v, 0)
}

// leastDeviate is where the distribution is a point for all that doubles can tell.
const leastDeviate = 1e-12

// gauss is the standard normal distribution function.
func gauss(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
