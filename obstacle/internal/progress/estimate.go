package progress

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Estimator guesses the time that is left from how fast the residual has been
// falling: iterations of relaxation reduce it by a constant factor a second, once
// the first fast part is over.
type Estimator struct {
	Tolerance float64

	mu       sync.Mutex // the bar is drawn by another goroutine
	elapsed  time.Duration
	sweep    uint64
	residual float64
	seen     bool
	rate     float64 // smoothed decrease of ln(residual) a second
	rateAt   time.Duration
	rateFrom float64
	step, of int // time steps; of 0: the problem is stationary
}

// window is how long the decrease is measured before it counts.
const window = 200 * time.Millisecond

// Update takes a new observation; residual may be NaN: not known yet.
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
		if e.rate == 0 {
			e.rate = rate
		}
		e.rate += 0.3 * (rate - e.rate)
		e.rateAt, e.rateFrom = elapsed, residual
	}
}

// Step tells which time step of how many is in progress. Every step begins with a
// residual of its own.
func (e *Estimator) Step(step, of int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if step != e.step {
		e.seen, e.rate = false, 0
	}
	e.step, e.of = step, of
}

// Part is how much of the way is done, 0 to 1, by the logarithm of the residual.
func (e *Estimator) Part() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of > 0 {
		return float64(max(e.step-1, 0)) / float64(e.of)
	}
	if !e.seen || e.Tolerance <= 0 {
		return 0
	}
	// The relative residual begins at 1 whether that was seen or not.
	return min(max(math.Log(e.residual)/math.Log(e.Tolerance), 0), 1)
}

// Left is the time that is probably left; negative: not known yet.
func (e *Estimator) Left() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left()
}

func (e *Estimator) left() time.Duration {
	if e.of > 0 { // steps take about as long as each other
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
	r := math.NaN()
	if e.seen {
		r = e.residual
	}
	if e.of > 0 {
		return fmt.Sprintf(" step %d of %d  residual %s of %.0e  sweep %d  %s, left %s", e.step, e.of, number(r), e.Tolerance, e.sweep, duration(e.elapsed), duration(e.left()))
	}
	return fmt.Sprintf(" residual %s of %.0e  sweep %d  %s, left %s", number(r), e.Tolerance, e.sweep, duration(e.elapsed), duration(e.left()))
}
