package option

import (
	"math"
)

// lattice prices an American option (European if early is false) on the multinomial tree of Boyle, Evnine and
// Gibbs (Review of Financial Studies 2, 1989; for one asset that of Cox, Ross and Rubinstein with probabilities
// of first order). In every step each asset moves up or down by e^{σ√Δt}, in 2^d combinations. It shares no code
// with the package.
type lattice struct {
	spot, sigma, yield []float64
	rho                [3][3]float64
	rate, years        float64
	pays               func(s []float64) float64
	early              bool
}

func latticeOf(o *Option) *lattice {
	l := &lattice{rho: o.Correlation, rate: o.Rate, years: o.Maturity, early: true}
	for _, a := range o.Assets {
		l.spot, l.sigma, l.yield = append(l.spot, a.Price), append(l.sigma, a.Volatility), append(l.yield, a.Dividend)
	}
	l.pays = func(s []float64) float64 {
		b := s[0]
		switch o.Basket {
		case Minimum:
			for _, v := range s[1:] {
				b = math.Min(b, v)
			}
		case Maximum:
			for _, v := range s[1:] {
				b = math.Max(b, v)
			}
		case Arithmetic:
			b = 0
			for i, v := range s {
				b += o.weight(i) * v
			}
		case Geometric:
			b = 1
			for i, v := range s {
				b *= math.Pow(v, o.weight(i))
			}
		}
		if o.Payoff == Put {
			return math.Max(o.Strike-b, 0)
		}
		return math.Max(b-o.Strike, 0)
	}
	return l
}

// price returns the price on a tree of that many steps.
func (l *lattice) price(steps int) float64 {
	d := len(l.spot)
	dt := l.years / float64(steps)
	discount := math.Exp(-l.rate * dt)
	side := steps + 1
	prob := make([]float64, 1<<d)
	for move := range prob {
		p := 1.0
		for i := range d {
			x := float64(2*(move>>i&1) - 1)
			p += x * math.Sqrt(dt) * (l.rate - l.yield[i] - l.sigma[i]*l.sigma[i]/2) / l.sigma[i]
			for j := range i {
				p += x * float64(2*(move>>j&1)-1) * l.rho[i][j]
			}
		}
		prob[move] = discount * p / float64(len(prob))
	}
	stride := []int{1, side, side * side}
	points := 1
	for range d {
		points *= side
	}
	v := make([]float64, points)
	s := make([]float64, d)
	prices := make([][]float64, d)
	for n := steps; n >= 0; n-- {
		for i := range d {
			prices[i] = prices[i][:0]
			for j := range n + 1 {
				prices[i] = append(prices[i], l.spot[i]*math.Exp(l.sigma[i]*math.Sqrt(dt)*float64(2*j-n)))
			}
		}
		var top [3]int
		for i := range d {
			top[i] = n
		}
		for k := 0; k <= top[2]; k++ {
			for j := 0; j <= top[1]; j++ {
				for i := 0; i <= top[0]; i++ {
					idx := [3]int{i, j, k}
					at := 0
					for a := range d {
						s[a] = prices[a][idx[a]]
						at += idx[a] * stride[a]
					}
					hold := 0.0
					if n < steps {
						for move, p := range prob {
							to := at
							for a := range d {
								to += (move >> a & 1) * stride[a]
							}
							hold += p * v[to]
						}
					}
					if n == steps || l.early {
						hold = math.Max(hold, l.pays(s))
					}
					v[at] = hold
				}
			}
		}
	}
	return v[0]
}

// limit estimates the price for infinitely many steps: the mean of neighbouring trees removes the alternation
// between odd and even steps, and the term in 1/steps is extrapolated.
func (l *lattice) limit(steps int) float64 {
	mean := func(n int) float64 { return (l.price(n) + l.price(n+1)) / 2 }
	return 2*mean(steps) - mean(steps/2)
}
