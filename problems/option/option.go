// Package option states American options on one to three assets as obstacle
// problems, and reads price, delta, gamma and the exercise boundary off their
// solutions. It is pure.
//
// The model is that of Black and Scholes (Journal of Political Economy 81, 1973): under
// the pricing measure dSᵢ/Sᵢ = (r − qᵢ)dt + σᵢdWᵢ with correlations ρᵢⱼ. With
// C = (ρᵢⱼσᵢσⱼ) = L·Lᵀ (Cholesky) and the coordinates y = L⁻¹·log(S/S₀) the value V as a
// function of τ, the time to maturity, solves
//
//	V_τ − ½ΔV − m·∇V + r·V ≥ 0, V ≥ payoff, complementary; V(0) = payoff
//
// with m = L⁻¹·(r − qᵢ − σᵢ²/2): no mixed derivatives, whatever the correlation, and so
// an M-matrix (ADR 36). The value of a perpetual option does not depend on τ.
package option

import "fmt"

// Payoff is what exercising pays, of a basket's value B and the strike K.
type Payoff int

const (
	Put  Payoff = iota // max(K − B, 0)
	Call               // max(B − K, 0)
)

// Payoffs are the words for them, in that order.
func Payoffs() []string { return []string{"put", "call"} }

func (p Payoff) String() string { return Payoffs()[p] }

// Basket makes one value of the assets' prices; of one asset all are its price.
type Basket int

const (
	Minimum    Basket = iota // min Sᵢ
	Maximum                  // max Sᵢ
	Arithmetic               // Σ wᵢSᵢ
	Geometric                // Π Sᵢ^wᵢ
)

// Baskets are the words for them, in that order.
func Baskets() []string { return []string{"min", "max", "arithmetic", "geometric"} }

func (b Basket) String() string { return Baskets()[b] }

// MaxAssets of one option.
const MaxAssets = 3

// Asset is one underlying.
type Asset struct {
	Price      float64 `json:"price"`      // S₀, today's, positive
	Volatility float64 `json:"volatility"` // σ, a year's, positive
	Dividend   float64 `json:"dividend"`   // q, continuous, a year's
}

// Option is a contract and its market. Money is in any one unit, time in years.
type Option struct {
	Payoff    Payoff
	Basket    Basket
	Strike    float64 // K, positive
	Rate      float64 // r, continuous, a year's; not negative
	Perpetual bool    // it never expires; Maturity and Steps are not used then
	Maturity  float64 // T, positive
	Steps     int     // time steps of implicit Euler
	Assets    []Asset // one to three
	// Correlation has ones on its diagonal; rows and columns beyond the assets are not
	// looked at.
	Correlation [MaxAssets][MaxAssets]float64
	// Weights of an arithmetic or geometric basket, positive, their sum 1; nil: equal.
	Weights []float64
	// Width of the domain on either side of today's prices: standard deviations √T of y;
	// of a perpetual option √(1/r). 0: what DefaultWidth says.
	Width float64
}

// DefaultWidth is the width of the domain where none is given. That far out the boundary
// data matter with a probability of some 1e-6; those of options with a closed form are
// exact.
func (o *Option) DefaultWidth() float64 {
	if o.Perpetual && o.closed() {
		return 1
	}
	return 5
}

// closed tells whether the basket is a single lognormal asset in disguise.
func (o *Option) closed() bool { return len(o.Assets) == 1 || o.Basket == Geometric }

// weight of an asset in the basket.
func (o *Option) weight(i int) float64 {
	if o.Weights == nil {
		return 1 / float64(len(o.Assets))
	}
	return o.Weights[i]
}

// Uncorrelated is the correlation matrix of independent assets, Correlated that with the
// same correlation between any two.
func Uncorrelated() [MaxAssets][MaxAssets]float64 { return Correlated(0) }

// Correlated is documented at Uncorrelated.
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

// String names the contract for people: American put on the geometric mean of 3 assets, …
func (o *Option) String() string {
	style, on, when := "American", "one asset", fmt.Sprintf("maturity %g", o.Maturity)
	if o.Perpetual {
		style, when = "perpetual American", "without maturity"
	}
	if d := len(o.Assets); d > 1 {
		on = fmt.Sprintf("the %s of %d assets", []string{"minimum", "maximum", "arithmetic mean", "geometric mean"}[o.Basket], d)
	}
	return fmt.Sprintf("%s %s on %s, strike %g, interest %g, %s", style, o.Payoff, on, o.Strike, o.Rate, when)
}
