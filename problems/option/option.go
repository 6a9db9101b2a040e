// Package option formulates American options on one to three assets as obstacle problems, and computes
// price, delta, gamma and the exercise boundary from their solutions. Its functions are pure.
//
// The model is that of Black and Scholes (Journal of Political Economy 81, 1973): under the pricing
// measure dSᵢ/Sᵢ = (r − qᵢ)dt + σᵢdWᵢ with correlations ρᵢⱼ. With C = (ρᵢⱼσᵢσⱼ) = L·Lᵀ (Cholesky), the
// coordinates y = L⁻¹·log(S/S₀) and the time τ to maturity, the value V solves
//
//	V_τ − ½ΔV − m·∇V + r·V ≥ 0, V ≥ payoff, complementary; V(0) = payoff
//
// with m = L⁻¹·(r − qᵢ − σᵢ²/2). There are no mixed derivatives for any correlation, so the discrete
// operator is an M-matrix (ADR 36). The value of a perpetual option does not depend on τ.
package option

import (
	"cmp"
	"fmt"
)

// Payoff is the kind of payoff on exercise, for a basket's value B and the strike K.
type Payoff int

// The kinds of payoff.
const (
	Put  Payoff = iota // max(K − B, 0)
	Call               // max(B − K, 0)
)

// Payoffs returns the names of the payoffs in their order.
func Payoffs() []string { return []string{"put", "call"} }

func (p Payoff) String() string { return Payoffs()[p] }

// Basket is the function of the assets' prices on which the payoff depends. For one asset every basket is its price.
type Basket int

// The kinds of basket.
const (
	Minimum    Basket = iota // min Sᵢ
	Maximum                  // max Sᵢ
	Arithmetic               // Σ wᵢSᵢ
	Geometric                // Π Sᵢ^wᵢ
)

// Baskets returns the names of the baskets in their order.
func Baskets() []string { return []string{"min", "max", "arithmetic", "geometric"} }

func (b Basket) String() string { return Baskets()[b] }

// MaxAssets is the largest number of assets of an option.
const MaxAssets = 3

// Asset is an underlying asset.
type Asset struct {
	Price      float64 `json:"price"`      // S₀, today's price, positive
	Volatility float64 `json:"volatility"` // σ, annual, positive
	Dividend   float64 `json:"dividend"`   // q, annual and continuous
}

// Option is a contract with its market data. Prices are in one arbitrary unit, times in years.
type Option struct {
	Payoff    Payoff
	Basket    Basket
	Strike    float64 // K, positive
	Rate      float64 // r, annual and continuous; for a perpetual option positive
	Perpetual bool    // the option never expires; Maturity and Steps are ignored
	Maturity  float64 // T, positive
	Steps     int     // time steps of implicit Euler
	Assets    []Asset // one to three
	// Correlation has ones on its diagonal. Rows and columns beyond the assets are ignored.
	Correlation [MaxAssets][MaxAssets]float64
	// Weights are the weights of an arithmetic or geometric basket: positive, with the sum 1. Nil means equal
	// weights.
	Weights []float64
	// Width is the width of the domain on either side of today's prices in standard deviations √T of y, for a
	// perpetual option in units of √(1/r). 0 selects 5, or 1 for a perpetual
	// option with a closed form.
	Width float64
}

// isLognormal reports whether the basket has the distribution of a single lognormal asset.
func (o *Option) isLognormal() bool { return len(o.Assets) == 1 || o.Basket == Geometric }

// weight returns the weight of an asset in the basket.
func (o *Option) weight(i int) float64 {
	if o.Weights == nil {
		return 1 / float64(len(o.Assets))
	}
	return o.Weights[i]
}

// Uncorrelated returns the correlation matrix of independent assets.
func Uncorrelated() [MaxAssets][MaxAssets]float64 { return Correlated(0) }

// Correlated returns the correlation matrix with the correlation rho between any two assets.
func Correlated(rho float64) (c [MaxAssets][MaxAssets]float64) {
	for i := range c {
		for j := range c {
			if c[i][j] = rho; i == j {
				c[i][j] = 1
			}
		}
	}
	return c
}

// String returns a description such as "American put on the geometric mean of 3 assets, strike 100, …".
func (o *Option) String() string {
	style, on, when := "American", "one asset", fmt.Sprintf("maturity %g", o.Maturity)
	if o.Perpetual {
		style, when = "perpetual American", "without maturity"
	}
	if d := len(o.Assets); d > 1 {
		baskets := []string{"minimum", "maximum", "arithmetic mean", "geometric mean"}
		on = fmt.Sprintf("the %s of %d assets", baskets[o.Basket], d)
	}
	return fmt.Sprintf("%s %s on %s, strike %g, interest %g, %s", style, o.Payoff, on, o.Strike, o.Rate, when)
}

// narrowWidth is the width in standard deviations below which the boundary data affect the price noticeably.
const narrowWidth = 3

// Warnings returns properties of the contract that may reduce the accuracy of the price.
func (o *Option) Warnings() []string {
	var out []string
	if o.hasRidge() {
		out = append(out, fmt.Sprintf("the payoff of a %s on the %s has a ridge where it is exercised: "+
			"the error is of first order in the spacing there; compare two grids", o.Payoff, o.Basket))
	}
	switch {
	case o.Perpetual && !o.isLognormal():
		out = append(out, fmt.Sprintf("a perpetual option on this basket has no closed form for the boundary data: "+
			"their error affects the price, less with a larger width (now %g); compare two widths", o.width()))
	case !o.Perpetual && o.width() < narrowWidth:
		out = append(out, fmt.Sprintf("width %g: the boundary is less than %d standard deviations away, "+
			"which affects the price; 5 is enough", o.width(), narrowWidth))
	}
	return out
}

// hasRidge reports whether the payoff has a ridge where it is exercised.
func (o *Option) hasRidge() bool {
	return len(o.Assets) > 1 && (o.Payoff == Put && o.Basket == Maximum || o.Payoff == Call && o.Basket == Minimum)
}

// width returns Width or its default. The boundary data there affect the price with a probability of about 1e-6.
// Boundary data of options with a closed form are exact.
func (o *Option) width() float64 {
	if o.Width == 0 && o.Perpetual && o.isLognormal() {
		return 1
	}
	return cmp.Or(o.Width, 5)
}
