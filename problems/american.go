package problems

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// optionBuiltin completes b with the contract that its parameters define.
func optionBuiltin(b Builtin, contract func(v []float64) *option.Option) Builtin {
	b.option = contract
	b.build = func(p *problem.Problem, v []float64) error {
		for i, q := range b.Parameters {
			if q.Name == "steps" && (v[i] < 1 || v[i] > problem.MaxSteps || v[i] != math.Floor(v[i])) {
				return fmt.Errorf("steps: %g: want a whole number from 1 to %d", v[i], problem.MaxSteps)
			}
			if q.Name == "width" && v[i] == 0 {
				return errors.New("width: 0: want a positive number of standard deviations")
			}
		}
		q, err := contract(v).Problem(p.Name, p.N)
		if e, ok := errors.AsType[*option.InputError](err); ok { // parameters have the names of entries of problem files
			return fmt.Errorf("%s: %s", cmp.Or(e.Field, e.Key), e.Reason)
		}
		if err != nil {
			return err
		}
		*p = *q
		return nil
	}
	return b
}

// market returns the parameters common to all options, in the order of contractOf.
func market(dividend float64) []Parameter {
	return []Parameter{
		{"strike", 100, "strike price K, positive"},
		{"price", 100, "today's price S₀ of an asset, positive"},
		{"rate", 0.05, "annual interest rate r, continuous"},
		{"dividend", dividend, "annual dividend yield q, continuous"},
		{"volatility", 0.2, "annual volatility σ, positive"},
	}
}

// contractOf returns an option on d identical assets.
func contractOf(payoff option.Payoff, d int, v []float64) *option.Option {
	o := &option.Option{Payoff: payoff, Strike: v[0], Rate: v[2], Correlation: option.Uncorrelated()}
	for range d {
		o.Assets = append(o.Assets, option.Asset{Price: v[1], Dividend: v[3], Volatility: v[4]})
	}
	return o
}

// duration returns the parameters of an option with a maturity.
func duration(steps float64) []Parameter {
	return []Parameter{
		{"maturity", 1, "time to maturity in years, positive"},
		{"steps", steps, "time steps of implicit Euler, a whole number from 1 on"},
		{"width", 5, "half-width of the domain in standard deviations, 1 to 100"},
	}
}

func setDuration(o *option.Option, v []float64) {
	o.Maturity, o.Width = v[0], v[2]
	o.Steps = int(v[1])
}

// american returns an American option on one asset.
func american(payoff option.Payoff) Builtin {
	return optionBuiltin(Builtin{
		Name: "american-" + payoff.String(),
		Summary: "American " + payoff.String() + " on one asset, by Black and Scholes; " +
			"u is its value, x = log(S/S₀)/σ, t the time to maturity",
		Reference:  "Black and Scholes, J. Political Economy 81 (1973)",
		Dimension:  1,
		Parameters: append(market(0), duration(100)...),
	}, func(v []float64) *option.Option {
		o := contractOf(payoff, 1, v)
		setDuration(o, v[5:])
		return o
	})
}

// americanBasket returns an American option on several identical assets.
func americanBasket(d int) Builtin {
	b := Builtin{
		Name: "american-basket",
		Summary: fmt.Sprintf("American option on a basket of %d identical assets; "+
			"u is its value, y = L⁻¹·log(S/S₀), L·Lᵀ the covariance", d),
		Reference: "Black and Scholes, J. Political Economy 81 (1973); " +
			"for different assets use a problem file of the kind american-option",
		Dimension:    d,
		enumerations: []enumeration{{"payoff", option.Payoffs()}, {"basket", option.Baskets()}},
	}
	if d < 3 {
		b.Name = fmt.Sprintf("american-basket%dd", d)
	}
	b.Parameters = append([]Parameter{
		{"payoff", float64(option.Put), "put or call"},
		{"basket", float64(option.Arithmetic), "min, max, arithmetic or geometric"},
		{"correlation", 0.3, "correlation of any two assets, below 1"},
	}, append(market(0), duration(50)...)...)
	return optionBuiltin(b, func(v []float64) *option.Option {
		o := contractOf(option.Payoff(v[0]), d, v[3:])
		o.Basket, o.Correlation = option.Basket(v[1]), option.Correlated(v[2])
		setDuration(o, v[8:])
		return o
	})
}

// perpetual returns an option on one asset that never expires.
func perpetual(payoff option.Payoff) Builtin {
	dividend := 0.0
	if payoff == option.Call { // without a dividend it is never exercised
		dividend = 0.04
	}
	return optionBuiltin(Builtin{
		Name:       "perpetual-" + payoff.String(),
		Summary:    "perpetual American " + payoff.String() + " on one asset; u is its value, x = log(S/S₀)/σ",
		Reference:  "closed form: Merton, Bell J. of Economics 4 (1973)",
		Dimension:  1,
		Exact:      true,
		Parameters: market(dividend),
	}, func(v []float64) *option.Option {
		o := contractOf(payoff, 1, v)
		o.Perpetual = true
		return o
	})
}

// perpetualGeometric returns a perpetual put on the geometric mean of three assets.
func perpetualGeometric() Builtin {
	return optionBuiltin(Builtin{
		Name: "perpetual-geometric",
		Summary: "perpetual American put on the geometric mean of three identical assets; " +
			"u is its value, y = L⁻¹·log(S/S₀)",
		Reference: "the mean is a single asset with another volatility and dividend: closed form of Merton (1973)",
		Dimension: 3,
		Exact:     true,
		Parameters: append([]Parameter{
			{"correlation", 0.3, "correlation of any two assets, above -0.5 and below 1"},
		}, market(0)...),
	}, func(v []float64) *option.Option {
		o := contractOf(option.Put, 3, v[1:])
		o.Basket, o.Correlation = option.Geometric, option.Correlated(v[0])
		o.Perpetual = true
		return o
	})
}
