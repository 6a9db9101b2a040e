// Package progress shows on a terminal how far a run is: residual, sweep and the
// time that is probably left.
package progress

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// scale is the length of a bar in steps.
const scale = 1000

// Bars of runs that go on at the same time. Add may be called from several goroutines.
type Bars struct{ all *mpb.Progress }

// NewBars draws on w, which is a terminal.
func NewBars(w io.Writer) *Bars {
	return &Bars{mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(150*time.Millisecond))}
}

// Close waits until the last bar has been taken away.
func (b *Bars) Close() { b.all.Wait() }

// Bar follows one run. Its methods are called from one goroutine.
type Bar struct {
	bar       *mpb.Bar
	estimator Estimator
}

// Add shows one more run. tolerance is the relative residual at which it ends.
func (b *Bars) Add(name string, tolerance float64) *Bar {
	r := &Bar{estimator: Estimator{Tolerance: tolerance}}
	r.bar = b.all.New(scale, mpb.BarStyle().Rbound("]").Lbound("["),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return r.estimator.text() })))
	return r
}

// Update tells how far the run is.
func (b *Bar) Update(elapsed time.Duration, sweep uint64, residual float64) {
	b.estimator.Update(elapsed, sweep, residual)
	b.bar.SetCurrent(int64(scale * min(b.estimator.Part(), 0.999)))
}

// Step tells which time step of how many is in progress; 0 of a stationary problem.
func (b *Bar) Step(step, of int) { b.estimator.Step(step, of) }

// Done takes the bar away.
func (b *Bar) Done() { b.bar.Abort(true) }

func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "?"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "?"
	}
	return fmt.Sprintf("%.2e", v)
}
