package iterate

import (
	"math"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// forecast draws the logarithm of a residual on in a straight line over time, to say
// when it will meet a bound. Levels are ln(residual/bound).
type forecast struct {
	known        bool
	at           time.Duration // of the newest level
	level        float64
	older, newer anchor // that the slope is taken from
}

// anchor is a level at a time.
type anchor struct {
	at    time.Duration
	level float64
}

// anchorDrop is how far a level falls between two anchors of a trend of guesses, a
// factor of 2: enough to tell a slope from the steps in which guesses are told.
const anchorDrop = math.Ln2

// levelOf is the level of a residual: −∞ where nothing is left, NaN where the residual
// is not finite.
func levelOf(residual, bound float64) float64 {
	switch {
	case residual == 0:
		return math.Inf(-1)
	case !kernel.Finite(residual):
		return math.NaN()
	}
	return math.Log(residual) - math.Log(bound)
}

// hear takes the level at a time; drop is the least fall between anchors.
func (f *forecast) record(at time.Duration, level, drop float64) {
	here := anchor{at, level}
	switch {
	case !f.known || !(level < f.older.level):
		f.older, f.newer = here, here // the first, or it has risen above all that is remembered
	case level <= f.newer.level-drop:
		f.older, f.newer = f.newer, here
	}
	f.known, f.at, f.level = true, at, level
}

// slope is the fall of the level a nanosecond, 0 where it does not fall.
func (f *forecast) slope() float64 {
	fall, time := f.older.level-f.level, float64(f.at-f.older.at)
	if !f.known || !(fall > 0) || !(time > 0) || math.IsInf(fall, 0) {
		return 0
	}
	return fall / time
}

// meets is the time at which the bound will be met, or was; false if that cannot be
// told. What is not finite is worth a look at once.
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

// farAhead is farther than forecasts go.
const maxForecast = 1000 * time.Hour
