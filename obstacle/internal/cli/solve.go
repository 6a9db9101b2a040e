package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

func (a *app) solveCommand() *cobra.Command {
	s := &solveFlags{request: &request{catalog: a.catalog}}
	c := &cobra.Command{
		Use:   "solve PROBLEM",
		Short: "Solve an obstacle problem",
		Long: `solve solves PROBLEM on several peers. PROBLEM is a name (obstacle problems lists
them) or a problem file (docs/problems.md).

Exit codes: 0 solved, 1 failed at run time, 2 bad usage or input, 3 stopped before
the tolerance (time, sweeps, interrupt); the best iterate is then still written.

For a run over several hosts give --rendezvous ADDR and --secret-file FILE. solve
then waits for --peers peers, each started by hand with obstacle peer. obstacle
secret generates the file.`,
		Example: `  obstacle solve membrane --n 32 --peers 2 --scheme async --out membrane.vti
  obstacle solve membrane --n 16 --format json`,
		Args: oneArgument("problem"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.solve(c, s, args[0])
		},
	}
	s.add(c.Flags())
	return grouped(c)
}

// solveFlags are the flags of solve and resume.
type solveFlags struct {
	*request
	out, probes []string
	outEvery    int
	checkpoints checkpointFlags
	page        pageFlags
}

func (s *solveFlags) add(f *pflag.FlagSet) {
	q := s.request
	q.flags(f)
	f.IntVar(&q.peers, "peers", 0, "number of peers, each a process (0: chosen, see the output)")
	schemeFlag(f, &q.Scheme, q.catalog)
	f.StringArrayVar(&s.out, "out", nil,
		"write the solution (.vti, .vtu, .xdmf, .npy, .png, .csv), the free boundary (.vtp), or a series (.pvd); repeatable")
	f.IntVar(&s.outEvery, "out-every", 1, "with a time series: write every K-th time step and the last")
	f.StringArrayVar(&s.probes, "probe", nil, "X,Y,Z: print u at the nearest grid point; repeatable")
	q.enclosing.add(f)
	q.trace.add(f, "record what every peer does, and write it to FILE.RANK")
	s.page.add(f)
	f.StringVar(&q.status, "status", "", "HOST:PORT, or PORT on loopback: serve the state of the run, for obstacle stack --live HOST:PORT")
	f.StringVar(&q.rendezvous, "rendezvous", "", "HOST:PORT: wait there for peers started by hand")
	f.StringVar(&q.secretFile, "secret-file", "", "with --rendezvous: file with the run's secret")
	f.IntVar(&q.Keepers, "keepers", 0,
		"with --rendezvous: processes that agree on who leads the run; most of them must be there: 1, 3 or 5 (0: 3)")
	f.BoolVar(&q.Elastic, "elastic", false,
		"with --rendezvous: peers that join while the run is in progress take parts of those that have several (--parts)")
	f.DurationVar(&q.joinTimeout, "join-timeout", 10*time.Minute, "with --rendezvous: bound on the wait for the peers")
	s.checkpoints.add(f)
	q.taskFlags.add(f)
}

func (a *app) solve(c *cobra.Command, s *solveFlags, ref string) error {
	if done, err := a.asTask(c, s); done || err != nil {
		s.refuse(err)
		return err
	}
	err := a.solveHere(c, s, ref)
	s.refuse(err)
	return err
}

// solveHere solves the problem in this process and the peers.
func (a *app) solveHere(c *cobra.Command, s *solveFlags, ref string) error {
	q, out := s.request, s.out
	if err := s.checkpoints.check(c.Flags()); err != nil {
		return err
	}
	if err := a.chooseHosts(c.Context(), q); err != nil {
		return err
	}
	if err := s.continues(ref); err != nil {
		return err
	}
	for i, o := range out {
		if err := output.CheckPath(o); err != nil {
			return badInput(err)
		}
		if slices.Contains(out[:i], o) {
			return usage("--out %s is given twice", o)
		}
		if of := output.ArrayOf(o, out); of != "" {
			return usage("--out %s could be an array of --out %s: give another name", o, of)
		}
	}
	w, err := q.resolve(ref)
	if err != nil {
		return err
	}
	if err := q.enclosing.check(w.problem); err != nil {
		return err
	}
	for _, o := range out {
		if err := output.CheckProblem(o, w.problem); err != nil {
			return badInput(err)
		}
	}
	places, err := probePoints(s.probes, w.problem)
	if err != nil {
		return badInput(err)
	}
	warnings := w.problem.Warnings()
	if o := w.spec.Option(); o != nil {
		warnings = append(warnings, o.Warnings()...)
	}
	for _, warning := range warnings {
		a.log.Warn().Msg(warning)
	}
	steps, err := newRecorder(w, out, s.outEvery, q.PeerTimeout)
	if err != nil {
		return err
	}
	s.page.status, q.page = q.status != "", &s.page
	if q.pages, err = a.openPages(&s.page); err != nil {
		return err
	}
	defer q.pages.close()
	if q.saver, err = a.newSaver(q, w, &s.checkpoints); err != nil {
		return err
	}
	ctx, stop := a.interrupts(c.Context())
	defer stop()
	o, err := a.execute(ctx, q, w, steps)
	if err != nil {
		return err
	}
	return cmp.Or(a.answer(ctx, q, w, o, steps, out, places), a.report(ctx, q.pages, q.PeerTimeout))
}

// answer evaluates, writes and prints the result of a run. After an error it still writes and prints everything else,
// and the exit code is 1.
func (a *app) answer(
	ctx context.Context, q *request, w *work, o *launch.Outcome, steps *recorder, out []string, places []problem.Point,
) error {
	s := a.describe(q, w)
	var e verify.Evaluation
	var wrong error
	if e, s.Evolution, wrong = a.evaluate(w, o, steps, q.stepMode); wrong != nil {
		e = unevaluated(wrong.Error())
	}
	s.Add(o, w.partition, e)
	if disagrees(s) {
		s.Failure = disagreement(w.problem, o)
	}
	s.Resumed = q.resumed()
	unsaved := q.saver.end(ctx, o, s) // first of all that is written, since the time left may be short
	end := w.problem.AtStep(o.Steps)
	var err error
	s.Option, err = steps.option.quote(end, o.U, s.Converged)
	wrong = cmp.Or(wrong, err)
	for _, p := range places {
		s.Probes = append(s.Probes, probe(end, o.U, p))
	}
	enclosing, stop := a.unlessInterrupted(ctx, s)
	defer stop()
	wrong = cmp.Or(wrong, q.enclosing.enclose(enclosing, s, end, o.U, &e, places))
	writing := time.Now()
	files := a.write(w, o, steps, out, end)
	files.wait(q.PeerTimeout, outputBytes*len(o.U))
	s.Outputs = files.prompt(ctx)
	for i := range s.Outputs {
		if o := &s.Outputs[i]; q.outputHost != "" {
			o.Host = q.outputHost
			a.log.Info().Str("host", o.Host).Str("path", o.File).Str("error", o.Error).Msg("output of the lost first process")
		}
	}
	s.OutputSeconds = time.Since(writing).Seconds()
	q.observed.end(s, o)
	s.LauncherPeak = nullable.Measured(host.PeakBytes())
	if a.answered != nil {
		a.answered(s, o.U)
	}
	if s.Converged && s.Reason == launch.Failed {
		a.log.Warn().Msg("the run failed, and its answer is solved all the same: " + s.Failure)
	}
	err = a.print(s, s.Text)
	return cmp.Or(err, unsaved, a.finish(ctx, files), failed(wrong), verdict(s))
}

// unevaluated returns the evaluation of an answer whose evaluation failed.
func unevaluated(why string) verify.Evaluation {
	nan := math.NaN()
	return verify.Evaluation{
		RelativeResidual: nan, ResidualInf: nan, ErrorBound: nan, MaxError: nan, Sum: nan,
		ContactPoints: int(nullable.Unknown), UpperPoints: int(nullable.Unknown), Force: [2]float64{nan, nan},
		Certificate: verify.Certificate{Inverse: nan, Why: why},
	}
}

// outputBytes is the number of bytes that files hold for each value, at most about.
const outputBytes = 100

// write begins to write the files of an answer. An error of one does not affect the others.
func (a *app) write(w *work, o *launch.Outcome, steps *recorder, out []string, end *problem.Problem) *writings {
	all := &writings{}
	pressed, noForce := force(w, o, out)
	answer := output.Solution{Problem: end, U: o.U, Force: pressed, Extra: steps.option.extra()}
	for _, name := range out {
		series := steps.find(name)
		switch {
		case series != nil: // written during the run
			all.begin(name, series.close)
		case output.IsExercise(name):
			all.begin(name, func() error { return steps.option.write(name) })
		default:
			all.begin(name, func() error {
				err := output.Write(name, answer)
				if err == nil && noForce != nil && output.HoldsForce(name) {
					err = fmt.Errorf("output %s: written without the contact force: %w", name, noForce)
				}
				return err
			})
		}
	}
	return all
}

// solution runs w without outputs and returns the evaluated answer.
func (a *app) solution(ctx context.Context, q *request, w *work) (*report.Solution, *launch.Outcome, error) {
	steps, err := newRecorder(w, nil, 1, 0)
	if err != nil {
		return nil, nil, err
	}
	o, err := a.execute(ctx, q, w, steps)
	if err != nil {
		return nil, nil, err
	}
	s := a.describe(q, w)
	var e verify.Evaluation
	if e, s.Evolution, err = a.evaluate(w, o, steps, q.stepMode); err != nil {
		return nil, nil, failed(err)
	}
	s.Add(o, w.partition, e)
	q.observed.end(s, o)
	return s, o, nil
}

// longRun is the time of a run from which a faster method is recommended while it goes on.
const longRun = 10 * time.Second

// execute runs w, and shows its progress.
func (a *app) execute(ctx context.Context, q *request, w *work, steps *recorder) (*launch.Outcome, error) {
	plan, err := a.plan(ctx, q, w)
	if err != nil {
		return nil, err
	}
	plan.Interrupt, plan.AttachFlags = a.interrupt, q.pages.again(q.secretFile)
	plan.Steps = func(m int, t float64, u []float64) {
		steps.step(m, t, u)
		q.saver.Step(m, u)
	}
	if plan.Watch = q.saver.Watch; q.saver != nil {
		plan.Captures = q.saver
	}
	q.observed = q.pages.observe(q, w, q.label)
	if q.observed != nil {
		plan.Status, plan.Samples = q.observed.status, q.observed.field
		watch := plan.Watch
		plan.Watch = func(p launch.Progress) { watch(p); q.observed.watch(p) }
	}
	if q.status != "" {
		if plan.Status == nil {
			plan.Status = &launch.Status{}
		}
		stop, err := a.serveStatus(q, w, plan.Status)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	if q.watch != nil {
		follow := plan.Watch
		plan.Watch = func(p launch.Progress) { follow(p); q.watch(p) }
	}
	bars := a.bars()
	defer a.closeBars(bars)
	bar := bars.Add(spelling.Visible(cmp.Or(q.label, w.spec.Name())), q.Tolerance)
	defer bar.Remove()
	follow := plan.Watch
	hint := ""
	if q.label == "" && w.problem.Steps() == 0 { // a stationary run that is not one of several that are compared
		hint = w.alternatives.Hint(w.method.Name, w.methodWhy)
	}
	plan.Watch = func(p launch.Progress) {
		follow(p)
		bar.Step(p.Step, w.problem.Steps())
		bar.Update(p.Elapsed, p.Sweep, p.Residual)
		if left := bar.LeftAtLeast(); hint != "" && left >= time.Second && p.Elapsed+left > longRun {
			a.say(fmt.Sprintf("at least %s left: %s", left.Round(time.Second), hint))
			hint = ""
		}
	}
	o, err := launch.Run(ctx, plan)
	plan.Status.Enter(launch.Judging)
	if err != nil {
		q.observed.fail(err)
	}
	switch {
	case errors.Is(err, launch.ErrInterrupted):
		return nil, &exitError{ExitStopped, err}
	case ctx.Err() != nil:
		return nil, endedAtOnce()
	case err != nil:
		return nil, failed(err)
	}
	return o, nil
}

// endedAtOnce returns the error of a process that a second signal has ended.
func endedAtOnce() error {
	return &exitError{ExitStopped, errors.New("ended at once by the second interrupt; nothing was written")}
}

// describe returns the part of the answer that is known before the run.
func (a *app) describe(q *request, w *work) *report.Solution {
	d, parts := w.problem.Dimension, w.partition.Parts()
	recover, recoverWhy := launch.Recovery(q.Recover, w.problem.Steps() > 0, q.Spares)
	return &report.Solution{
		Problem: w.spec.Name(), N: slices.Clone(w.problem.N[:d]), Points: w.problem.Points(),
		Scheme: w.scheme.Name(), Method: w.method.Name, MethodWhy: w.methodWhy, Order: w.order.String(),
		Alternatives: w.alternatives, Peers: w.peers, Threads: w.threads, Chosen: w.chosenBecause, InProcess: q.inProcess,
		Partition: slices.Clone(parts[:d]), Recover: recover, RecoverWhy: recoverWhy,
		Balance: w.balance, PartitionWhy: w.partitionWhy,
		HasUpper:  w.problem.AtStep(min(1, w.problem.Steps())).Upper != nil,
		Tolerance: q.Tolerance, Probes: []report.Probe{}, Outputs: []report.Output{}, Seed: q.Seed, Version: build.Version(),
	}
}

func verdict(s *report.Solution) error {
	switch s.Reason {
	case launch.Converged:
		if s.Converged {
			return nil
		}
		if !disagrees(s) {
			return &exitError{code: ExitStopped}
		}
		return failed(wrongVerdict(s.Tolerance, s.RelativeResidual, s.Failure))
	case launch.Failed:
		if s.Converged { // the blocks of lost peers were filled, and the answer meets the tolerance
			return nil
		}
		return failed(errors.New(s.Failure))
	case launch.Diverged:
		return failed(errors.New("the run diverged: " + s.Failure))
	}
	return &exitError{code: ExitStopped}
}

// wrongVerdict returns the error of a run whose peers stopped above the tolerance.
func wrongVerdict(tolerance float64, residual nullable.Number, where string) error {
	return fmt.Errorf("the peers agreed on a residual below %g, but that of the assembled solution is %g: %s",
		tolerance, residual, cmp.Or(where, "this is a bug of the program"))
}

func probePoints(flags []string, p *problem.Problem) ([]problem.Point, error) {
	var out []problem.Point
	for _, s := range flags {
		v, err := values(s, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
		if err != nil || len(v) != p.Dimension {
			return nil, fmt.Errorf("--probe %q: want %d coordinates, such as %s",
				s, p.Dimension, strings.TrimSuffix(strings.Repeat("0.5,", p.Dimension), ","))
		}
		var q problem.Point
		copy(q[:], v)
		if i := q[0]; p.FixedPoint != nil && !(i >= 0 && i < float64(p.N[0]) && i == math.Floor(i)) {
			return nil, fmt.Errorf("--probe %q: the unknowns of %s are 0 to %d", s, p.Name, p.N[0]-1)
		}
		for a := range p.Dimension {
			if !(q[a] >= p.Lo[a] && q[a] <= p.Hi[a]) {
				return nil, fmt.Errorf("--probe %q: coordinate %d is outside the domain, %g to %g", s, a, p.Lo[a],
					p.Hi[a])
			}
		}
		out = append(out, q)
	}
	return out, nil
}

// probe returns u at the grid point nearest to q, which may be on the boundary.
func probe(p *problem.Problem, u []float64, q problem.Point) report.Probe {
	idx := p.Nearest(q)
	at := p.At(idx[0], idx[1], idx[2])
	return report.Probe{At: slices.Clone(at[:p.Dimension]), U: p.ValueAt(u, idx)}
}
