package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// recorder evaluates every complete time step and writes it to time series. It is used by one goroutine at a time.
type recorder struct {
	problem *problem.Problem
	every   int
	series  []*timeSeries
	option  *optionRecord

	peerTimeout time.Duration

	worst     float64 // largest error; NaN without an exact solution
	worstStep int

	bounds           *verify.StepBounds // nil if the steps are not evaluated
	unboundedBecause string             // why not
	before           []float64          // end of the previous step, for bounds
}

// timeSeries is an output. After its first error nothing more is written to it.
type timeSeries struct {
	*output.Series
	name string
	err  error
}

// maxStepPoints is the total number of points of all time steps up to which every step is evaluated, which takes some
// tenths of a second.
const maxStepPoints = 1 << 22

// newRecorder returns the recorder of a run and creates its time series, which need a nonstationary problem.
func newRecorder(w *work, out []string, every int, peerTimeout time.Duration) (*recorder, error) {
	r := &recorder{problem: w.problem, every: every, worst: math.NaN(), peerTimeout: peerTimeout,
		unboundedBecause: "there are too many steps to evaluate each"}
	if n := w.problem.Steps(); n > 0 && w.problem.Points() <= maxStepPoints/n {
		r.bounds = verify.NewStepBounds(w.problem)
	}
	if w.after > 0 {
		r.bounds, r.unboundedBecause = nil, "the run continues one whose steps are not known"
	}
	if every < 1 {
		return nil, usage("--out-every %d: want 1 or more", every)
	}
	var err error
	if r.option, err = newOptionRecord(w, out); err != nil {
		return nil, err
	}
	for _, name := range out {
		if !output.IsSeriesOf(name, w.problem) {
			continue
		}
		if w.problem.Steps() == 0 {
			return nil, usage("--out %s: the problem is stationary and has no time series; give .vti", name)
		}
		s, err := output.CreateSeries(name, w.problem.Steps())
		if err != nil {
			return nil, badInput(err)
		}
		r.series = append(r.series, &timeSeries{Series: s, name: name})
	}
	return r, nil
}

// step implements launch.Plan.Steps. Its errors do not end the run; the answer reports them.
func (r *recorder) step(m int, t float64, u []float64) {
	at := r.problem.AtStep(m)
	if e := verify.MaxError(at, u); m > 0 && (!(e <= r.worst)) && !math.IsNaN(e) {
		r.worst, r.worstStep = e, m
	}
	r.option.step(m, t, at, u)
	if r.bounds != nil {
		if m > 0 {
			if err := r.bounds.Add(m, r.before, u, nil); err != nil {
				r.bounds, r.unboundedBecause = nil, err.Error()
			}
		}
		r.before = append(r.before[:0], u...)
	}
	if m%r.every != 0 && m != r.problem.Steps() {
		return
	}
	for _, s := range r.series {
		solution := output.Solution{Problem: at, U: u, Extra: r.option.extra()}
		s.write(patience(r.peerTimeout, outputBytes*len(u)), func() error { return s.Add(m, t, solution) })
	}
}

// write calls add unless an earlier step was not written. The run waits for it, for a limit.
func (s *timeSeries) write(limit time.Duration, add func() error) {
	if s.err != nil {
		return
	}
	s.err = limited(context.Background(), limit, add)
	if _, is := errors.AsType[*unanswered](s.err); is {
		s.err = fmt.Errorf("output %s: %w", s.name, s.err)
	}
}

// find returns the series with a name, nil if none has it.
func (r *recorder) find(name string) *timeSeries {
	i := slices.IndexFunc(r.series, func(s *timeSeries) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return r.series[i]
}

func (s *timeSeries) close() error {
	if _, is := errors.AsType[*unanswered](s.err); is { // a step may still be written
		return s.err
	}
	return cmp.Or(s.err, s.Close())
}

// evaluate computes the residual and the error bound of the assembled answer. For a nonstationary problem it
// evaluates the end of the last complete step, with the residual of the worst step.
func (a *app) evaluate(w *work, o *launch.Outcome, r *recorder, stepMode string) (
	verify.Evaluation, *report.Evolution, error,
) {
	threads := parallel{}
	if w.problem.Evolution == nil {
		evaluate := verify.Evaluate
		if o.Reason == launch.Interrupted || o.Reason == launch.Time {
			evaluate = verify.Measure // the user's time is over: a search for a bound may take longer than the run
		}
		e, err := evaluate(w.problem, o.U, threads)
		if err == nil {
			e, err = preferStart(w, o, e, threads)
		}
		if err == nil && o.Reason == launch.Stagnated {
			o.Rounding, err = verify.RoundingLevel(w.problem, o.U, threads)
		}
		return e, nil, err
	}
	out := report.NewEvolution(w.problem, o, stepMode)
	if o.Last.Step == 0 {
		return unevaluated("the run completed no time step"), out, nil
	}
	last, err := verify.EvaluateStep(w.problem, o.Last.Step, o.Last.Before, o.Last.End, threads)
	if err != nil {
		return last, out, err
	}
	worst := last
	if o.Worst.Step != o.Last.Step {
		if worst, err = verify.EvaluateStep(w.problem, o.Worst.Step, o.Worst.Before, o.Worst.End, threads); err != nil {
			return last, out, err
		}
	}
	out.LastResidual = nullable.Number(last.RelativeResidual)
	out.WorstResidual = nullable.Number(worst.RelativeResidual)
	out.MaxErrorSteps, out.MaxErrorStep = nullable.Number(r.worst), nullable.Measured(int64(r.worstStep))
	if worst.RelativeResidual < last.RelativeResidual {
		out.WorstResidual, out.WorstStep = out.LastResidual, nullable.Count(o.Last.Step)
	}
	last.RelativeResidual = max(last.RelativeResidual, worst.RelativeResidual)
	r.bound(&last, o.Last.Step)
	return last, out, nil
}

// preferStart replaces the iterate of a run that has not converged by the starting iterate if that has a smaller
// residual, and evaluates it. The start max(φ, 0) has the relative residual 1. A run that continues another one does so with
// the answer of that one.
func preferStart(w *work, o *launch.Outcome, e verify.Evaluation, x problem.Executor) (verify.Evaluation, error) {
	if o.Reason == launch.Converged {
		return e, nil
	}
	before := w.initial
	if w.best != nil {
		before = w.best
	}
	start, s, err := verify.BetterStart(w.problem, before, e.RelativeResidual, x)
	if start == nil || err != nil {
		return e, err
	}
	o.U, o.AtStart, o.Ended = start, true, o.U
	if o.Reason != launch.Time && o.Reason != launch.Interrupted {
		return verify.Evaluate(w.problem, start, x)
	}
	return s, nil
}

// bound sets the error bound of the whole run instead of that of the last step.
func (r *recorder) bound(last *verify.Evaluation, step int) {
	last.ErrorBound = math.NaN()
	c := &last.Certificate
	if c.Why != "" {
		return
	}
	c.By, c.Why = "", "errors of earlier time steps add to that of the last, and "+r.unboundedBecause
	if r.bounds != nil {
		last.ErrorBound, c.By, c.Why = r.bounds.At(step)
	}
}
