package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// perpetual is the value of a perpetual option on one lognormal asset. Let β be the root of ½σ²β² + μβ = r
// below 0 for a put and above 1 for a call. The option is exercised at G* = Kβ/(β − 1) and its value before is
// |G* − K|·(G/G*)^β (McKean 1965; Merton, Bell Journal of Economics 4, 1973).
type perpetual struct {
	sign, strike    float64
	exponent        float64 // β
	critical, value float64 // G* and the payoff there
}

func newPerpetual(o *Option, mu, sigma float64) perpetual {
	p := perpetual{sign: -1, strike: o.Strike}
	variance := sigma * sigma
	root := math.Sqrt(float64(mu*mu) + 2*variance*o.Rate)
	if p.exponent = (-mu - root) / variance; o.Payoff == Call {
		p.sign, p.exponent = 1, (root-mu)/variance
	}
	p.critical = o.Strike * p.exponent / (p.exponent - 1)
	p.value = p.sign * (p.critical - p.strike)
	return p
}

// at returns the value for a price with the logarithm log.
func (p *perpetual) at(log float64) float64 {
	if g := math.Exp(log); p.sign*(g-p.critical) >= 0 {
		return p.sign * (g - p.strike)
	}
	return p.value * math.Exp(p.exponent*(log-math.Log(p.critical)))
}

// perpetualValue returns the exact value of a perpetual option as a function of y, or nil if there is no closed form.
func (o *Option) perpetualValue(f *frame, w *payoffFunction) problem.Function {
	if !o.isLognormal() {
		return nil
	}
	_, mu, sigma := o.lognormal(f)
	p := newPerpetual(o, mu, sigma)
	return func(y problem.Point) float64 { return p.at(w.log(0, y)) }
}

// perpetualBound returns boundary data for a perpetual option without a closed form: the payoff or, for a put on the
// minimum or a call on the maximum, the largest value of an option on a single asset, which is a lower bound.
func (o *Option) perpetualBound(f *frame, w *payoffFunction) problem.Function {
	if !(o.Payoff == Put && o.Basket == Minimum || o.Payoff == Call && o.Basket == Maximum) {
		return w.at
	}
	var alone [MaxAssets]perpetual
	for i, a := range o.Assets {
		alone[i] = newPerpetual(o, f.growth[i]-float64(a.Volatility*a.Volatility)/2, a.Volatility)
	}
	return func(y problem.Point) float64 {
		best := w.at(y)
		for i := range f.d {
			if v := alone[i].at(w.log(i, y)); v > best {
				best = v
			}
		}
		return best
	}
}
