package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/choice"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// orders are what the launcher says once the work is handed out.
type orders struct {
	start chan struct{} // closed by Start
	stop  chan struct{} // closed by Stop: end with the best iterate
	lost  chan struct{} // closed by Lost: the run cannot go on
	bye   chan struct{} // closed at the end of the connection
	why   rendezvous.Lost
	ended bool // Bye came, and not only the end of the connection; valid once bye is closed
}

// takePart does the peer's part after the greeting.
func (p *peer) takePart(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var state atomic.Pointer[runner.Progress]
	go p.beat(ctx, &state)
	if err := p.listen(); err != nil {
		return err
	}
	defer p.freeFaces() // when the node is closed
	defer func() { _ = p.node.Abort() }()
	problem, err := p.receiveWork()
	if err != nil {
		return err
	}
	o := &orders{start: make(chan struct{}), stop: make(chan struct{}), lost: make(chan struct{}), bye: make(chan struct{})}
	go func() {
		if p.obey(o); !o.ended {
			_ = p.node.Abort() // no launcher takes the answer, so no peer waits for a verdict
		}
		cancel()
	}()
	go func() { // what the others cannot wait for ends every call
		select {
		case <-o.lost:
			_ = p.node.Abort()
		case <-ctx.Done():
		}
	}()
	idle := host.PeakBytes()
	r, err := p.join(ctx, o, problem, &state)
	if err != nil {
		return p.orGone(o, err)
	}
	defer r.Close()
	// At the end no peer needs what is still on its way: the launcher says Bye when every
	// verdict is there. So nothing lingers.
	defer func() { _ = p.node.Abort() }()
	if err := p.conn.Send(rendezvous.Ready{}); err != nil {
		return errOver
	}
	if err := o.awaitStart(); err != nil {
		return err
	}
	return p.iterate(ctx, o, r, idle)
}

// awaitStart waits for Start, and returns an error if the run was lost or ended before it came.
// A run that was started counts as started, even if it was lost before this peer was scheduled
// again: the launcher then waits for this peer's block.
func (o *orders) awaitStart() error {
	err := errOver
	select {
	case <-o.start:
	case <-o.lost:
		err = errors.New(o.why.Why)
	case <-o.bye:
	}
	select {
	case <-o.start: // Start comes before Lost and Bye
		return nil
	default:
		return err
	}
}

// orGone prefers the launcher's end to the errors that follow from it.
func (p *peer) orGone(o *orders, err error) error {
	select {
	case <-o.bye:
		return errOver
	default:
		return err
	}
}

// beat tells the launcher, again and again, that this peer lives.
func (p *peer) beat(ctx context.Context, state *atomic.Pointer[runner.Progress]) {
	tick := time.NewTicker(launch.BeatEvery(p.timeout()))
	defer tick.Stop()
	for {
		b := rendezvous.Beat{Residual: nullable.NaN()}
		if s := state.Load(); s != nil {
			b.Step, b.Sweep, b.Residual = s.Step, uint64(s.Sweep), nullable.Number(s.Residual)
		}
		if p.conn.Send(b) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// obey listens to the launcher until it ends the connection.
func (p *peer) obey(o *orders) {
	defer close(o.bye)
	var started, stopped, lost bool
	for {
		m, err := p.conn.Receive(rendezvous.KindStart, rendezvous.KindStop, rendezvous.KindLost, rendezvous.KindBye)
		if err != nil {
			return
		}
		switch m := m.(type) {
		case rendezvous.Start:
			if !started {
				started = true
				close(o.start)
			}
		case rendezvous.Stop:
			if !stopped {
				stopped = true
				close(o.stop)
			}
		case rendezvous.Lost:
			if !lost {
				lost, o.why = true, m
				close(o.lost)
			}
		case rendezvous.Bye:
			o.ended = true
			return
		}
	}
}

// receiveWork waits for the assignment and what comes with it.
func (p *peer) receiveWork() (*problem.Problem, error) {
	m, err := p.conn.Receive(rendezvous.KindAssign, rendezvous.KindBye)
	switch {
	case errors.Is(err, rendezvous.ErrMalformed):
		return nil, err
	case err != nil:
		return nil, errOver
	}
	a, is := m.(rendezvous.Assign)
	if !is {
		return nil, errOver
	}
	p.assign = a
	if err := p.sound(); err != nil {
		return nil, fmt.Errorf("the launcher's assignment makes no sense: %w", err)
	}
	var text []byte
	err = p.stream(rendezvous.StreamProblem, a.ProblemBytes, func(data []byte) { text = append(text, data...) })
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
		box := p.cut().Box(iterate.Rank(p.welcome.Rank))
		p.initial = make([]float64, 0, box.Points())
		err = p.stream(rendezvous.StreamInitial, blocks.Bytes(box), func(data []byte) {
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

func (p *peer) cut() problem.Partition { return problem.Partition{Cuts: p.assign.Cuts} }

// sound checks an assignment before anything is built on it.
func (p *peer) sound() error {
	a := &p.assign
	dimension := 3
	for dimension > 1 && a.N[dimension-1] == 1 {
		dimension--
	}
	if err := problems.CheckGrid(dimension, a.N); err != nil {
		return err
	}
	if err := p.cut().Validate(a.N); err != nil {
		return err
	}
	switch peers := p.cut().Peers(); {
	case len(a.Members) != peers || p.welcome.Rank < 0 || p.welcome.Rank >= peers:
		return fmt.Errorf("rank %d and %d members in %d parts", p.welcome.Rank, len(a.Members), peers)
	case a.ProblemBytes < 0 || a.ProblemBytes > maxProblemBytes:
		return fmt.Errorf("a problem of %d bytes", a.ProblemBytes)
	case a.Threads < 1:
		return fmt.Errorf("%d threads", a.Threads)
	}
	return nil
}

// maxProblemBytes bounds the text of a problem and its arrays.
const maxProblemBytes = file.MaxTextBytes + file.MaxArrayBytes + 1<<20

// stream takes the chunks of one stream, in order, until total bytes have come.
func (p *peer) stream(s rendezvous.Stream, total int64, take func([]byte)) error {
	for at := int64(0); at < total; {
		m, err := p.conn.Receive(rendezvous.KindChunk)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return errOver
			}
			return err
		}
		c := m.(rendezvous.Chunk)
		if c.Stream != s || c.Offset != at || len(c.Data) == 0 || int64(len(c.Data)) > total-at || len(c.Data)%8 != 0 && s == rendezvous.StreamInitial {
			return fmt.Errorf("a chunk of stream %d at %d with %d bytes, while stream %d is at %d of %d", c.Stream, c.Offset, len(c.Data), s, at, total)
		}
		take(c.Data)
		at += int64(len(c.Data))
	}
	return nil
}

// join connects to the neighbours, opens the sessions and builds the own block.
func (p *peer) join(ctx context.Context, o *orders, prob *problem.Problem, state *atomic.Pointer[runner.Progress]) (*runner.Runner, error) {
	a := &p.assign
	labels := make([]string, len(a.Members))
	for i, m := range a.Members {
		labels[i] = m.Cluster
	}
	scheme, err := choice.Scheme(a.Scheme, labels)
	if err != nil {
		return nil, err
	}
	order, err := choice.Order(a.Order)
	if err != nil {
		return nil, err
	}
	cut, rank := p.cut(), iterate.Rank(p.welcome.Rank)
	config := problem.Config{
		Problem: prob, Partition: cut, Rank: rank, Scheme: scheme, Order: order, Method: problem.MethodConfig(a.Method),
		Tolerance: a.Tolerance, MaxSweeps: iterate.Iteration(a.MaxSweeps), Initial: p.initial, Reconfigure: a.Reconfigure, Balance: a.Balance,
		Allocate: host.Array,
	}
	crowded := p.makeRoom(scheme)
	if err := p.connect(ctx, solver.Links(&config, rank)); err != nil {
		return nil, err
	}
	names := make([]string, cut.Peers())
	for i := range names {
		names[i] = nodeName(i)
	}
	if p.OwnProcess {
		// The relaxing threads take in what comes (driver.Pump). A further thread that
		// wakes for every frame would only take a processor from a neighbour: a third
		// of the sweeps at 128³ with one peer to a processor.
		runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), a.Threads))
	}
	r, err := runner.New(ctx, runner.Config{
		Solver:  config,
		Threads: a.Threads, Crowded: crowded, Node: runner.Over(p.node), Names: names, Allocate: p.faces(), Slow: a.Slow,
		MaxTime: time.Duration(a.MaxTimeMS) * time.Millisecond,
		Stop:    p.stopper(ctx, o), Grace: p.timeout(),
		Step:          p.stepper(prob),
		Progress:      func(q runner.Progress) { state.Store(&q) },
		ProgressEvery: launch.BeatEvery(p.timeout()),
		Log:           p.Log, // it adds the rank itself
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

// stopper is closed when the launcher or this peer's own user asks for an end.
func (p *peer) stopper(ctx context.Context, o *orders) <-chan struct{} {
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

// connect opens conversations with all neighbours at once. That takes up to six round trips,
// those of TCP and TLS among them, so that it may take longer than a silence; a neighbour that
// has gone is noticed by the launcher meanwhile.
func (p *peer) connect(ctx context.Context, to []iterate.Link) error {
	ctx, cancel := context.WithTimeout(ctx, 2*p.timeout())
	defer cancel()
	errs := make(chan error, len(to))
	for _, n := range to {
		m := p.assign.Members[n.Rank]
		go func() {
			err := p.node.Connect(ctx, nodeName(m.Rank), m.Control)
			if err != nil {
				err = fmt.Errorf("no way to peer %d on %s at %s: %w", m.Rank, m.Host, m.Control, err)
			}
			errs <- err
		}()
	}
	var all []error
	for range to {
		all = append(all, <-errs)
	}
	return errors.Join(slices.DeleteFunc(all, func(err error) bool { return err == nil })...)
}
