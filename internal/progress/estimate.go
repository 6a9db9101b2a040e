package progress

import (
	"fmt"
	"math"
	"sort"
	"sync"
	"time"
)

// Estimator estimates the time left from the rates at which the residual has fallen. Relaxation reduces the residual by
// a factor per sweep that settles after a fast or slow start, and it is known after ever more sweeps only.
type Estimator struct {
	Tolerance float64

	mu       sync.Mutex // the bar is drawn by another goroutine
	elapsed  time.Duration
	sweep    uint64
	residual float64 // of the newest observation
	seen     bool
	falls    []fall // where the residual was lower than ever before, or since it has risen, the first observation included
	step, of int    // time steps; of is 0 for a stationary problem
	began    time.Duration
	shortest time.Duration // of the complete time steps
	longest  time.Duration
}

// fall is an observation of a residual that is lower than all before.
type fall struct {
	elapsed time.Duration
	sweep   uint64
	log     float64 // of the residual
}

// risen is the rise of the logarithm above the lowest residual from which the observations before do not count: a factor of 10.
const risen = 2.3

// maxFalls bounds the observations that are kept: then every second one is left out.
const maxFalls = 256

// Range is a range of the time left.
type Range struct{ Least, Most time.Duration }

// Update adds an observation. residual is NaN while it is unknown.
func (e *Estimator) Update(elapsed time.Duration, sweep uint64, residual float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.elapsed, e.sweep = elapsed, sweep
	if !(residual > 0) || math.IsInf(residual, 0) {
		return
	}
	e.residual, e.seen = residual, true
	f := fall{elapsed, sweep, math.Log(residual)}
	if e.Tolerance > 0 && e.Tolerance < 1 { // below it a fall is no progress: the run goes on for another reason
		f.log = max(f.log, math.Log(e.Tolerance))
	}
	switch last := len(e.falls) - 1; {
	case last < 0:
		e.falls = append(e.falls, f)
	case f.log > e.falls[last].log+risen: // the rates of the fall before are not those from the height
		e.falls = append(e.falls[:0], f)
	case f.log >= e.falls[last].log:
	case sweep <= e.falls[last].sweep:
		e.falls[last].log = f.log
	default:
		e.falls = append(e.falls, f)
		if len(e.falls) == maxFalls {
			for i := range maxFalls / 2 {
				e.falls[i] = e.falls[2*i]
			}
			e.falls = append(e.falls[:maxFalls/2], f)
		}
	}
}

// Step sets which of the time steps is in progress. The residual starts anew with every step.
func (e *Estimator) Step(step, of int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if step != e.step {
		if took := (e.elapsed - e.began) / time.Duration(max(1, step-e.step)); e.step > 0 && step > e.step {
			if e.longest = max(e.longest, took); e.shortest == 0 || took < e.shortest {
				e.shortest = took
			}
		}
		e.began, e.seen = e.elapsed, false
		e.falls = e.falls[:0]
	}
	e.step, e.of = step, of
}

// Done returns the completed fraction of the run, 0 to 1, on the logarithmic scale of the residual.
func (e *Estimator) Done() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of > 0 {
		return float64(max(e.step-1, 0)) / float64(e.of)
	}
	if !e.seen || e.Tolerance <= 0 || e.Tolerance >= 1 {
		return 0
	}
	// The relative residual starts at 1, whether an observation showed it or not.
	return min(max(math.Log(e.residual)/math.Log(e.Tolerance), 0), 1)
}

// widest is the largest ratio of the ends of a range that Left returns.
const widest = 10

// Left returns a range of the time left, or false while it is unknown: the range is narrower than a factor of ten, or below
// the time that has passed.
func (e *Estimator) Left() (left Range, known bool) {
	left, known = e.estimate()
	e.mu.Lock()
	defer e.mu.Unlock()
	return left, known && left.Most < forever && (left.Most/widest <= left.Least || left.Most <= e.elapsed)
}

// forever is the time left from which nobody waits for the end: the residual hardly falls, and nothing is shown.
const forever = 1000 * 24 * time.Hour

// LeftAtLeast returns a lower bound of the time left, however wide the range is; 0 while it is unknown.
func (e *Estimator) LeftAtLeast() time.Duration {
	left, known := e.estimate()
	if !known {
		return 0
	}
	return left.Least
}

// estimate returns the range of the time left, of any width.
func (e *Estimator) estimate() (left Range, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of > 0 {
		return e.stepsLeft()
	}
	return e.left()
}

// stepsLeft returns the time of the steps left, if they take as long as those before. The lock is held.
func (e *Estimator) stepsLeft() (Range, bool) {
	if e.longest == 0 {
		return Range{}, false
	}
	after, in := time.Duration(e.of-e.step), e.elapsed-e.began
	r := Range{max(0, e.shortest-in) + after*e.shortest, max(0, e.longest-in) + after*e.longest}
	return widen(r.Least.Seconds(), r.Most.Seconds(), stepsDiffer), true
}

// The width of a range. The values were chosen on recorded residuals of all methods, so that nine of ten ranges hold.
const (
	leastDiffer = 1.2 // a range is that much wider, either way, than the rates that were observed
	perDistance = 0.2 // and by that much for each time that the residual has to fall by as many powers again
	stepsDiffer = 1.3 // time steps, which solve different problems
)

// windows are the parts of the sweeps over which the fall of the residual is measured.
var windows = [...]float64{0.75, 0.5, 0.25, 0.125}

// left returns the time to the tolerance, if the residual falls at one of the rates at which it fell over the windows.
// The lock is held.
func (e *Estimator) left() (r Range, known bool) {
	if len(e.falls) < 3 || e.Tolerance <= 0 || e.Tolerance >= 1 {
		return r, false
	}
	first, last, before := e.falls[0], e.falls[len(e.falls)-1], e.falls[len(e.falls)-2]
	slowest, fastest := math.Inf(1), 0.0 // fall of the logarithm per sweep
	fewest, most := math.Inf(1), 0.0     // sweeps per second
	for _, part := range windows {
		at := float64(last.sweep) - part*float64(last.sweep-first.sweep)
		after := sort.Search(len(e.falls)-1, func(i int) bool { return float64(e.falls[i].sweep) > at })
		from := e.falls[max(after-1, 0)]
		sweeps := float64(last.sweep - from.sweep)
		rate, speed := (from.log-last.log)/sweeps, sweeps/(last.elapsed-from.elapsed).Seconds()
		slowest, fastest = min(slowest, rate), max(fastest, rate)
		fewest, most = min(fewest, speed), max(most, speed)
	}
	if math.IsInf(most, 0) || !(fewest > 0) { // no time between two observations
		return r, false
	}
	distance := last.log - math.Log(e.Tolerance)
	wider := leastDiffer * fastest / slowest * (1 + perDistance*max(0, distance)/(first.log-last.log))
	since := float64(e.sweep - min(e.sweep, last.sweep))
	if now := e.elapsed - last.elapsed; since > 8 && now > 0 { // the speed may have changed since
		fewest, most = min(fewest, since/now.Seconds()), max(most, since/now.Seconds())
	}
	least := max(0, distance)/(fastest*wider) - since - 1
	longest := max(0, distance) / slowest * wider
	end := max(1, float64(last.sweep-before.sweep)/2) // the residual is known every so many sweeps
	rest := max(0, longest-since) + end
	if since > longest { // the estimate was wrong
		rest = max(rest, since)
	}
	soonest, latest := max(0, least)/most, rest/fewest
	return widen(soonest, latest, 1), soonest <= latest // false if one is no number
}

// widen returns a range in seconds that is wider by a factor either way.
func widen(least, most, by float64) Range {
	const longest = 1e9
	seconds := func(s float64) time.Duration { return time.Duration(min(s, longest) * float64(time.Second)) }
	return Range{seconds(least / by), seconds(most * by)}
}

// begun reports whether there was an observation.
func (e *Estimator) begun() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.elapsed > 0
}

func (e *Estimator) text() string {
	left := ", time left not yet known"
	if r, known := e.Left(); known {
		left = ", left " + r.String()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r, step, of := math.NaN(), "", ""
	if e.seen {
		r = e.residual
	}
	if e.of > 0 {
		step = fmt.Sprintf(" step %d of %d ", e.step, e.of)
	}
	if e.Tolerance < 1 {
		of = fmt.Sprintf(" of %.0e", e.Tolerance)
	} else {
		left = ""
	}
	return fmt.Sprintf("%s residual %s%s  sweep %d  %s%s", step, number(r), of, e.sweep, duration(e.elapsed), left)
}

// String returns a range such as "12 to 40 s". Its ends are rounded outwards.
func (r Range) String() string {
	unit, name := time.Second, "s"
	switch {
	case r.Most < time.Second:
		return "under 1 s"
	case r.Most >= 100*time.Hour:
		unit, name = 24*time.Hour, "days"
	case r.Most >= 100*time.Minute:
		unit, name = time.Hour, "h"
	case r.Most >= 100*time.Second:
		unit, name = time.Minute, "min"
	}
	least, most := float64(r.Least)/float64(unit), math.Ceil(float64(r.Most)/float64(unit))
	switch {
	case unit == time.Second && least < 1, least < 0.1:
		return fmt.Sprintf("less than %.0f %s", most, name)
	case least >= 1:
		return fmt.Sprintf("%.0f to %.0f %s", math.Floor(least), most, name)
	}
	return fmt.Sprintf("%.1f to %.0f %s", math.Floor(10*least)/10, most, name)
}
