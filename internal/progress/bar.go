// Package progress shows on a terminal the residual, the sweep and the estimated time left of a run, or the parts and
// rounds of a measurement.
package progress

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const scale = 1000

// Bars shows runs that proceed at the same time. Add may be called from several goroutines.
type Bars struct{ all *mpb.Progress }

// NewBars returns bars that are drawn on w, a terminal.
func NewBars(w io.Writer) *Bars { return NewSlowBars(w, 150*time.Millisecond) }

// NewSlowBars returns bars that are drawn at an interval, for programs that drawing would disturb.
func NewSlowBars(w io.Writer, interval time.Duration) *Bars {
	return &Bars{mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(interval))}
}

// Write writes whole lines above the bars.
func (b *Bars) Write(lines []byte) (int, error) { return b.all.Write(lines) }

// Wait shows that something of unknown length is in progress, until the returned function is called.
func (b *Bars) Wait(name string) (done func()) {
	bar := b.all.New(0, mpb.SpinnerStyle().PositionLeft(), mpb.BarRemoveOnComplete(), mpb.BarWidth(1),
		mpb.AppendDecorators(decor.Name(name+" "), decor.Elapsed(decor.ET_STYLE_GO)))
	return func() { bar.Abort(true) }
}

// Close waits until the last bar has been removed.
func (b *Bars) Close() { b.all.Wait() }

// Bar shows one run. Its methods must be called from one goroutine.
type Bar struct {
	Estimator
	bar *mpb.Bar
}

// Add shows one more run, which ends when its relative residual reaches tolerance.
func (b *Bars) Add(name string, tolerance float64) *Bar {
	r := &Bar{Estimator: Estimator{Tolerance: tolerance}}
	r.bar = b.draw(name+" ", r.text)
	return r
}

// draw adds a bar with a text before it and one after it.
func (b *Bars) draw(before string, after func() string) *mpb.Bar {
	return b.all.New(scale, mpb.BarStyle().Rbound("]").Lbound("["), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(before)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return after() })))
}

// Update sets the state of the run. residual is NaN while it is unknown.
func (b *Bar) Update(elapsed time.Duration, sweep uint64, residual float64) {
	b.Estimator.Update(elapsed, sweep, residual)
	b.bar.SetCurrent(int64(scale * min(b.Done(), 0.999)))
}

// Remove removes the bar.
func (b *Bar) Remove() { b.bar.Abort(true) }

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
