package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/progress"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/figure"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

type simulation struct {
	model     string
	standIn   int
	noOverlap bool
	lose      []string // machines that fall silent, RANK@TIME
	kill      []string // peers that are killed, RANK@TIME
	cut       []string // partitions of the network, RANKS@FROM-TO
	keepers   int      // 0: chosen
	join      []string // when further machines join, TIME
	leave     []string // machines that are asked to leave, MACHINE@TIME
}

func (s *simulation) flags(f *pflag.FlagSet) {
	f.StringVar(&s.model, "model", "", "cluster to simulate: a name (obstacle clusters lists them) or a file")
	f.IntVar(&s.standIn, "stand-in", 1,
		"C: relax a grid C times coarser, and scale times and bytes to the full grid (without --n: 8, of 256)")
	f.BoolVar(&s.noOverlap, "no-overlap", false,
		"send faces after the whole block has been relaxed, so that no transfer overlaps relaxation")
}

const maxStandIn = 64

// size sets the default grid: that of the published measurements, represented by a coarse one. Small grids on many
// machines would measure the network only.
func (s *simulation) size(q *request, f *pflag.FlagSet, ref string) {
	if f.Changed("n") || q.ofIteration(ref) {
		return
	}
	q.n = "256"
	if !f.Changed("stand-in") {
		s.standIn = 8
	}
}

func (s *simulation) check() error {
	switch {
	case s.model == "":
		return usage("--model is required: a name (obstacle clusters lists them) or a file")
	case s.standIn < 1 || s.standIn > maxStandIn:
		return usage("--stand-in %d: want 1 to %d", s.standIn, maxStandIn)
	}
	return nil
}

// virtualRun is a simulated run and its result.
type virtualRun struct {
	simulate.Config
	work    *work
	label   string // prefix of its name if there are several methods
	figures report.Simulated
	result  *simulate.Result // without the answer
	err     error            // why it failed or ended early
	refused error            // why it was refused; it then has figures only
	wall    time.Duration

	coarser *virtualRun   // the same on a coarser stand-in; nil for none
	alone   *cluster.Host // of t(1); nil: the fastest machine of the run

	residuals []figure.Sample // in virtual time
	pages     *pages          // that show the run; nil for none
}

func (r *virtualRun) name() string {
	return fmt.Sprintf("%s%s, %d", r.label, r.Solver.Scheme.Name(), r.Solver.Partition.Peers())
}

// prepare returns the run that the flags describe. Its errors are bad input.
func (a *app) prepare(q *request, s *simulation, f *clusterfile.File, ref, scheme string, machines int) (
	*virtualRun, error,
) {
	if err := q.checkBounds(); err != nil {
		return nil, err
	}
	if err := s.checkKeepers(q); err != nil {
		return nil, err
	}
	if machines < 1 {
		return nil, usage("--machines %d: want 1 or more", machines)
	}
	joins, leaves, err := s.elastic(machines)
	if err != nil {
		return nil, err
	}
	m, err := f.Model(machines + len(joins))
	if err != nil {
		return nil, badInput(err)
	}
	var sites []string
	parts := max(q.Parts, 1)
	for i := range m.Hosts[:machines] {
		sites = append(sites, slices.Repeat([]string{m.Sites[m.Hosts[i].Site]}, parts)...)
	}
	of := *q
	of.Scheme = scheme
	w, err := of.numeric(ref, sites, s.standIn)
	if err != nil {
		return nil, err
	}
	if w.partition, w.partitionWhy, err = partitionOf(q.partition, w.problem, machines*parts, q.weights); err != nil {
		if s.standIn > 1 {
			err = fmt.Errorf("%w, or a smaller one than --stand-in %d", err, s.standIn)
		}
		return nil, badInput(err)
	}
	if err := of.chooseMethod(w, sites); err != nil {
		return nil, err
	}
	if s.noOverlap && w.method.Name != problem.Richardson {
		return nil, usage("--no-overlap with --method %s: only %s sends faces while it relaxes", w.method.Name,
			problem.Richardson)
	}
	switch made := w.partition.Peers(); {
	case made != machines*parts && parts > 1:
		return nil, usage("--partition %s makes %d parts for %d machines with --parts %d", q.partition, made, machines, parts)
	case made != machines*parts:
		return nil, usage("--partition %s makes %d parts for %d machines", q.partition, made, machines)
	}
	c := q.config(w)
	if err := q.catalog.Methods.Check(c); err != nil {
		return nil, badInput(err)
	}
	c.KeepEvery = 0 // the simulation sets it by the longest block
	return &virtualRun{work: w, pages: q.pages, Config: simulate.Config{
		Model: m, Parts: parts, Balance: q.balance == "on", Joins: joins, Leaves: leaves, Scale: s.standIn, NoOverlap: s.noOverlap, Until: q.MaxTime, Seed: q.Seed,
		Catalog: a.catalog.Protocols, Policy: p2psap.TablePolicy{Optional: w.rows}, Evaluate: true,
		Solver: c, Methods: a.catalog.Methods, Recover: q.recovery(s),
	}}, nil
}

// single returns the synchronous run of one machine, like host, without the events of the model.
func (a *app) single(q *request, s *simulation, f *clusterfile.File, ref string, host *cluster.Host) (*virtualRun, error) {
	one := *q
	one.partition, one.weights = "auto", nil
	one.Parts, one.balance = 1, "off"
	one.method.Flexible, one.method.several = false, true
	same := *s
	same.join, same.leave = nil, nil
	r, err := a.prepare(&one, &same, f.WithoutEvents(), ref, "sync", 1)
	if err == nil {
		r.Model.Hosts[0].Class = host.Class
	}
	return r, err
}

// sequential reports whether a run does the same sweeps as one machine, so that t(1) follows from it.
func (r *virtualRun) sequential() bool {
	return r.refused == nil && r.work.method.Name == problem.Richardson && r.work.order == problem.Jacobi &&
		r.work.scheme.Lockstep() && !r.repeatsSteps()
}

// repeatsSteps reports whether a loss or a move may begin a time step again, whose sweeps then count twice.
func (r *virtualRun) repeatsSteps() bool {
	return r.work.problem.Steps() > 0 && (r.Balance || len(r.Joins)+len(r.Leaves) > 0 || slices.ContainsFunc(r.Model.Events, func(e cluster.Event) bool {
		return e.Lost || e.Killed
	}))
}

func (r *virtualRun) points() int {
	points := r.work.problem.Points()
	for range r.work.problem.Dimension {
		points *= r.Scale
	}
	return points
}

// reference returns t(1), the time until the tolerance was met, and its description. one is the run of one machine.
// If it is nil, t(1) follows from like, a run that does the same sweeps. t(1) is 0 if it is unknown.
func reference(one, like *virtualRun) (alone report.Alone, about string) {
	if one != nil {
		if !one.figures.Converged {
			return alone, "unknown: one machine did not reach the tolerance"
		}
		alone = report.Alone{Seconds: one.figures.Met, Sweeps: one.figures.MetSweeps}
		return alone, fmt.Sprintf("sync on one machine (%s), simulated", one.Model.Hosts[0].Name)
	}
	if !like.figures.Converged {
		return alone, "unknown: the tolerance was not reached"
	}
	h := like.referenceHost()
	alone.Sweeps = like.figures.MetSweeps
	alone.Seconds = nullable.Number(float64(alone.Sweeps) * float64(like.points()) / speed(h))
	return alone, fmt.Sprintf("sync on one machine (%s), %.4g sweeps of %d points, computed", h.Name, alone.Sweeps,
		like.points())
}

func (r *virtualRun) subject(s *simulation, f *clusterfile.File) report.Subject {
	p := r.work.problem
	n := slices.Clone(p.N[:p.Dimension])
	for i := range n {
		n[i] *= s.standIn
	}
	return report.Subject{
		Problem: r.work.spec.Name(), N: n, Points: r.points(), Model: f.Name, Sources: append([]string{}, f.Sources...),
		Method: r.work.method.Name, Order: r.work.order.String(), StandIn: s.standIn, Late: s.noOverlap,
		Tolerance: r.Solver.Tolerance, Seed: r.Seed, Version: build.Version(),
	}
}

// simulateAll simulates the runs, one per processor at a time. The result of a run does not depend on the others.
// Runs that cannot be simulated are refused; if all are, the error is returned. Runs that fail or are interrupted
// have an err.
func (a *app) simulateAll(ctx context.Context, runs []*virtualRun) error {
	if err := checkMemory(runs, runtime.GOMAXPROCS(0), host.Memory()); err != nil {
		return err
	}
	bars := a.bars()
	defer a.closeBars(bars)
	parallel{}.For(len(runs), func(i int) {
		runs[i].simulate(ctx, bars)
		a.log.Info().Str("run", runs[i].name()).Dur("took", runs[i].wall).Msg("simulated")
	})
	possible := false
	for _, r := range runs {
		if r.result == nil { // before it began
			r.refused = r.err
			r.figures = report.Refused(r.Solver.Scheme.Name(), r.Solver.Partition.Peers(), r.err)
			if errors.Is(r.err, context.Canceled) {
				r.figures.Failure = "interrupted before it began"
			}
		}
		possible = possible || r.refused == nil
	}
	switch {
	case possible:
	case errors.Is(runs[0].err, context.Canceled):
		return errInterrupted
	default:
		return badInput(runs[0].err)
	}
	return nil
}

// bytesPerPoint is the minimum memory that a simulation needs per relaxed point.
const bytesPerPoint = 48

// checkMemory returns an error if the runs, at so many at a time, do not fit into memory (0 if unknown), since the
// system would kill the program without a message.
func checkMemory(runs []*virtualRun, at int, memory uint64) error {
	points := 0
	for _, r := range runs {
		points = max(points, r.work.problem.Points())
	}
	if need := float64(points) * float64(min(at, len(runs))) * bytesPerPoint; memory > 0 && need > float64(memory) {
		return usage("%d points in %d simultaneous runs need at least %.0f GB of memory, and there are %.0f: "+
			"give a smaller --n, or a larger --stand-in, which relaxes fewer points for the same grid",
			points, min(at, len(runs)), need/1e9, float64(memory)/1e9)
	}
	return nil
}

func (r *virtualRun) simulate(ctx context.Context, bars *progress.Bars) {
	if r.err = ctx.Err(); r.err != nil {
		return
	}
	began := time.Now()
	r.residuals = figure.Record(nil, 0, 1)
	seen := r.pages.observeVirtual(r)
	bar := bars.Add(spelling.Visible(r.name()), r.Solver.Tolerance)
	defer bar.Remove()
	r.Watch = func(p simulate.Progress) {
		r.residuals = figure.Record(r.residuals, p.Virtual.Seconds(), p.Residual)
		seen.watch(p)
		bar.Update(time.Since(began), uint64(p.Sweeps), p.Residual)
	}
	r.result, r.err = simulate.Run(ctx, r.Config)
	r.wall = time.Since(began)
	if r.result != nil {
		if errors.Is(r.err, context.Canceled) {
			r.figures = report.Figures(r.result, &r.Config, nil)
			r.figures.Reason, r.figures.Converged = iterate.Interrupted.String(), false
		} else {
			r.figures = report.Figures(r.result, &r.Config, r.err)
		}
		seen.end(r)
		r.result.U = nil
	}
}

var errInterrupted = &exitError{code: ExitStopped, err: errors.New("interrupted")}

func (r *virtualRun) verdict() error {
	switch {
	case errors.Is(r.err, context.Canceled):
		return errInterrupted
	case r.refused != nil:
		return &exitError{code: ExitUsage} // its row shows the reason
	case errors.Is(r.err, simulate.ErrCutOff):
		return &exitError{code: ExitStopped, err: r.err}
	case r.err != nil:
		return failed(fmt.Errorf("%s machines: %w", r.name(), r.err))
	case r.figures.Converged:
		return nil
	case r.result.Reason == iterate.Converged && float64(r.figures.Residual) > 2*r.Solver.Tolerance:
		return failed(wrongVerdict(r.Solver.Tolerance, r.figures.Residual, ""))
	}
	return &exitError{code: ExitStopped}
}
