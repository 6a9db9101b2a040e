package solver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Errors of Solve and Iterate, for errors.Is. Errors in the problem wrap problem.ErrProblem, errors in its
// partition problem.ErrPartition.
var (
	// ErrOptions is wrapped by errors about invalid options.
	ErrOptions = errors.New("solver: invalid options")
	// ErrNotConverged is wrapped by the error of a run that ended before it met the tolerance. The best
	// iterate is returned with it. If the context ended the run, the error also wraps its cause.
	ErrNotConverged = errors.New("solver: the run ended before the tolerance was met")
)

// DefaultTolerance is used when the tolerance of Options or Iteration is 0.
const DefaultTolerance = 1e-6

// Options holds the settings of Solve. The zero value solves by the method that Catalog.Choose selects, with one
// peer, one thread per processor and DefaultTolerance.
type Options struct {
	// Method without a name, or with the name Auto, is selected by Catalog.Choose; its other settings then say which methods
	// fit. With At it is richardson, because the nodes have been connected for the links of a method.
	Method  problem.MethodConfig
	Methods *Catalog       // if nil, Methods()
	Scheme  iterate.Scheme // if nil, iterate.Synchronous()
	Order   problem.Order
	// Peers is the number of peers in this process, which exchange halos over the loopback interface.
	// With 0 there is one. Peers is not used with Partition or At.
	Peers int
	// Partition divides the grid among the peers. Its zero value selects slabs or boxes, whichever have
	// the smaller surface.
	Partition problem.Partition
	// Threads is the number of threads of each peer. With 0 the processors are divided among the peers
	// of this process.
	Threads    int
	Tolerance  float64           // relative residual; with 0 it is DefaultTolerance
	MaxSweeps  iterate.Iteration // of each peer; 0 means no bound
	MaxTime    time.Duration     // 0 means no bound
	CheckEvery iterate.Iteration // see problem.Config
	Initial    []float64         // starting values of the whole grid, [z][y][x]; if nil, those of the problem
	After      int               // complete time steps; Initial then holds the end of the last one
	Balance    bool              // moves planes between peers of different speed; see problem.Config
	// At makes this process one peer of a run over several processes. If nil, all peers run in this process.
	At *Place
	// Progress, unless nil, is called from time to time by the goroutine of peer 0, with At by that of this peer.
	Progress func(runner.Progress)
	// Step, unless nil, is called at the end of every time step with the values of the whole grid, with At with those
	// of this peer's box. Calls do not overlap. u is valid during the call. An error ends the run.
	Step func(s iterate.StepResult, u []float64) error
	Log  *slog.Logger // nil logs nothing

	choice Choice
}

// Place is the place of this process in a run over several processes.
type Place struct {
	Rank iterate.Rank
	// Node must be connected to the peers that Links returns.
	Node runner.Node
	// Names holds the names of the nodes by rank.
	Names []string
}

// Solution is the result of Solve.
type Solution struct {
	// U holds the values of the whole grid, [z][y][x], with Options.At those of Box. For a problem with
	// time steps it is the end of the last complete step.
	U   []float64
	Box problem.Box // the part of the grid in U
	// Evaluation is recomputed from the problem and U after the run. It is zero with Options.At and
	// for problems with time steps; for those see verify.EvaluateStep.
	Evaluation verify.Evaluation
	Reason     iterate.Reason
	Method     string            // description of the method, possibly empty
	Choice     Choice            // the method that was chosen; zero if Options names one
	Peers      []runner.Result   // by rank; with Options.At only this peer
	Partition  problem.Partition // at the start

	problem *problem.Problem
}

// At returns the value at a point of the domain; see problem.Problem.Interpolate. With Options.At, which yields a part of the
// grid, it is NaN.
func (s *Solution) At(q problem.Point) float64 {
	if s.problem == nil || len(s.U) != s.problem.Points() {
		return math.NaN()
	}
	return s.problem.Interpolate(s.U, q)
}

// Solve solves an obstacle problem. It returns when the residual meets the tolerance, when a bound of the
// options is reached, or when ctx ends. In the last two cases the best iterate is returned with an
// error that wraps ErrNotConverged. Other errors are returned without a solution. The solution keeps p.
// The functions of the problem are called by several goroutines at the same time.
func Solve(ctx context.Context, p *problem.Problem, o Options) (*Solution, error) {
	c, err := o.prepare(p)
	if err != nil {
		return nil, err
	}
	s := &solving{ctx: ctx, o: &o, c: c}
	if o.At != nil {
		return s.one()
	}
	return s.all()
}

// prepare sets defaults and returns an error for invalid options or an invalid problem.
func (o *Options) prepare(p *problem.Problem) (problem.Config, error) {
	if p == nil {
		return problem.Config{}, fmt.Errorf("%w: no problem", ErrOptions)
	}
	if err := p.Validate(); err != nil {
		return problem.Config{}, err
	}
	if err := verify.CheckReaction(p, nil); err != nil {
		return problem.Config{}, p.Errorf("%v", err)
	}
	if o.Methods == nil {
		o.Methods = Methods()
	}
	o.Scheme = cmp.Or(o.Scheme, iterate.Synchronous())
	o.Tolerance = cmp.Or(o.Tolerance, DefaultTolerance)
	if err := o.checkBounds(); err != nil {
		return problem.Config{}, err
	}
	if o.Partition.Peers() == 0 {
		peers := max(1, o.Peers)
		if o.At != nil {
			peers = max(1, len(o.At.Names))
		}
		var err error
		if o.Partition, _, err = problem.SlabsOrBoxes(p.N, peers, nil); err != nil {
			return problem.Config{}, err
		}
	}
	if len(o.Initial) != p.Points() && (o.Initial != nil || o.After > 0) {
		return problem.Config{}, fmt.Errorf("%w: %d starting values; the grid has %d points",
			ErrOptions, len(o.Initial), p.Points())
	}
	if err := o.checkPlace(); err != nil {
		return problem.Config{}, err
	}
	if o.Threads == 0 {
		here := o.Partition.Peers()
		if o.At != nil {
			here = 1
		}
		o.Threads = max(1, runtime.GOMAXPROCS(0)/here)
	}
	c := problem.Config{
		Problem: p, Partition: o.Partition, Scheme: o.Scheme, Order: o.Order, Method: o.Method, Balance: o.Balance,
		Tolerance: o.Tolerance, MaxSweeps: o.MaxSweeps, CheckEvery: o.CheckEvery, After: o.After,
	}
	if o.At != nil {
		c.Rank = o.At.Rank
	}
	if err := o.choose(&c); err != nil {
		return c, err
	}
	if err := o.Methods.Check(c); err != nil {
		if errors.Is(err, problem.ErrProblem) || errors.Is(err, problem.ErrPartition) {
			return c, err
		}
		return c, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return c, nil
}

// choose sets the method of c if the options name none.
func (o *Options) choose(c *problem.Config) error {
	if c.Method.Name != "" && c.Method.Name != Auto {
		if err := Unused(givenSettings(c), c.Method); err != nil {
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
		return nil
	}
	if c.Method.Name = ""; o.At != nil {
		return nil
	}
	var err error
	if o.choice, err = o.Methods.Choose(Run{Config: *c, Given: givenSettings(c)}); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	m := &c.Method
	if o.choice.Set(m); m.Name == problem.Schwarz {
		m.Overlap = cmp.Or(m.Overlap, problem.DefaultOverlap)
	}
	return nil
}

// checkBounds returns an error for a number that no run can have.
func (o *Options) checkBounds() error {
	switch {
	case o.Peers < 0:
		return fmt.Errorf("%w: %d peers; there must be 1 or more, or 0 for 1", ErrOptions, o.Peers)
	case o.Threads < 0 || o.Threads > runner.MaxThreads:
		return fmt.Errorf("%w: %d threads; there may be 1 to %d, or 0 for a default",
			ErrOptions, o.Threads, runner.MaxThreads)
	case o.MaxTime < 0:
		return fmt.Errorf("%w: a time bound of %v; it must not be negative", ErrOptions, o.MaxTime)
	}
	return nil
}

// checkPlace returns an error if At does not fit the partition.
func (o *Options) checkPlace() error {
	peers := o.Partition.Peers()
	switch {
	case o.At == nil || peers == 1:
		return nil
	case len(o.At.Names) != peers:
		return fmt.Errorf("%w: names of %d nodes; the partition has %d peers", ErrOptions, len(o.At.Names), peers)
	case o.At.Node == nil:
		return fmt.Errorf("%w: At has no node; a run of %d peers needs one", ErrOptions, peers)
	}
	return nil
}

// solving is the state of one call of Solve.
type solving struct {
	ctx context.Context
	o   *Options
	c   problem.Config

	mu    sync.Mutex
	steps map[int]*assembly // time steps that some peers have completed
}

// config returns the configuration of one peer.
func (s *solving) config(r iterate.Rank) runner.Config {
	c := s.c
	c.Rank = r
	if s.o.Initial != nil {
		c.Initial = part(s.o.Initial, c.Problem.N, c.Partition.Box(r))
	}
	out := runner.Config{
		New: s.o.Methods.New, Solver: c, Threads: s.o.Threads, MaxTime: s.o.MaxTime, Log: s.o.Log,
		Crowded: s.o.At == nil && c.Partition.Peers()*s.o.Threads > runtime.GOMAXPROCS(0),
	}
	if s.o.At != nil || r == 0 {
		out.Progress = s.o.Progress
	}
	return out
}

// one runs this process's peer of a run over several processes.
func (s *solving) one() (*Solution, error) {
	c := s.config(s.o.At.Rank)
	c.Node, c.Names = s.o.At.Node, s.o.At.Names
	if s.o.Step != nil {
		c.Step = func(r iterate.StepResult, box problem.Box, solution func([]float64)) error {
			u := make([]float64, box.Points())
			solution(u)
			return s.o.Step(r, u)
		}
	}
	return s.run(s.ctx, c)
}

// run runs one peer. The solution holds the values of its box.
func (s *solving) run(setup context.Context, c runner.Config) (*Solution, error) {
	r, err := runner.New(setup, c)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	res, err := r.Run(s.ctx)
	if err != nil {
		return nil, err
	}
	out := &Solution{
		U: make([]float64, r.Box().Points()), Box: r.Box(), Reason: res.Reason, Method: r.Method(),
		Peers: []runner.Result{res}, Partition: s.c.Partition,
	}
	r.Solution(out.U)
	if s.o.At != nil {
		err = s.preferStart(out)
	}
	return out, cmp.Or(err, s.ended(res.Reason))
}

// all runs all peers in this process.
func (s *solving) all() (*Solution, error) {
	p := s.c.Problem
	out := &Solution{
		U: make([]float64, p.Points()), Box: problem.Box{Hi: p.N},
		Peers: make([]runner.Result, s.c.Partition.Peers()), Partition: s.c.Partition, Choice: s.o.choice, problem: p,
	}
	if s.o.Step != nil {
		s.steps = map[int]*assembly{}
	}
	links := func(r iterate.Rank) []iterate.Link { return s.o.Methods.Links(&s.c, r) }
	run := func(setup context.Context, r iterate.Rank, node runner.Node, names []string) error {
		c := s.config(r)
		c.Node, c.Names = node, names
		if s.o.Step != nil {
			c.Step = s.step
		}
		one, err := s.run(setup, c)
		if one == nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		place(out.U, p.N, one.Box, one.U)
		if out.Peers[r] = one.Peers[0]; r == 0 {
			out.Reason, out.Method = one.Reason, one.Method
		}
		return nil
	}
	err := together(s.ctx, len(out.Peers), links, s.o.Log, run)
	if err != nil {
		return nil, err
	}
	if err = s.preferStart(out); err != nil {
		return nil, err
	}
	if p.Evolution == nil {
		evaluate := verify.Evaluate
		if s.ctx.Err() != nil || out.Reason == iterate.ReachedTime {
			evaluate = verify.Measure // returns sooner: it searches for no error bound
		}
		if out.Evaluation, err = evaluate(p, out.U, nil); err != nil {
			return nil, err
		}
		if left := out.Evaluation.RelativeResidual; p.FixedPoint != nil && out.Reason == iterate.Converged && !(left <= 2*s.c.Tolerance) {
			return out, fmt.Errorf("%w: the peers agreed on a residual below %g, but that of the assembled vector is %g: the blocks of %q are "+
				"not parts of one iteration; test them with iteratetest.Suite", ErrNotConverged, s.c.Tolerance, left, p.Name)
		}
	}
	return out, s.ended(out.Reason)
}

// preferStart replaces the answer of a run that has not converged by the starting iterate if that has a smaller
// residual. Without peers in other processes it compares them; otherwise only an answer that diverged is replaced.
func (s *solving) preferStart(out *Solution) error {
	p := s.c.Problem
	if out.Reason == iterate.Converged || p.Evolution != nil || s.o.At != nil && out.Reason != iterate.Diverged {
		return nil
	}
	if s.o.At != nil {
		start := make([]float64, p.Points())
		p.Start(start, s.o.Initial, problem.Box{Hi: p.N})
		copy(out.U, part(start, p.N, out.Box))
		return nil
	}
	last, err := verify.Measure(p, out.U, nil)
	if err != nil {
		return err
	}
	start, _, err := verify.BetterStart(p, s.o.Initial, last.RelativeResidual, nil)
	if start != nil {
		out.U = start
	}
	return err
}

// ended returns the error of a run that ended for a reason, with what to change if it diverged.
func (s *solving) ended(why iterate.Reason) error {
	err := ended(s.ctx, why)
	if why == iterate.Diverged {
		return fmt.Errorf("%w: %s", err, s.c.Problem.DivergenceAdvice(&s.c.Method))
	}
	return err
}

// ended returns the error of a run that ended for a reason, nil if it converged.
func ended(ctx context.Context, why iterate.Reason) error {
	switch {
	case why == iterate.Converged:
		return nil
	case why == iterate.Interrupted && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrNotConverged, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s", ErrNotConverged, why)
}

// assembly collects the values at the end of a time step.
type assembly struct {
	u    []float64
	have int // peers whose values are in u
}

// step adds the values of one peer at the end of a time step. The last peer calls Options.Step.
func (s *solving) step(r iterate.StepResult, box problem.Box, solution func([]float64)) error {
	v := make([]float64, box.Points())
	solution(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.steps[r.Step]
	if a == nil {
		a = &assembly{u: make([]float64, s.c.Problem.Points())}
		s.steps[r.Step] = a
	}
	place(a.u, s.c.Problem.N, box, v)
	if a.have++; a.have < s.c.Partition.Peers() {
		return nil
	}
	delete(s.steps, r.Step)
	return s.o.Step(r, a.u)
}

// place copies the dense values of a box into the whole grid of n points.
func place(dst []float64, n [3]int, b problem.Box, src []float64) {
	rows(n, b, func(at, from, count int) { copy(dst[at:at+count], src[from:]) })
}

// part returns the values of a box of the whole grid.
func part(src []float64, n [3]int, b problem.Box) []float64 {
	out := make([]float64, b.Points())
	rows(n, b, func(at, to, count int) { copy(out[to:to+count], src[at:]) })
	return out
}

// rows calls f for each row of a box with the row's index in the whole grid and in the box.
func rows(n [3]int, b problem.Box, f func(at, local, count int)) {
	size := b.Size()
	for z := range size[2] {
		for y := range size[1] {
			f(b.Lo[0]+n[0]*(b.Lo[1]+y+n[1]*(b.Lo[2]+z)), size[0]*(y+size[1]*z), size[0])
		}
	}
}
