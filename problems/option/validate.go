package option

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
	"gonum.org/v1/gonum/mat"
)

// InputError tells which entry of an option makes no sense. Key is as in a problem file;
// Item is the place in a list, -1 where the entry is none, and Field what of an asset.
type InputError struct {
	Key    string
	Item   int
	Field  string
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

func refuse(key, format string, args ...any) error {
	return &InputError{Key: key, Item: -1, Reason: fmt.Sprintf(format, args...)}
}

// Check refuses an option that cannot be priced; the error is an *InputError.
func (o *Option) Check() error {
	d := len(o.Assets)
	switch {
	case d < 1 || d > MaxAssets:
		return refuse("assets", "%d of them; there may be 1 to %d", d, MaxAssets)
	case o.Payoff < Put || o.Payoff > Call:
		return refuse("payoff", "it must be put or call")
	case o.Basket < Minimum || o.Basket > Geometric:
		return refuse("basket", "it must be min, max, arithmetic or geometric")
	case !(o.Strike > 0) || math.IsInf(o.Strike, 1):
		return refuse("strike", "%g: it must be positive and finite", o.Strike)
	case !(o.Rate >= 0) || math.IsInf(o.Rate, 1):
		return refuse("rate", "%g: it must not be negative, and finite: below 0 the operator is no M-matrix", o.Rate)
	case o.Width != 0 && !(o.Width >= leastWidth && o.Width <= mostWidth):
		return refuse("width", "%g: want %d to %d standard deviations", o.Width, leastWidth, mostWidth)
	}
	for i, a := range o.Assets {
		if err := a.check(i); err != nil {
			return err
		}
	}
	if err := o.checkTime(); err != nil {
		return err
	}
	if err := o.checkWeights(); err != nil {
		return err
	}
	f, err := newFrame(o)
	if err != nil {
		return err
	}
	return o.checkReach(f)
}

const (
	leastWidth = 1
	mostWidth  = 100
)

func (a Asset) check(i int) error {
	bad := func(field, format string, args ...any) error {
		return &InputError{"assets", i, field, fmt.Sprintf(format, args...)}
	}
	switch {
	case !(a.Price > 0) || math.IsInf(a.Price, 1):
		return bad("price", "%g: it must be positive and finite", a.Price)
	case !(a.Volatility > 0) || math.IsInf(a.Volatility, 1):
		return bad("volatility", "%g: it must be positive and finite", a.Volatility)
	case math.IsNaN(a.Dividend) || math.IsInf(a.Dividend, 0):
		return bad("dividend", "%g: it must be finite", a.Dividend)
	}
	return nil
}

func (o *Option) checkTime() error {
	switch {
	case !o.Perpetual && (!(o.Maturity > 0) || math.IsInf(o.Maturity, 1)):
		return refuse("maturity", "%g: it must be positive and finite; an option that never expires is perpetual", o.Maturity)
	case !o.Perpetual && (o.Steps < 1 || o.Steps > problem.MaxSteps):
		return refuse("steps", "%d: there may be 1 to %d time steps", o.Steps, problem.MaxSteps)
	case o.Perpetual && o.Rate == 0:
		return refuse("rate", "0: without interest a perpetual option has no value of its own; give a positive rate")
	}
	if !o.Perpetual || o.Payoff == Put {
		return nil
	}
	for i, a := range o.Assets {
		if a.Dividend <= 0 {
			return &InputError{"assets", i, "dividend", fmt.Sprintf("%g: a perpetual call is never exercised without a positive dividend", a.Dividend)}
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
		if !(w > 0) || math.IsInf(w, 1) {
			return &InputError{"weights", i, "", fmt.Sprintf("%g: it must be positive and finite", w)}
		}
		sum += w
	}
	if math.Abs(sum-1) > 1e-9 {
		return refuse("weights", "their sum is %.12g; it must be 1", sum)
	}
	return nil
}

// checkReach refuses domains whose prices are no finite numbers.
func (o *Option) checkReach(f *frame) error {
	for i, g := range f.growth[:f.d] {
		if !o.Perpetual && !(math.Abs(g)*o.Maturity <= mostReach) {
			return &InputError{"assets", i, "dividend", fmt.Sprintf("%g: until maturity the price would grow by e^%.3g; lower dividend, rate or maturity", o.Assets[i].Dividend, g*o.Maturity)}
		}
	}
	w := o.halfWidth(f)
	if !(w > 0) || math.IsInf(w, 1) {
		return refuse("maturity", "the domain would be %g standard units wide", w)
	}
	for i := range f.d {
		reach := 0.0
		for _, l := range f.lower[i] {
			reach += 2 * w * math.Abs(l)
		}
		if reach > mostReach {
			return &InputError{"assets", i, "volatility", fmt.Sprintf("%g: the domain would reach to e^%.3g times today's price; lower volatility, maturity or width", o.Assets[i].Volatility, reach)}
		}
	}
	return nil
}

// mostReach of log(S/S₀): e^300 squared is still a number.
const mostReach = 300

// symmetryTolerance forgives what decimals do to the two halves of a matrix.
const symmetryTolerance = 1e-12

// checkCorrelation refuses what is no correlation matrix, by name.
func checkCorrelation(c *[MaxAssets][MaxAssets]float64, d int) error {
	for i := range d {
		for j := range d {
			v := c[i][j]
			row := func(format string, args ...any) error {
				return &InputError{"correlation", i, "", fmt.Sprintf(format, args...)}
			}
			switch {
			case i == j && v != 1:
				return row("%g on the diagonal; an asset's correlation with itself is 1", v)
			case !(math.Abs(v) <= 1):
				return row("%g in column %d; a correlation is between -1 and 1", v, j+1)
			case math.Abs(v-c[j][i]) > symmetryTolerance:
				return row("%g in column %d, but %g in row %d, column %d: the matrix must be symmetric", v, j+1, c[j][i], j+1, i+1)
			}
		}
	}
	return nil
}

// notPositive is the error of a matrix that no assets can have.
func notPositive(m mat.Symmetric) error {
	var e mat.EigenSym
	least := math.NaN()
	if e.Factorize(m, false) {
		least = e.Values(nil)[0]
	}
	return refuse("correlation", "the matrix is not positive definite (its smallest eigenvalue is %.3g): no assets have these correlations; bring them nearer to 0", least)
}
