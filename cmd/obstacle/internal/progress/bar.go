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

// Bar follows one run. Its methods are called from one goroutine.
type Bar struct {
	all       *mpb.Progress
	bar       *mpb.Bar
	estimator Estimator
}

// New draws on w, which is a terminal. tolerance is the relative residual at which
// the run ends.
func New(w io.Writer, name string, tolerance float64) *Bar {
	b := &Bar{estimator: Estimator{Tolerance: tolerance}}
	b.all = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(150*time.Millisecond))
	b.bar = b.all.New(scale, mpb.BarStyle().Rbound("]").Lbound("["),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return b.estimator.text() })))
	return b
}

// Update tells how far the run is.
func (b *Bar) Update(elapsed time.Duration, sweep uint64, residual float64) {
	b.estimator.Update(elapsed, sweep, residual)
	b.bar.SetCurrent(int64(scale * min(b.estimator.Part(), 0.999)))
}

// Step tells which time step of how many is in progress; 0 of a stationary problem.
func (b *Bar) Step(step, of int) { b.estimator.Step(step, of) }

// Done takes the bar away.
func (b *Bar) Done() {
	b.bar.Abort(true)
	b.all.Wait()
}

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
