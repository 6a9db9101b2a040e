package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// commands are the messages of the launcher after the assignment.
type commands struct {
	start chan struct{}   // closed by Start
	stop  chan struct{}   // closed by Stop
	lost  chan struct{}   // closed by Lost
	bye   chan struct{}   // closed at the end of the connection
	why   rendezvous.Lost // valid after lost is closed
	ended bool            // the connection ended by Bye; valid after bye is closed
}

func (p *peer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var state atomic.Pointer[runner.Progress]
	go p.sendEvery(ctx, launch.BeatEvery(p.timeout()), func() rendezvous.Message {
		b := rendezvous.Beat{Residual: nullable.NaN()}
		if s := state.Load(); s != nil {
			b.Step, b.Sweep, b.Residual = s.Step, uint64(s.Sweep), nullable.Number(s.Residual)
		}
		return b
	})
	if err := p.listen(); err != nil {
		return err
	}
	defer func() { p.claim.Release() }()
	defer func() { _ = p.node.Abort() }()
	prob, err := p.receiveWork()
	if err != nil {
		return err
	}
	o := &commands{
		start: make(chan struct{}), stop: make(chan struct{}), lost: make(chan struct{}), bye: make(chan struct{}),
	}
	go func() {
		if p.receiveCommands(o); !o.ended {
			_ = p.node.Abort() // without a launcher there is no need to wait for other peers
		}
		cancel()
	}()
	idle := host.PeakBytes()
	r, err := p.prepare(ctx, o, prob, &state)
	if err != nil {
		if closed(o.bye) { // which may have caused err
			return errLauncherLeft
		}
		return err
	}
	defer r.Close()
	// The launcher sends Bye when it has every result, so no peer needs messages in transit: do not linger.
	defer func() { _ = p.node.Abort() }()
	if err := p.conn.Send(rendezvous.Ready{}); err != nil {
		return errLauncherLeft
	}
	if err := o.awaitStart(); err != nil {
		return err
	}
	return p.iterate(ctx, o, r, idle)
}

// awaitStart waits for Start. It returns an error if the run was lost or ended before Start. If Start came first, the
// run has started, even if it was lost before this goroutine runs again: the launcher then waits for this peer's
// block.
func (o *commands) awaitStart() error {
	select {
	case <-o.start:
	case <-o.lost:
	case <-o.bye:
	}
	switch {
	case closed(o.start): // Start comes before Lost and Bye
		return nil
	case closed(o.lost):
		return errors.New(o.why.Why)
	}
	return errLauncherLeft
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sendEvery sends a message to the launcher periodically, the first at once, until ctx ends.
func (p *peer) sendEvery(ctx context.Context, interval time.Duration, message func() rendezvous.Message) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for p.conn.Send(message()) == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// receiveCommands receives the messages of the launcher until the connection ends.
func (p *peer) receiveCommands(o *commands) {
	defer close(o.bye)
	once := func(c chan struct{}) {
		if !closed(c) {
			close(c)
		}
	}
	for {
		m, err := p.conn.Receive(rendezvous.KindStart, rendezvous.KindStop, rendezvous.KindLost, rendezvous.KindBye)
		if err != nil {
			return
		}
		switch m := m.(type) {
		case rendezvous.Start:
			once(o.start)
		case rendezvous.Stop:
			once(o.stop)
		case rendezvous.Lost:
			if !closed(o.lost) {
				o.why = m
				close(o.lost)
				go func() { _ = p.node.Abort() }() // ends every blocking call
			}
		case rendezvous.Bye:
			o.ended = true
			return
		}
	}
}

// receiveWork receives the assignment, the problem and the starting iterate.
func (p *peer) receiveWork() (*problem.Problem, error) {
	m, err := p.conn.Receive(rendezvous.KindAssign, rendezvous.KindBye)
	switch {
	case errors.Is(err, rendezvous.ErrMalformed):
		return nil, err
	case err != nil:
		return nil, errLauncherLeft
	}
	a, is := m.(rendezvous.Assign)
	if !is {
		return nil, errLauncherLeft
	}
	p.assign = a
	if err := p.validateAssignment(); err != nil {
		return nil, fmt.Errorf("invalid assignment from launcher: %w", err)
	}
	var text []byte
	err = p.receiveStream(rendezvous.StreamProblem, a.ProblemBytes, func(data []byte) { text = append(text, data...) })
	if err != nil {
		return nil, err
	}
	spec, err := file.UnmarshalSpec(p.Catalog.Problems, text)
	if err != nil {
		return nil, err
	}
	if err := p.expected(spec); err != nil {
		return nil, err
	}
	if a.Initial {
		box := p.partition().Box(iterate.Rank(p.welcome.Rank))
		p.initial = make([]float64, 0, box.Points())
		err = p.receiveStream(rendezvous.StreamInitial, blocks.Bytes(box), func(data []byte) {
			at := len(p.initial)
			p.initial = p.initial[:at+len(data)/8]
			blocks.Decode(p.initial[at:], data)
		})
		if err != nil {
			return nil, err
		}
	}
	return spec.Build(a.N)
}

func (p *peer) partition() problem.Partition { return problem.Partition{Cuts: p.assign.Cuts} }

func (p *peer) validateAssignment() error {
	a := &p.assign
	dimension := 3
	for dimension > 1 && a.N[dimension-1] == 1 {
		dimension--
	}
	if err := problems.CheckGrid(dimension, a.N); err != nil {
		return err
	}
	if err := p.partition().Validate(a.N); err != nil {
		return err
	}
	switch peers := p.partition().Peers(); {
	case len(a.Members) != peers || p.welcome.Rank < 0 || p.welcome.Rank >= peers:
		return fmt.Errorf("rank %d and %d members for %d parts", p.welcome.Rank, len(a.Members), peers)
	case a.ProblemBytes < 0 || a.ProblemBytes > maxProblemBytes:
		return fmt.Errorf("a problem of %d bytes", a.ProblemBytes)
	case a.Order != problem.Jacobi && a.Order != problem.InTurn:
		return fmt.Errorf("order %d", a.Order)
	case a.Threads < 1:
		return fmt.Errorf("%d threads", a.Threads)
	}
	return nil
}

const maxProblemBytes = file.MaxTextBytes + file.MaxArrayBytes + 1<<20

// receiveStream receives the chunks of one stream, in order, until total bytes have arrived.
func (p *peer) receiveStream(s rendezvous.Stream, total int64, take func([]byte)) error {
	for at := int64(0); at < total; {
		m, err := p.conn.Receive(rendezvous.KindChunk)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return errLauncherLeft
			}
			return err
		}
		c := m.(rendezvous.Chunk)
		if c.Stream != s || c.Offset != at || len(c.Data) == 0 || int64(len(c.Data)) > total-at ||
			len(c.Data)%8 != 0 && s == rendezvous.StreamInitial {
			return fmt.Errorf("unexpected chunk of stream %d at %d with %d bytes: stream %d is at %d of %d",
				c.Stream, c.Offset, len(c.Data), s, at, total)
		}
		take(c.Data)
		at += int64(len(c.Data))
	}
	return nil
}

// prepare connects to the neighbours, opens the sessions and builds the block.
func (p *peer) prepare(
	ctx context.Context, o *commands, prob *problem.Problem, state *atomic.Pointer[runner.Progress],
) (*runner.Runner, error) {
	a := &p.assign
	labels := make([]string, len(a.Members))
	for i, m := range a.Members {
		labels[i] = m.Cluster
	}
	scheme, err := p.Catalog.Scheme(a.Scheme, labels)
	if err != nil {
		return nil, err
	}
	cut, rank := p.partition(), iterate.Rank(p.welcome.Rank)
	config := problem.Config{
		Problem: prob, Partition: cut, Rank: rank, Scheme: scheme, Order: a.Order,
		Method: a.Method, Tolerance: a.Tolerance, MaxSweeps: iterate.Iteration(a.MaxSweeps), Initial: p.initial,
		Reconfigure: a.Reconfigure, Balance: a.Balance, Allocate: host.Array,
	}
	oversubscribed := p.adaptToLoad(scheme)
	p.bind() // before the block is allocated, so that its memory is near
	if err := p.connect(ctx, p.Catalog.Methods.Links(&config, rank)); err != nil {
		return nil, err
	}
	names := make([]string, cut.Peers())
	for i := range names {
		names[i] = nodeName(i)
	}
	if p.OwnProcess {
		// The relaxing threads receive frames (driver.Pump). Another thread that wakes for every frame would take a
		// processor from a neighbour: at 128³ with one peer per processor that costs a third of the sweeps.
		runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), a.Threads))
	}
	r, err := runner.New(ctx, runner.Config{
		New: p.Catalog.Methods.New, Solver: config,
		Threads: a.Threads, Crowded: oversubscribed, Node: runner.Over(p.node), Names: names,
		Slow:    a.Slowdown,
		MaxTime: time.Duration(a.MaxTimeMS) * time.Millisecond,
		Stop:    p.stopRequested(ctx, o), Grace: p.timeout(),
		Step:          p.stepper(prob),
		Progress:      func(q runner.Progress) { state.Store(&q) },
		ProgressEvery: launch.BeatEvery(p.timeout()),
		Log:           p.Log, // the runner adds the rank
	})
	if err != nil {
		return nil, err
	}
	if err := p.reached(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// stopRequested returns a channel that is closed when the launcher or the user of this peer requests an early end.
func (p *peer) stopRequested(ctx context.Context, o *commands) <-chan struct{} {
	stop := make(chan struct{})
	go func() {
		select {
		case <-o.stop:
		case <-p.Interrupt:
		case <-ctx.Done():
		}
		close(stop)
	}()
	return stop
}

// connect opens control associations with all neighbours at once. That takes up to six round trips, including those
// of TCP and TLS, so it may take longer than the peer timeout. The launcher detects a neighbour that is lost
// meanwhile.
func (p *peer) connect(ctx context.Context, to []iterate.Link) error {
	ctx, cancel := context.WithTimeout(ctx, 2*p.timeout())
	defer cancel()
	errs := make([]error, len(to))
	var all sync.WaitGroup
	for i, n := range to {
		m := p.assign.Members[n.Rank]
		all.Go(func() {
			if err := p.node.Connect(ctx, nodeName(m.Rank), m.Control); err != nil {
				errs[i] = fmt.Errorf("cannot connect to peer %d on %s at %s: %w", m.Rank, m.Host, m.Control, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
