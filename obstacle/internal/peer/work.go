package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// totals are sums over the epochs that have ended.
type totals struct {
	sweeps  uint64
	seconds float64 // up to the beginning of the newest, with the time between them
	relaxed uint64
	sent    rendezvous.Traffic
}

func (t *totals) add(r *runner.Result) {
	t.sweeps += uint64(r.Sweeps)
	t.relaxed += r.Points
}

// atomicBeat is the progress of the epoch in which the peer iterates.
type atomicBeat = atomic.Pointer[runner.Progress]

// sendEvery sends a message to the launcher periodically, the first at once, until ctx ends.
func (p *peer) sendEvery(ctx context.Context, interval time.Duration, message func() rendezvous.Message) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for p.leader.Send(message()) == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// work is what the launcher has assigned to this peer for one epoch.
type work struct {
	assign rendezvous.Assign
	conn   *rendezvous.Conn // that has brought it
	config problem.Config
	around []float64 // values of assign.Repair.Around
	err    error     // why the peer cannot do it
}

// receiveWork receives what follows an assignment: the problem, if the peer does not have it, and values.
func (p *peer) receiveWork(a rendezvous.Assign) *work {
	w := &work{assign: a, conn: p.in}
	w.err = p.fillWork(w)
	return w
}

func (p *peer) fillWork(w *work) error {
	a, run := &w.assign, &p.welcome.Spec
	if err := p.validateAssignment(a); err != nil {
		return fmt.Errorf("invalid assignment from launcher: %w", err)
	}
	a.Members = p.merge(a.Members)
	if a.ProblemBytes > 0 {
		if err := p.receiveProblem(a); err != nil {
			return err
		}
	}
	p.cut, p.balanced = problem.Partition{Cuts: a.Cuts}, run.Balance
	var initial []float64
	if a.Initial {
		var err error
		if initial, err = p.receiveValues(rendezvous.StreamInitial, p.box().Points()); err != nil {
			return err
		}
	}
	if a.Repair != nil {
		points := 0
		for _, b := range a.Repair.Around {
			for _, s := range repair.Shell(p.problem, a.Repair.Holes, b) {
				points += s.Points()
			}
		}
		var err error
		if w.around, err = p.receiveValues(rendezvous.StreamAround, points); err != nil {
			return err
		}
	}
	labels := make([]string, len(a.Members))
	for i, m := range a.Members {
		labels[i] = m.Cluster
	}
	scheme, err := p.Catalog.Scheme(run.Scheme, labels)
	if err != nil {
		return err
	}
	w.config = problem.Config{
		Problem: p.problem, Partition: p.cut, Rank: iterate.Rank(p.welcome.Rank), Scheme: scheme, Order: run.Order,
		Method: run.Method, Tolerance: run.Tolerance, MaxSweeps: iterate.Iteration(a.MaxSweeps), Initial: initial,
		Omega: a.Omega, Earlier: a.Earlier, Late: p.turnOf() != nil, Reconfigure: run.Reconfigure, Balance: run.Balance, After: a.After,
		Allocate: p.arrays.Take, KeepEvery: run.KeepEvery,
	}
	return nil
}

// merge returns the list of all peers after news of some. It has addresses only for these: those of other peers belong
// to former epochs.
func (p *peer) merge(news []rendezvous.Member) []rendezvous.Member {
	all := slices.Clone(p.members)
	if all == nil {
		all = make([]rendezvous.Member, len(news))
	}
	for i := range all {
		all[i].Control = ""
	}
	for _, m := range news {
		all[m.Rank] = m
	}
	p.members = all
	return all
}

// validateMembers checks a list of peers, of which the first one is complete.
func (p *peer) validateMembers(list []rendezvous.Member, peers int) error {
	if p.members == nil && len(list) != peers {
		return fmt.Errorf("%d members for %d parts", len(list), peers)
	}
	before := -1
	for _, m := range list {
		if m.Rank <= before || m.Rank >= peers {
			return fmt.Errorf("member %d after %d of %d parts", m.Rank, before, peers)
		}
		before = m.Rank
	}
	return nil
}

// receiveValues receives the values of one stream.
func (p *peer) receiveValues(s rendezvous.Stream, points int) ([]float64, error) {
	u := make([]float64, 0, points)
	err := p.receiveStream(s, 8*int64(points), func(data []byte) {
		at := len(u)
		u = u[:at+len(data)/8]
		blocks.Decode(u[at:], data)
	})
	return u, err
}

// receiveProblem receives the problem and builds it.
func (p *peer) receiveProblem(a *rendezvous.Assign) error {
	var text []byte
	err := p.receiveStream(rendezvous.StreamProblem, a.ProblemBytes, func(data []byte) { text = append(text, data...) })
	if err != nil {
		return err
	}
	if p.spec, err = file.UnmarshalSpec(p.Catalog.Problems, text); err != nil {
		return err
	}
	if err = p.expected(p.spec, p.welcome.Spec.Fingerprint); err != nil {
		return err
	}
	p.problem, err = p.spec.Build(p.welcome.Spec.N)
	return err
}

// box returns the box of this peer at the start of an epoch.
func (p *peer) box() problem.Box { return p.cut.Box(iterate.Rank(p.welcome.Rank)) }

func (p *peer) validateAssignment(a *rendezvous.Assign) error {
	cut, run := problem.Partition{Cuts: a.Cuts}, &p.welcome.Spec
	if err := launch.CheckCut(run.N, cut); err != nil {
		return err
	}
	switch peers := cut.Peers(); {
	case p.welcome.Rank < 0 || p.welcome.Rank >= peers:
		return fmt.Errorf("rank %d of %d parts", p.welcome.Rank, peers)
	case a.ProblemBytes < 0 || a.ProblemBytes > launch.MaxProblemBytes:
		return fmt.Errorf("a problem of %d bytes", a.ProblemBytes)
	case run.Threads < 1:
		return fmt.Errorf("%d threads", run.Threads)
	case p.problem == nil && a.ProblemBytes == 0:
		return errors.New("no problem")
	case p.problem != nil && (run.N != p.problem.N || !run.Balance && !reflect.DeepEqual(cut, p.cut)):
		return fmt.Errorf("a grid of %v, divided otherwise than in the epoch before", run.N)
	}
	if len(a.Earlier) > maxState {
		return fmt.Errorf("a state of %d bytes of an earlier run", len(a.Earlier))
	}
	if r := a.Resume; r != nil && (len(r.State) > maxState || r.State != nil && !a.Initial) {
		return errors.New("a kept iterate without its values")
	}
	if err := p.validateMembers(a.Members, cut.Peers()); err != nil || a.Repair == nil {
		return err
	}
	for _, b := range slices.Concat(a.Repair.Holes, a.Repair.Around) {
		for x := range 3 {
			if b.Lo[x] < 0 || b.Lo[x] >= b.Hi[x] || b.Hi[x] > run.N[x] {
				return fmt.Errorf("a box %v to repair from, which is empty or not in the grid", b)
			}
		}
	}
	return nil
}

// prepare opens the sessions of an epoch and builds the block.
func (p *peer) prepare(e *epoch) (*runner.Runner, error) {
	a, run, config := e.assign, &p.welcome.Spec, e.work.config
	if u, box := p.values.held(); u != nil && config.Initial == nil {
		if config.Initial = u; box != p.box() {
			return nil, fmt.Errorf("this peer has values of %v and was assigned %v", box, p.box())
		}
	}
	oversubscribed := e.adaptToLoad(config.Scheme)
	e.bind() // before the block is allocated, so that its memory is near
	names := make([]string, config.Partition.Peers())
	for i := range names {
		names[i] = nodeName(i, e.endpoint.epoch)
	}
	if p.OwnProcess && p.began.IsZero() && !p.hosting.Load() {
		// The relaxing threads receive frames (driver.Pump). Another thread that wakes for every frame would take a
		// processor from a neighbour: at 128³ with one peer per processor that costs a third of the sweeps.
		runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), run.Threads))
	}
	var c *courier
	var r *runner.Runner
	var err error
	r, err = runner.New(e.ctx, runner.Config{
		New: p.Catalog.Methods.New, Solver: config,
		Threads: run.Threads, Crowded: oversubscribed, Node: runner.Over(e.node), Names: names,
		Slow: a.Slowdown, Turn: p.turnOf(),
		MaxTime: a.MaxTime,
		Stop:    p.stop, Grace: p.timeout(), Survive: run.Recovers(),
		Lost: func(q iterate.Rank, why error) { p.goOnWithout(a.Epoch, q, why) },
		Step: e.stepper(),
		Keep: func(k iterate.Iteration, state []byte, values func([]float64, problem.Box) bool) error {
			return c.keep(k, state, values)
		},
		Kept: func(k iterate.Iteration) { c.kept(k, r.Solution) },
		Progress: func(q runner.Progress) {
			q.Sweep += iterate.Iteration(p.former.sweeps)
			p.progress.Store(&q)
		},
		ProgressEvery: launch.BeatEvery(p.timeout()), CountReads: run.Reports,
		Record: e.recorder(),
		Log:    slog.New(zerolog.NewSlogHandler(p.Log)), // the runner adds the rank
	})
	if err != nil {
		return nil, err
	}
	if c, err = e.courier(); err == nil {
		err = e.reached()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// turnOf returns the lock that the peers of this process take turns with, nil if there is one peer a process.
func (p *peer) turnOf() sync.Locker {
	if p.welcome.Spec.Parts <= 1 {
		return nil
	}
	return &p.others.turn
}
