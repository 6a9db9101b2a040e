package option

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestInvalidOptionsAreRefused(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, change := range map[string]func(o *Option){
		"assets: 0 of them":    func(o *Option) { o.Assets = nil },
		"assets: 4 of them":    func(o *Option) { o.Assets = make([]Asset, 4) },
		"payoff: it must be":   func(o *Option) { o.Payoff = 2 },
		"basket: it must be":   func(o *Option) { o.Basket = -1 },
		"strike: 0: it must":   func(o *Option) { o.Strike = 0 },
		"strike: NaN: it must": func(o *Option) { o.Strike = nan },
		"rate: -Inf: it must":  func(o *Option) { o.Rate = -inf },
		"steps: 2: with the negative rate -2 a step of implicit Euler has a solution only if there are more than 2": func(o *Option) {
			o.Rate, o.Maturity, o.Steps = -2, 1, 2
		},
		"rate: NaN":        func(o *Option) { o.Rate = nan },
		"width: 0.5: want": func(o *Option) { o.Width = 0.5 },
		"width: NaN: want": func(o *Option) { o.Width = nan },
		"maturity: 0: it must be positive and finite; an option that never expires is perpetual": func(o *Option) { o.Maturity = 0 },
		"maturity: -1: it must":                    func(o *Option) { o.Maturity = -1 },
		"maturity: +Inf: it must":                  func(o *Option) { o.Maturity = inf },
		"steps: 0: there may be 1 to 1048576":      func(o *Option) { o.Steps = 0 },
		"assets[2].price: -1: it must be positive": func(o *Option) { o.Assets[1].Price = -1 },
		"assets[1].price: NaN":                     func(o *Option) { o.Assets[0].Price = nan },
		"assets[3].volatility: 0: it must":         func(o *Option) { o.Assets[2].Volatility = 0 },
		"assets[1].dividend: NaN":                  func(o *Option) { o.Assets[0].Dividend = nan },
		"assets[1].volatility: 50: the domain":     func(o *Option) { o.Assets[0].Volatility = 50 },
		"assets[2].dividend: -500: until maturity": func(o *Option) { o.Assets[1].Dividend = -500 },
		"weights: 2 of them for 3":                 func(o *Option) { o.Weights = []float64{0.5, 0.5} },
		"weights[2]: 0: it must be positive": func(o *Option) {
			o.Weights = []float64{0.5, 0,
				0.5}
		},
		"weights: their sum is 1.5; it must be 1": func(o *Option) {
			o.Weights = []float64{0.5, 0.5,
				0.5}
		},
		"correlation[2]: 0.9 on the diagonal":                     func(o *Option) { o.Correlation[1][1] = 0.9 },
		"correlation[1]: 1.5 in column 3":                         func(o *Option) { o.Correlation[0][2] = 1.5 },
		"correlation[1]: NaN in column 2":                         func(o *Option) { o.Correlation[0][1] = nan },
		"correlation[1]: 0.4 in column 2, but 0.5 in":             func(o *Option) { o.Correlation[0][1] = 0.4 },
		"not positive definite (its smallest eigenvalue is -0.8)": func(o *Option) { o.Correlation = Correlated(-0.9) },
		"not positive definite (its smallest eigenvalue is":       func(o *Option) { o.Correlation = Correlated(1) },
		"rate: 0: a perpetual option":                             func(o *Option) { o.Perpetual, o.Rate = true, 0 },
		"rate: -0.01: a perpetual option":                         func(o *Option) { o.Perpetual, o.Rate = true, -0.01 },
		"assets[2].dividend: 0: a perpetual call": func(o *Option) {
			o.Perpetual, o.Payoff,
				o.Assets[1].Dividend = true, Call, 0
		},
	} {
		o := several(Put, Minimum, 3)
		change(o)
		err := o.Check()
		require.ErrorContains(t, err, want)
		var e *InputError
		require.ErrorAs(t, err, &e)
		_, err = o.Problem("p", [3]int{3, 3, 3})
		require.ErrorAs(t, err, &e)
	}
}

// Every option that passes Check is a valid problem: values are finite, the payoff is nowhere above the boundary
// data, and today's prices are a grid point.
func TestValidOptionsAreProblems(t *testing.T) {
	passed, least := 0, 20
	if testing.Short() { // a fifth of the draws
		least = 2
	}
	defer func() { require.Greater(t, passed, least) }()
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 3).Draw(t, "assets")
		o := &Option{
			Payoff: Payoff(rapid.IntRange(0, 1).Draw(t, "payoff")), Basket: Basket(rapid.IntRange(0, 3).Draw(t,
				"basket")),
			Strike: rapid.Float64Range(1e-3, 1e4).Draw(t, "strike"), Rate: rapid.Float64Range(0, 0.3).Draw(t, "rate"),
			Perpetual: rapid.Bool().Draw(t, "perpetual"),
			Maturity:  rapid.Float64Range(1e-3, 30).Draw(t, "maturity"), Steps: rapid.IntRange(1, 4).Draw(t, "steps"),
		}
		for range d {
			o.Assets = append(o.Assets, Asset{
				rapid.Float64Range(1e-2, 1e4).Draw(t, "price"), rapid.Float64Range(1e-3, 2).Draw(t,
					"volatility"), rapid.Float64Range(-0.1, 0.3).Draw(t, "dividend"),
			})
		}
		o.Correlation = Correlated(rapid.Float64Range(-1, 1).Draw(t, "correlation"))
		n := [3]int{1, 1, 1}
		for a := range d {
			n[a] = rapid.IntRange(1, 7).Draw(t, "n")
		}
		p, err := o.Problem("p", n)
		if err != nil {
			var e *InputError
			require.ErrorAs(t, err, &e)
			return
		}
		passed++
		today := p.At(Center(n[0]), Center(n[1]), Center(n[2]))
		for a := range d {
			require.InDelta(t, 0, today[a], 1e-9*p.Hi[a])
		}
		require.NoError(t, p.Validate())
		for m := range p.Steps() + 1 {
			q := p.AtStep(m)
			require.NoError(t, q.Validate())
			v := p.Obstacle(problem.Point{})
			require.False(t, math.IsNaN(v) || v < 0)
		}
		u := make([]float64, p.Points())
		_, err = o.Quote(p, u)
		require.NoError(t, err)
		_, err = o.Critical(p, u)
		require.NoError(t, err)
	})
}

// The frame transforms the covariance into the identity: L·Lᵀ = C and L·L⁻¹ = 1.
func TestFrame(t *testing.T) {
	o := several(Put, Minimum, 3)
	f, err := newFrame(o)
	require.NoError(t, err)
	for i := range 3 {
		for j := range 3 {
			covariance, one := 0.0, 0.0
			for k := range 3 {
				covariance += f.lower[i][k] * f.lower[j][k]
				one += f.lower[i][k] * f.inverse[k][j]
			}
			require.InDelta(t, o.Correlation[i][j]*o.Assets[i].Volatility*o.Assets[j].Volatility, covariance, 1e-15)
			require.InDelta(t, Uncorrelated()[i][j], one, 1e-14)
		}
	}
	along := f.ray()
	for i, s := range f.prices(problem.Point{0.1 * along[0], 0.1 * along[1], 0.1 * along[2]}) {
		require.InDelta(t, o.Assets[i].Price*math.Exp(0.1), s, 1e-9)
	}
}

// The payoff as a function of y equals the formula applied to the prices there.
func TestPayoffFunctions(t *testing.T) {
	for _, kind := range []Payoff{Put, Call} {
		for basket := Minimum; basket <= Geometric; basket++ {
			o := several(kind, basket, 3)
			o.Weights = []float64{0.2, 0.3, 0.5}
			f, err := newFrame(o)
			require.NoError(t, err)
			w, pays := newPayoffFunction(o, f), latticeOf(o).pays
			rapid.Check(t, func(t *rapid.T) {
				var y problem.Point
				for a := range y {
					y[a] = rapid.Float64Range(-5, 5).Draw(t, "y")
				}
				s := f.prices(y)
				require.InEpsilon(t, 1+pays(s[:]), 1+w.at(y), 1e-12)
				if v := w.value(y); math.Abs(v-o.Strike) > 1e-9 { // beyond rounding
					require.Equal(t, w.sign*(v-o.Strike) > 0, w.branch(y) > 0)
				}
			})
		}
	}
}

// The cheap test for kinks misses no kink that separates corners of a cell.
func TestKinksAreDetected(t *testing.T) {
	for basket := Minimum; basket <= Geometric; basket++ {
		o := several(Put, basket, 3)
		p, err := o.Problem("p", [3]int{11, 11, 11})
		require.NoError(t, err)
		f, err := newFrame(o)
		require.NoError(t, err)
		s := newCellAverage(newPayoffFunction(o, f), p)
		kinks := 0
		for k := range 11 {
			for j := range 11 {
				for i := range 11 {
					y := p.At(i+1, j+1, k+1)
					here, seen := s.payoff.branch(y), false
					for corner := range 8 {
						q := y
						for a := range 3 {
							q[a] += s.half[a] * float64(2*(corner>>a&1)-1)
						}
						seen = seen || s.payoff.branch(q) != here
					}
					require.Equal(t, seen, s.hasKink(y))
					if seen {
						kinks++
					}
				}
			}
		}
		require.Positive(t, kinks)
	}
}
