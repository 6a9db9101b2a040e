package iterate

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// forecast extrapolates the logarithm of a residual linearly in time to predict when the residual meets
// a bound. A level is ln(residual/bound).
type forecast struct {
	known        bool
	at           time.Duration // of the newest level
	level        float64
	older, newer anchor // the slope is measured from older
}

// anchor is a level at a time.
type anchor struct {
	at    time.Duration
	level float64
}

// anchorDrop is the fall of the level between two anchors of a trend of estimates, a factor of 2. It is
// larger than the steps in which estimates are reported, so that these do not hide the slope.
const anchorDrop = math.Ln2

// levelOf returns the level of a residual: −∞ for 0, and NaN for a residual that is not finite.
func levelOf(residual, bound float64) float64 {
	switch {
	case residual == 0:
		return math.Inf(-1)
	case !kernel.Finite(residual):
		return math.NaN()
	}
	return math.Log(residual) - math.Log(bound)
}

// record adds a level; drop is the smallest fall between anchors.
func (f *forecast) record(at time.Duration, level, drop float64) {
	here := anchor{at, level}
	switch {
	case !f.known || !(level < f.older.level):
		f.older, f.newer = here, here // the first level, or one above all remembered ones
	case level <= f.newer.level-drop:
		f.older, f.newer = f.newer, here
	}
	f.known, f.at, f.level = true, at, level
}

// slope returns the fall of the level per nanosecond, 0 if it does not fall.
func (f *forecast) slope() float64 {
	fall, time := f.older.level-f.level, float64(f.at-f.older.at)
	if !f.known || !(fall > 0) || !(time > 0) || math.IsInf(fall, 0) {
		return 0
	}
	return fall / time
}

// predict returns the time at which the bound is met, false if it cannot be predicted. A residual that is
// not finite gives the time of that residual, so that it is examined at once.
func (f *forecast) predict() (time.Duration, bool) {
	switch s := f.slope(); {
	case !f.known:
		return 0, false
	case f.level <= 0, math.IsNaN(f.level):
		return f.at, true
	case s > 0:
		ahead := f.level / s
		if ahead < float64(maxForecast) {
			return f.at + time.Duration(ahead), true
		}
	}
	return 0, false
}

// maxForecast bounds the time that a forecast looks ahead.
const maxForecast = 1000 * time.Hour
