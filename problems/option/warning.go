package option

import "fmt"

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

// width returns Width or the default.
func (o *Option) width() float64 {
	if o.Width == 0 {
		return o.DefaultWidth()
	}
	return o.Width
}
