// Package progress shows on a terminal the residual, the sweep and the estimated time left of a run, or the parts and
// rounds of a measurement.
package progress

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const scale = 1000

// Bars shows runs that proceed at the same time: as bars on a terminal, or as lines at 1, 2, 4, 8 … seconds. Add may be
// called from several goroutines.
type Bars struct {
	all *mpb.Progress
	say func(line string) // without a terminal
}

// NewBars returns bars that are drawn on w, a terminal.
func NewBars(w io.Writer) *Bars { return NewSlowBars(w, 150*time.Millisecond) }

// NewSlowBars returns bars that are drawn at an interval, for programs that drawing would disturb.
func NewSlowBars(w io.Writer, interval time.Duration) *Bars {
	return &Bars{all: mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(interval))}
}

// NewLines returns bars that say a line at 1, 2, 4, 8 … seconds, for logs. say may be called from several goroutines.
func NewLines(say func(line string)) *Bars { return &Bars{say: say} }

// Write writes whole lines above the bars, which must be on a terminal.
func (b *Bars) Write(lines []byte) (int, error) { return b.all.Write(lines) }

// Wait shows that something of unknown length is in progress, until the returned function is called.
func (b *Bars) Wait(name string) (done func()) {
	if b.say != nil {
		return b.repeat(func(since time.Duration) string { return fmt.Sprintf("%s: %s", name, duration(since)) })
	}
	bar := b.all.New(0, mpb.SpinnerStyle().PositionLeft(), mpb.BarRemoveOnComplete(), mpb.BarWidth(1),
		mpb.AppendDecorators(decor.Name(name+" "), decor.Elapsed(decor.ET_STYLE_GO)))
	return func() { bar.Abort(true) }
}

// repeat says a line, which depends on the time since now, at 1, 2, 4, 8 … seconds, until stop is called.
func (b *Bars) repeat(line func(since time.Duration) string) (stop func()) {
	stopped := make(chan struct{})
	var saying sync.WaitGroup
	saying.Go(func() {
		for at := time.Second; ; at *= 2 {
			next := time.NewTimer(max(at/2, time.Second))
			select {
			case <-next.C:
				b.say(line(at))
			case <-stopped:
				next.Stop()
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(stopped); saying.Wait() })
}

// Close waits until the last bar has been removed.
func (b *Bars) Close() {
	if b.all != nil {
		b.all.Wait()
	}
}

// Bar shows one run. Its methods must be called from one goroutine.
type Bar struct {
	Estimator
	bar  *mpb.Bar
	stop func() // ends the lines
}

// Add shows one more run, which ends when its relative residual reaches tolerance. 1: that is unknown.
func (b *Bars) Add(name string, tolerance float64) *Bar {
	r := &Bar{Estimator: Estimator{Tolerance: tolerance}}
	if b.say != nil {
		r.stop = b.repeat(func(since time.Duration) string {
			if text := r.text(); r.begun() {
				return name + ":" + text
			}
			return fmt.Sprintf("%s: nothing is relaxed yet after %s", name, duration(since))
		})
		return r
	}
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
	if b.bar != nil {
		b.bar.SetCurrent(int64(scale * min(b.Done(), 0.999)))
	}
}

// Remove removes the bar.
func (b *Bar) Remove() {
	if b.bar == nil {
		b.stop()
		return
	}
	b.bar.Abort(true)
}

func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "?"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	switch h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60; {
	case h > 0:
		return fmt.Sprintf("%d h %d min", h, m)
	case m > 0:
		return fmt.Sprintf("%d min %d s", m, s)
	default:
		return fmt.Sprintf("%d s", s)
	}
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "?"
	}
	return fmt.Sprintf("%.2e", v)
}
