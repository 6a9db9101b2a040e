package report

import (
	"math"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Growth is how the time of a run, by that of its machines together, grows with the factor C of a stand-in.
type Growth int

const (
	// Linear is the growth of lockstep sweeps: only the layers that are sent first are C times as thick.
	Linear Growth = iota
	// Aged is the growth of sweeps that read faces of any age. The part of the excess that is due to the age is
	// proportional to C where faces are a few sweeps old, and to C² where they are old compared to the sweeps in which a
	// change crosses a block. The part that has other reasons, such as a slow machine, does not depend on C.
	Aged
	// Unknown is the growth of all other methods. Nothing is corrected.
	Unknown
)

// maxPower bounds the power of C to which an excess is proportional.
const maxPower = 2

// The half width of an interval is a part of the correction, and at least a part of the time.
const (
	correctionWidth = 1. / 3
	leastWidth      = 0.03
)

// StandIn is one of the two grids from which the time on the full grid is estimated.
type StandIn struct {
	Side  int // each point represents that many along each axis
	Ratio nullable.Number
}

// Interval is an estimate with its bounds.
type Interval struct{ Low, Mid, High float64 }

// FullGrid estimates the ratio on the full grid from those on two stand-ins, of which coarse has the larger Side. A ratio
// is the time of a run by the time of its machines together. unequal is the largest excess of it over 1 for which machines
// of different speeds can be the reason; whatever exceeds it may be due to old faces. ok is false if a ratio is unknown.
func FullGrid(how Growth, fine, coarse StandIn, unequal float64) (v Interval, ok bool) {
	if !(fine.Ratio > 0) || !(coarse.Ratio > 0) || !fine.Ratio.Known() || !coarse.Ratio.Known() ||
		fine.Side < 1 || coarse.Side <= fine.Side {
		return Interval{}, false
	}
	here, there := float64(fine.Ratio), float64(coarse.Ratio)
	c, d := float64(fine.Side), float64(coarse.Side)
	mid := here
	switch excess, more := here-1, there-1; {
	case how == Linear:
		mid = max(here-(there-here)/(d-c)*(c-1), min(1, here))
	case how == Aged && excess > 0 && more > excess:
		mid = 1 + aged(excess, more, c, d)
	}
	width := math.Abs(here-mid)*correctionWidth + leastWidth*mid
	if how == Unknown {
		width += math.Abs(there - here)
	}
	low := mid - width
	if excess := here - 1; how == Aged && excess > unequal {
		low = min(low, 1+unequal+(excess-unequal)*math.Pow(c, -maxPower))
	}
	return Interval{max(low, min(mid, 1)), mid, mid + width}, true
}

// aged returns the excess on the full grid: of a growth below C the sum of a constant part and one that is proportional to
// C, otherwise a power.
func aged(fine, coarse, c, d float64) float64 {
	power := math.Log(coarse/fine) / math.Log(d/c)
	if power < 1 {
		return fine - (coarse-fine)/(d-c)*(c-1)
	}
	return fine * math.Pow(c, -min(power, maxPower))
}
