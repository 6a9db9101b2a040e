package solver

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Errors of Solve and Iterate, for errors.Is. Errors about the problem itself wrap
// problem.ErrProblem, those about cutting its grid problem.ErrPartition.
var (
	// ErrOptions is wrapped by errors about options that cannot be.
	ErrOptions = errors.New("solver: invalid options")
	// ErrNotConverged is wrapped by the error of a run that ended before it met the tolerance: the best
	// iterate is returned beside it. Where the context ended the run, its error is wrapped, too.
	ErrNotConverged = errors.New("solver: the run ended before the tolerance was met")
)

// DefaultTolerance is Options.Tolerance where that is 0.
const DefaultTolerance = 1e-6

// Options say how Solve solves. The zero value is a good choice: projected Richardson by one peer with
// one thread a processor, to DefaultTolerance.
type Options struct {
	Method  problem.MethodConfig // zero: richardson
	Methods *Catalog             // nil: Methods()
	Scheme  iterate.Scheme       // nil: iterate.Synchronous()
	Order   problem.Order
	// Peers is the number of peers in this process, which exchange halos over the loopback interface;
	// 0: 1. Not used with Partition or At.
	Peers int
	// Partition cuts the grid among the peers; its zero value: slabs or boxes, by their surface.
	Partition problem.Partition
	// Threads relax the box of each peer; 0: the processors, divided by the peers of this process.
	Threads    int
	Tolerance  float64           // relative residual; 0: DefaultTolerance
	MaxSweeps  iterate.Iteration // of a peer; 0: no bound
	MaxTime    time.Duration     // 0: no bound
	CheckEvery iterate.Iteration // see problem.Config
	Initial    []float64         // starting values of the whole grid, [z][y][x]; nil: the problem's
	Balance    bool              // planes move between the peers; see problem.Config
	// At makes this process one peer of a run over several processes; nil: all peers are here.
	At *Place
	// Progress is called now and then by the goroutine of peer 0 (with At: of this peer); may be nil.
	Progress func(runner.Progress)
	// Step is called at the end of every time step, with the values of the whole grid (with At: of this
	// peer's box), by one goroutine at a time. An error ends the run. u is valid during the call.
	Step func(s iterate.StepResult, u []float64) error
	Log  zerolog.Logger // its zero value logs nothing
}

// Place is where one peer of a run over several processes has its place.
type Place struct {
	Rank iterate.Rank
	// Node is connected to the peers that Links names; Names are the names of their nodes, by rank.
	Node  runner.Node
	Names []string
}

// Solution is the result of Solve.
type Solution struct {
	// U holds the values of the whole grid, [z][y][x]; with Options.At those of Box. Of a problem with
	// time steps it is the end of the last complete step.
	U   []float64
	Box problem.Box // that U covers
	// Evaluation judges U, recomputed from the problem after the run; with Options.At and for problems
	// with time steps it is zero: see verify.EvaluateStep.
	Evaluation verify.Evaluation
	Reason     iterate.Reason
	Method     string            // what the method says of itself; may be empty
	Peers      []runner.Result   // by rank; with Options.At of this peer alone
	Partition  problem.Partition // at the start
}

// Solve solves an obstacle problem and returns when the run has ended: because it met the tolerance, or
// by a bound of the options, or because ctx ended. In the last two cases the best iterate is
// returned with an error that wraps ErrNotConverged. All other errors come without a solution.
// Solve does not keep p; the problem's functions are called from several goroutines at once.
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

// prepare fills in defaults and refuses what no run can have.
func (o *Options) prepare(p *problem.Problem) (problem.Config, error) {
	if p == nil {
		return problem.Config{}, fmt.Errorf("%w: no problem", ErrOptions)
	}
	if err := p.Validate(); err != nil {
		return problem.Config{}, err
	}
	if o.Methods == nil {
		o.Methods = Methods()
	}
	if o.Scheme == nil {
		o.Scheme = iterate.Synchronous()
	}
	if o.Tolerance == 0 {
		o.Tolerance = DefaultTolerance
	}
	if o.Peers < 0 || o.Threads < 0 {
		return problem.Config{}, fmt.Errorf("%w: %d peers with %d threads", ErrOptions, o.Peers, o.Threads)
	}
	if o.Partition.Peers() == 0 {
		peers := max(1, o.Peers)
		if o.At != nil {
			peers = max(1, len(o.At.Names))
		}
		var err error
		if o.Partition, err = problem.SlabsOrBoxes(p.N, peers, nil); err != nil {
			return problem.Config{}, err
		}
	}
	if o.Initial != nil && len(o.Initial) != p.Points() {
		return problem.Config{}, fmt.Errorf("%w: %d starting values for %d points", ErrOptions, len(o.Initial), p.Points())
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
		Tolerance: o.Tolerance, MaxSweeps: o.MaxSweeps, CheckEvery: o.CheckEvery,
	}
	if o.At != nil {
		c.Rank = o.At.Rank
	}
	if err := o.Methods.Check(c); err != nil {
		if errors.Is(err, problem.ErrProblem) || errors.Is(err, problem.ErrPartition) {
			return c, err
		}
		return c, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return c, nil
}

// solving is a call of Solve.
type solving struct {
	ctx context.Context
	o   *Options
	c   problem.Config

	mu    sync.Mutex
	steps map[int]*assembly // time steps that not all peers have completed
}

// config is that of one peer.
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

// one runs the only peer of this process.
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
	r, err := runner.New(s.ctx, c)
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
	return out, ended(s.ctx, res.Reason)
}

// all runs all peers in this process.
func (s *solving) all() (*Solution, error) {
	p := s.c.Problem
	out := &Solution{
		U: make([]float64, p.Points()), Box: problem.Box{Hi: p.N},
		Peers: make([]runner.Result, s.c.Partition.Peers()), Partition: s.c.Partition,
	}
	if s.o.Step != nil {
		s.steps = map[int]*assembly{}
	}
	links := func(r iterate.Rank) []iterate.Link { return s.o.Methods.Links(&s.c, r) }
	err := together(s.ctx, len(out.Peers), links, s.o.Log, func(ctx context.Context, r iterate.Rank, node runner.Node, names []string) error {
		c := s.config(r)
		c.Node, c.Names = node, names
		if s.o.Step != nil {
			c.Step = s.step
		}
		peer, err := runner.New(ctx, c)
		if err != nil {
			return err
		}
		defer peer.Close()
		res, err := peer.Run(ctx)
		if err != nil {
			return err
		}
		u := make([]float64, peer.Box().Points())
		peer.Solution(u)
		s.mu.Lock()
		defer s.mu.Unlock()
		place(out.U, p.N, peer.Box(), u)
		if out.Peers[r] = res; r == 0 {
			out.Reason, out.Method = res.Reason, peer.Method()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.Evolution == nil {
		judge := verify.Evaluate
		if s.ctx.Err() != nil {
			judge = verify.Measure // without the search for a bound: the caller wants to go on
		}
		if out.Evaluation, err = judge(p, out.U, nil); err != nil {
			return nil, err
		}
	}
	return out, ended(s.ctx, out.Reason)
}

// ended is the error of a run that ended for that reason; nil where it converged.
func ended(ctx context.Context, why iterate.Reason) error {
	switch {
	case why == iterate.Converged:
		return nil
	case why == iterate.Interrupted && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrNotConverged, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s", ErrNotConverged, why)
}

// assembly puts the end of a time step together.
type assembly struct {
	u    []float64
	have int
}

// step takes one peer's part of the end of a time step; the last one calls Options.Step.
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

// place writes the dense values of a box to the whole grid of n points.
func place(dst []float64, n [3]int, b problem.Box, src []float64) {
	rows(n, b, func(at, from, count int) { copy(dst[at:at+count], src[from:]) })
}

// part returns the values of a box of the whole grid.
func part(src []float64, n [3]int, b problem.Box) []float64 {
	out := make([]float64, b.Points())
	rows(n, b, func(at, to, count int) { copy(out[to:to+count], src[at:]) })
	return out
}

// rows visits the rows of a box: at is a row's index in the whole grid, local in the box.
func rows(n [3]int, b problem.Box, f func(at, local, count int)) {
	size := b.Size()
	for z := range size[2] {
		for y := range size[1] {
			f(b.Lo[0]+n[0]*(b.Lo[1]+y+n[1]*(b.Lo[2]+z)), size[0]*(y+size[1]*z), size[0])
		}
	}
}
