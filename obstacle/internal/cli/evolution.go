package cli

import (
	"cmp"
	"math"
	"runtime"
	"slices"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// stepModes parses --step-mode: whether sessions change their mode at the start of every time step.
func (q *request) stepModes() (bool, error) {
	switch q.stepMode {
	case "", "step":
		return true, nil
	case "never":
		return false, nil
	}
	return false, usage("--step-mode %q: want step or never", q.stepMode)
}

// recorder looks at every complete time step: the error where an exact solution is
// known, and the files of time series. It is told by one goroutine at a time.
type recorder struct {
	problem *problem.Problem
	every   int
	series  []*timeSeries
	option  *optionRecord

	worst     float64 // largest error; NaN: no exact solution
	worstStep int

	bounds  *verify.StepBounds // nil: the steps are not judged each
	unbound string             // why not
	before  []float64          // the end of the step before, with bounds
}

// timeSeries is one among the outputs. After its first error it is not written any further: what
// it holds then are the steps before.
type timeSeries struct {
	*output.Series
	name string
	err  error
}

// judgedPoints is how many points all time steps of a run may have together for each to
// be judged without being asked for: some tenths of a second.
const judgedPoints = 1 << 22

// newRecorder prepares the series among the outputs of a run; of a stationary problem
// there can be none.
func newRecorder(w *work, out []string, every int) (*recorder, error) {
	r := &recorder{problem: w.problem, every: every, worst: math.NaN(), unbound: "there are too many to judge each"}
	if n := w.problem.Steps(); n > 0 && w.problem.Points() <= judgedPoints/n {
		r.bounds = verify.NewStepBounds(w.problem)
	}
	if every < 1 {
		return nil, usage("--out-every %d: want 1 or more", every)
	}
	var err error
	if r.option, err = newOptionRecord(w, out); err != nil {
		return nil, err
	}
	for _, name := range out {
		if !output.IsSeries(name) {
			continue
		}
		if w.problem.Steps() == 0 {
			return nil, usage("--out %s: a time series of a problem that does not change in time; give .vti", name)
		}
		s, err := output.CreateSeries(name, w.problem.Steps())
		if err != nil {
			return nil, badInput(err)
		}
		r.series = append(r.series, &timeSeries{Series: s, name: name})
	}
	return r, nil
}

// step is launch.Plan.Steps. What fails here does not end the run: the answer says it.
func (r *recorder) step(m int, t float64, u []float64) {
	at := r.problem.AtStep(m)
	if e := verify.MaxError(at, u); m > 0 && (!(e <= r.worst)) && !math.IsNaN(e) {
		r.worst, r.worstStep = e, m
	}
	r.option.step(m, t, at, u)
	if r.bounds != nil {
		if m > 0 {
			if err := r.bounds.Add(m, r.before, u, nil); err != nil {
				r.bounds, r.unbound = nil, err.Error()
			}
		}
		r.before = append(r.before[:0], u...)
	}
	if m%r.every != 0 && m != r.problem.Steps() {
		return
	}
	for _, s := range r.series {
		if s.err == nil {
			s.err = s.Add(m, t, output.Solution{Problem: at, U: u, Extra: r.option.extra()})
		}
	}
}

// closeSeries ends the series of that name.
func (r *recorder) closeSeries(name string) error {
	i := slices.IndexFunc(r.series, func(s *timeSeries) bool { return s.name == name })
	s := r.series[i]
	return cmp.Or(s.err, s.Close())
}

// judge recomputes what is known of a run's answer. Of a nonstationary problem that is
// the end of the last complete step, with the residual of the worst one; both are
// judged from assembled vectors.
func (a *app) judge(w *work, o *launch.Outcome, r *recorder, reconfigure string) (verify.Evaluation, *report.Evolution, error) {
	threads := parallel(runtime.GOMAXPROCS(0))
	if w.problem.Evolution == nil {
		evaluate := verify.Evaluate
		if o.Reason == launch.Interrupted {
			evaluate = verify.Measure // the user waits for the end
		}
		e, err := evaluate(w.problem, o.U, threads)
		if err == nil {
			e, err = better(w, o, e, threads)
		}
		return e, nil, err
	}
	out := report.NewEvolution(w.problem, o, reconfigure)
	if o.Last.Step == 0 { // not one step: nothing to judge
		nan := math.NaN()
		none := verify.Certificate{Inverse: nan, Why: "no time step was completed"}
		return verify.Evaluation{RelativeResidual: nan, ResidualInf: nan, ErrorBound: nan, MaxError: nan, Sum: nan, ContactPoints: -1, UpperPoints: -1, Force: [2]float64{nan, nan}, Certificate: none}, out, nil
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
	out.LastResidual, out.WorstResidual = nullable.Number(last.RelativeResidual), nullable.Number(worst.RelativeResidual)
	out.MaxErrorSteps, out.MaxErrorStep = nullable.Number(r.worst), nullable.Measured(int64(r.worstStep))
	if worst.RelativeResidual < last.RelativeResidual {
		out.WorstResidual, out.WorstStep = out.LastResidual, nullable.Count(o.Last.Step)
	}
	last.RelativeResidual = max(last.RelativeResidual, worst.RelativeResidual)
	r.bound(&last, o.Last.Step)
	return last, out, nil
}

// better puts the start in the place of the iterate at an early end if that has a larger
// residual, and judges it. max(φ, 0) has the residual 1, relative to itself.
func better(w *work, o *launch.Outcome, e verify.Evaluation, x problem.Executor) (verify.Evaluation, error) {
	early := o.Reason == launch.Sweeps || o.Reason == launch.Time || o.Reason == launch.Interrupted
	if !early || e.RelativeResidual <= 1 && w.initial == nil && w.problem.Initial == nil {
		return e, nil
	}
	start := launch.Start(w.problem, w.initial)
	s, err := verify.Measure(w.problem, start, x)
	if err != nil || e.RelativeResidual <= s.RelativeResidual {
		return e, err
	}
	o.U, o.AtStart = start, true
	if o.Reason == launch.Interrupted {
		return s, nil
	}
	return verify.Evaluate(w.problem, start, x)
}

// bound puts that of the whole run in the place of the last step's.
func (r *recorder) bound(last *verify.Evaluation, step int) {
	last.ErrorBound = math.NaN()
	c := &last.Certificate
	if c.Why != "" {
		return
	}
	c.By, c.Why = "", "errors of earlier time steps add to that of the last, and "+r.unbound
	if r.bounds != nil {
		last.ErrorBound, c.By, c.Why = r.bounds.At(step)
	}
}
