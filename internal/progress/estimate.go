package progress

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"
)

// Estimator estimates the time left from the rate at which the residual falls. After a fast start, relaxation reduces
// the residual by a constant factor per second.
type Estimator struct {
	Tolerance float64

	mu       sync.Mutex // the bar is drawn by another goroutine
	elapsed  time.Duration
	sweep    uint64
	residual float64
	seen     bool
	rate     float64 // smoothed decrease of ln(residual) per second
	rateAt   time.Duration
	rateFrom float64
	step, of int // time steps; of is 0 for a stationary problem
}

// window is the shortest time over which the decrease is measured.
const window = 200 * time.Millisecond

// Update adds an observation. residual is NaN while it is unknown.
func (e *Estimator) Update(elapsed time.Duration, sweep uint64, residual float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.elapsed, e.sweep = elapsed, sweep
	if !(residual > 0) {
		return
	}
	e.residual = residual
	if !e.seen {
		e.seen, e.rateAt, e.rateFrom = true, elapsed, residual
		return
	}
	if dt := elapsed - e.rateAt; dt >= window && residual < e.rateFrom {
		rate := math.Log(e.rateFrom/residual) / dt.Seconds()
		e.rate = cmp.Or(e.rate, rate)
		e.rate += 0.3 * (rate - e.rate)
		e.rateAt, e.rateFrom = elapsed, residual
	}
}

// Step sets which of the time steps is in progress. The residual starts anew with every step.
func (e *Estimator) Step(step, of int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if step != e.step {
		e.seen, e.rate = false, 0
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
	if !e.seen || e.Tolerance <= 0 {
		return 0
	}
	// The relative residual starts at 1, whether an observation showed it or not.
	return min(max(math.Log(e.residual)/math.Log(e.Tolerance), 0), 1)
}

// Left returns the estimated time left, negative while it is unknown.
func (e *Estimator) Left() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left()
}

// left returns the estimated time left, negative while it is unknown. The lock is held.
func (e *Estimator) left() time.Duration {
	if e.of > 0 { // time steps take about equally long
		if e.step < 2 {
			return -1
		}
		return e.elapsed / time.Duration(e.step-1) * time.Duration(e.of-e.step+1)
	}
	if e.rate <= 0 || e.Tolerance <= 0 {
		return -1
	}
	s := math.Log(e.residual/e.Tolerance) / e.rate
	return time.Duration(min(max(s, 0), 1e9) * float64(time.Second))
}

func (e *Estimator) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, step := math.NaN(), ""
	if e.seen {
		r = e.residual
	}
	if e.of > 0 {
		step = fmt.Sprintf(" step %d of %d ", e.step, e.of)
	}
	return fmt.Sprintf("%s residual %s of %.0e  sweep %d  %s, left %s",
		step, number(r), e.Tolerance, e.sweep, duration(e.elapsed), duration(e.left()))
}
