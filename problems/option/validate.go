package option

import (
	"cmp"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
	"gonum.org/v1/gonum/mat"
)

// InputError describes an invalid entry of an option.
type InputError struct {
	Key    string // key of the entry in a problem file
	Item   int    // index in a list, or -1
	Field  string // field of an asset, or ""
	Reason string
}

func (e *InputError) Error() string {
	name := e.Key
	if e.Item >= 0 {
		name = fmt.Sprintf("%s[%d]", name, e.Item+1)
	}
	if e.Field != "" {
		name += "." + e.Field
	}
	return name + ": " + e.Reason
}

func refuse(key, format string, args ...any) error { return refuseItem(key, -1, "", format, args...) }

func refuseItem(key string, item int, field, format string, args ...any) error {
	return &InputError{key, item, field, fmt.Sprintf(format, args...)}
}

// Check returns an *InputError if the option cannot be priced.
func (o *Option) Check() error {
	d := len(o.Assets)
	switch {
	case d < 1 || d > MaxAssets:
		return refuse("assets", "%d of them; there may be 1 to %d", d, MaxAssets)
	case o.Payoff < Put || o.Payoff > Call:
		return refuse("payoff", "it must be put or call")
	case o.Basket < Minimum || o.Basket > Geometric:
		return refuse("basket", "it must be min, max, arithmetic or geometric")
	case !positive(o.Strike):
		return refuse("strike", "%g: it must be positive and finite", o.Strike)
	case math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0):
		return refuse("rate", "%g: it must be finite", o.Rate)
	case o.Width != 0 && !(o.Width >= minWidth && o.Width <= maxWidth):
		return refuse("width", "%g: want %d to %d standard deviations", o.Width, minWidth, maxWidth)
	}
	for i, a := range o.Assets {
		if err := a.check(i); err != nil {
			return err
		}
	}
	if err := cmp.Or(o.checkTime(), o.checkWeights()); err != nil {
		return err
	}
	f, err := newFrame(o)
	if err != nil {
		return err
	}
	return o.checkReach(f)
}

// positive reports whether v is positive and finite.
func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

const (
	minWidth = 1
	maxWidth = 100
)

func (a Asset) check(i int) error {
	bad := func(field, format string, v float64) error { return refuseItem("assets", i, field, format, v) }
	switch {
	case !positive(a.Price):
		return bad("price", "%g: it must be positive and finite", a.Price)
	case !positive(a.Volatility):
		return bad("volatility", "%g: it must be positive and finite", a.Volatility)
	case math.IsNaN(a.Dividend) || math.IsInf(a.Dividend, 0):
		return bad("dividend", "%g: it must be finite", a.Dividend)
	}
	return nil
}

func (o *Option) checkTime() error {
	switch {
	case !o.Perpetual && !positive(o.Maturity):
		return refuse("maturity", "%g: it must be positive and finite; an option that never expires is perpetual",
			o.Maturity)
	case !o.Perpetual && (o.Steps < 1 || o.Steps > problem.MaxSteps):
		return refuse("steps", "%d: there may be 1 to %d time steps", o.Steps, problem.MaxSteps)
	case o.Perpetual && o.Rate <= 0:
		return refuse("rate", "%g: a perpetual option has a unique value only with interest; give a positive rate", o.Rate)
	case !o.Perpetual && float64(o.Steps) <= -o.Rate*o.Maturity:
		return refuse("steps", "%d: with the negative rate %g a step of implicit Euler has a solution only if there are "+
			"more than %.6g of them", o.Steps, o.Rate, -o.Rate*o.Maturity)
	}
	if !o.Perpetual || o.Payoff == Put {
		return nil
	}
	for i, a := range o.Assets {
		if a.Dividend <= 0 {
			return refuseItem("assets", i, "dividend",
				"%g: a perpetual call is never exercised without a positive dividend", a.Dividend)
		}
	}
	return nil
}

func (o *Option) checkWeights() error {
	if o.Weights == nil {
		return nil
	}
	if len(o.Weights) != len(o.Assets) {
		return refuse("weights", "%d of them for %d assets", len(o.Weights), len(o.Assets))
	}
	sum := 0.0
	for i, w := range o.Weights {
		if !positive(w) {
			return refuseItem("weights", i, "", "%g: it must be positive and finite", w)
		}
		sum += w
	}
	if math.Abs(sum-1) > 1e-9 {
		return refuse("weights", "their sum is %.12g; it must be 1", sum)
	}
	return nil
}

// checkReach returns an error if prices of the domain would not be finite.
func (o *Option) checkReach(f *frame) error {
	for i, g := range f.growth[:f.d] {
		if !o.Perpetual && !(math.Abs(g)*o.Maturity <= maxLogReach) {
			return refuseItem("assets", i, "dividend", "%g: until maturity the price would grow by e^%.3g; "+
				"reduce dividend, rate or maturity", o.Assets[i].Dividend, g*o.Maturity)
		}
	}
	w := o.halfWidth(f)
	if !positive(w) {
		return refuse("maturity", "the domain would be %g standard units wide", w)
	}
	for i := range f.d {
		reach := 0.0
		for _, l := range f.lower[i] {
			reach += 2 * w * math.Abs(l)
		}
		if reach > maxLogReach {
			return refuseItem("assets", i, "volatility", "%g: the domain would extend to e^%.3g times today's price; "+
				"reduce volatility, maturity or width", o.Assets[i].Volatility, reach)
		}
	}
	return nil
}

// maxLogReach bounds log(S/S₀): the square of e^300 is finite.
const maxLogReach = 300

// symmetryTolerance is the tolerance for rounding differences between the two halves of a matrix.
const symmetryTolerance = 1e-12

// checkCorrelation returns an error that names the first invalid entry of a correlation matrix.
func checkCorrelation(c *[MaxAssets][MaxAssets]float64, d int) error {
	for i := range d {
		for j := range d {
			v := c[i][j]
			row := func(format string, args ...any) error {
				return refuseItem("correlation", i, "", format, args...)
			}
			switch {
			case i == j && v != 1:
				return row("%g on the diagonal; an asset's correlation with itself is 1", v)
			case !(math.Abs(v) <= 1):
				return row("%g in column %d; a correlation is between -1 and 1", v, j+1)
			case math.Abs(v-c[j][i]) > symmetryTolerance:
				return row("%g in column %d, but %g in row %d, column %d: the matrix must be symmetric",
					v, j+1, c[j][i], j+1, i+1)
			}
		}
	}
	return nil
}

// notPositiveDefinite returns the error of a matrix that cannot be a correlation matrix.
func notPositiveDefinite(m mat.Symmetric) error {
	var e mat.EigenSym
	least := math.NaN()
	if e.Factorize(m, false) {
		least = e.Values(nil)[0]
	}
	return refuse("correlation", "the matrix is not positive definite (its smallest eigenvalue is %.3g): "+
		"no assets have these correlations; bring them nearer to 0", least)
}
