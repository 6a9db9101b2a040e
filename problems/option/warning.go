package option

import "fmt"

// narrow is the width, in standard deviations, below which the data on the domain's
// boundary show in the price.
const narrow = 3

// Warnings says what may spoil the price without being an error.
func (o *Option) Warnings() []string {
	var out []string
	if o.ridged() {
		out = append(out, fmt.Sprintf("the payoff of a %s on the %s has a ridge where it is exercised: the error is of first order in the spacing there; compare two grids", o.Payoff, o.Basket))
	}
	switch {
	case o.Perpetual && !o.closed():
		out = append(out, fmt.Sprintf("a perpetual option on this basket has no closed form for the boundary: what stands there is felt inside, less with a larger width (now %g); compare two widths", o.width()))
	case !o.Perpetual && o.width() < narrow:
		out = append(out, fmt.Sprintf("width %g: the boundary is less than %d standard deviations away and is felt in the price; 5 is enough", o.width(), narrow))
	}
	return out
}

// ridged reports whether the payoff has a ridge where it is exercised.
func (o *Option) ridged() bool {
	return len(o.Assets) > 1 && (o.Payoff == Put && o.Basket == Maximum || o.Payoff == Call && o.Basket == Minimum)
}

// width is the one given, or the default.
func (o *Option) width() float64 {
	if o.Width == 0 {
		return o.DefaultWidth()
	}
	return o.Width
}
