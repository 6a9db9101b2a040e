package simulate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/internal/deadlines"
	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// engine simulates one run.
type engine struct {
	run        *Config
	model      *cluster.Model
	hosts      []*machine           // by rank
	stations   []*station           // by host
	cores      map[int]*sharedCores // by machine; nil: one rank has them
	routes     []route              // by rank
	backplanes []*sharedLink        // by network; nil: without a bound
	wanLinks   [][2]*sharedLink
	processes  []*process
	order      deadlines.Heap
	pool       *workerPool
	lookahead  time.Duration // length of a window
	work       []*process
	cuts       []*cluster.Event // in force
	slowed     []*cluster.Event // in force, by when they began
	lost       []bool           // by rank: the machine is silent
	recovery   recovering
	slow       []float64 // by rank: factor on the relaxation time, by events
	memory     memory
	copyTimes  []time.Duration // by rank: of a copy of its block on the lines to its buddy

	began      microproto.Instant // of the first relaxation; Never: not yet
	origin     time.Duration      // from the first relaxation of the run to that of this epoch
	changes    []modelChange      // in the order of their time since began
	decision   microproto.Instant // the next one about moves; Never: none
	bound      microproto.Instant // of the set-up, then of the run by Config.Until
	end        microproto.Instant // of the present stage, see setEnd
	broken     bool               // a recovery begins, or begins again
	left       bool               // the next epoch begins
	now        microproto.Instant // the end of the run
	done       atomic.Int32       // ranks that have a verdict
	swept      atomic.Int32       // ranks that have done Config.Sweeps
	stepEnds   atomic.Int64       // ends of time steps at ranks, in this epoch
	ended      iterate.Reason     // why the engine ended the run
	stopped    bool
	fault      error
	evaluation evaluation
}

// modelChange is the beginning or the end of an event of the model.
type modelChange struct {
	at time.Duration
	ev *cluster.Event
	on bool
}

// forever bounds the virtual time of a run without a bound.
const forever = 100 * 24 * time.Hour

// longestSetup bounds the virtual time before the first relaxation. Sessions over round trips of
// many seconds never open.
const longestSetup = time.Hour

// Run simulates a cluster. If r cannot be simulated, the error names the field and there is no
// Result. If the run fails, for example because a machine is lost (*p2psap.PeerLostError), the error
// comes with the Result so far. The end of ctx ends the run with its error.
func Run(ctx context.Context, r Config) (*Result, error) {
	err := r.complete()
	if err != nil {
		return nil, err
	}
	if r.resumed.series, err = newSeries(r.Solver.Problem); err != nil {
		return nil, err
	}
	r.resumed.copies = newCopies(&r)
	r.resumed.moving = newMoving(&r)
	return simulateEpochs(ctx, &r)
}

func newEngine(r *Config) (*engine, error) {
	n := r.ranks()
	if r.resumed.hosts == nil {
		r.place()
	}
	e := &engine{
		run: r, model: r.Model, began: microproto.Never, decision: microproto.Never, bound: microproto.Instant(longestSetup),
		slow: make([]float64, n), lost: make([]bool, n),
		evaluation: evaluation{start: -math.Log(r.Solver.Tolerance)},
		hosts:      make([]*machine, n), end: microproto.Instant(longestSetup),
		recovery: recovering{
			silentAt: make([]microproto.Instant, n), silentBy: make([]*cluster.Event, n),
			noticedAt: slices.Repeat([]microproto.Instant{microproto.Never}, n), left: make([]bool, n),
			given: make([]bool, n), restored: make([][]float64, n), restoredAt: make([]microproto.Instant, n),
		},
	}
	e.findStations(n)
	for rank := range n {
		e.slow[rank] = 1
		e.hosts[rank] = e.newMachine(rank)
	}
	e.connect(n)
	e.pool = newWorkerPool(e.threads())
	for _, m := range e.hosts {
		if err := m.start(); err != nil {
			e.pool.close()
			return nil, fmt.Errorf("simulate: rank %d: %w", m.index, err)
		}
	}
	e.copyTimes = e.timeCopies()
	return e, nil
}

// addProcess adds a process of the engine.
func (e *engine) addProcess(p *process, owner interface{ happen(ev *event) }) {
	p.owner, p.index = owner, int32(len(e.processes))
	p.rand = rand.New(rand.NewPCG(e.run.Seed+e.run.resumed.epoch, 0x6d616368696e65+uint64(p.index)))
	p.earliest = microproto.Never
	e.processes = append(e.processes, p)
}

// start puts a peer and its node on the machine.
func (m *machine) start() error {
	e, rank := m.e, int(m.index)
	r := e.run
	c := virtual.Config{Config: exchange.Config{Rank: iterate.Rank(rank), Memory: &e.memory.rooms}, Rails: 1}
	if err := m.makePeer(&c.Config); err != nil {
		return err
	}
	h := e.host(rank)
	network := p2psap.Ethernet
	if r.Model.Networks[h.Network].Kind == cluster.IB {
		network = p2psap.InfiniBand
	}
	node, err := p2psap.NewNode(p2psap.NodeConfig{
		Name: virtual.NameOf(iterate.Rank(rank)), Run: "virtual", Version: "virtual", Catalog: r.Catalog, Policy: r.Policy,
		Rails: []p2psap.Rail{{Network: network, Link: linkAdapter{m}}}, Cluster: r.Model.Sites[h.Site],
		Host:    virtual.NameOf(iterate.Rank(r.hostOf(rank))),
		Monitor: r.Monitor, Trace: r.newRing(),
		Process: uint64(r.hostOf(rank)) + 1, Seed: mix(r.Seed+r.resumed.epoch, uint64(rank)), Linger: virtual.VerdictTime,
	})
	if err != nil {
		return err
	}
	c.Node = node
	m.host = virtual.NewHost(m, c)
	return nil
}

// makePeer makes the peer of a machine and configures the exchange for it.
func (m *machine) makePeer(c *exchange.Config) (err error) {
	r := m.e.run
	if r.New != nil {
		if m.peer, m.block, err = r.New(c.Rank); err == nil && m.block < 1 {
			err = fmt.Errorf("its block has %d points; there must be 1 or more", m.block)
		}
	} else {
		config := r.Solver
		config.Rank, config.Executor = c.Rank, nil
		r.resumed.configure(&config)
		config.Late = r.Parts > 1
		config.Method.SweepsPerPass = 1 // sweeps are counted and evaluated one by one
		if m.solution, err = cmp.Or(r.Methods, solver.Methods()).New(config); err == nil {
			m.peer, m.block = m.solution, m.solution.Box().Points()
		}
	}
	if err != nil {
		return err
	}
	switch {
	case r.Scale > 1:
		s := scalePeer(m.solution, r.Scale, r.Solver.Problem.Dimension)
		m.peer = s
		m.block *= s.volume
		c.Memory = &s.sending
	case m.e.pool.helpers:
		m.peer = deferRelaxations(m.e.pool, m.peer, m.block)
	}
	c.Peer = m.peer
	if r.NoOverlap {
		c.Late = func() int { return m.block }
	}
	return nil
}

// mix returns a different seed for each rank.
func mix(seed, rank uint64) uint64 {
	z := seed + (rank+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	return z ^ z>>27
}

// latest returns the latest instant that any process has reached.
func (e *engine) latest() (at microproto.Instant) {
	for _, p := range e.processes {
		at = max(at, p.now)
	}
	return at
}

// finish ends the run at an instant.
func (e *engine) finish(at microproto.Instant) {
	e.now, e.stopped = at, true
	if e.fault == nil && int(e.done.Load()) < len(e.hosts) {
		e.ended = cmp.Or(e.ended, iterate.ReachedTime)
	}
}

// expire ends the run at its bound, which is an error unless the caller has set the bound.
func (e *engine) expire() {
	e.finish(e.end)
	switch {
	case e.run.Recover == nil && e.end >= e.suspected():
		e.fault = fmt.Errorf("simulate: %v after the first relaxation: rank %d was killed", e.elapsed(), e.due()[0])
	case e.end >= e.suspected():
		e.noticeLoss()
	case e.recovery.waits && e.end < e.bound:
		e.broken = true
	case e.recovery.active && e.end < e.bound:
		e.left = true
	case e.began == microproto.Never:
		e.fault = fmt.Errorf("simulate: no rank has relaxed after a set-up of %v: sessions do not open on networks so "+
			"slow, far or lossy (their rate, latency, jitter, loss, and what sending costs)", longestSetup)
	case e.run.Until == 0:
		e.fault = fmt.Errorf("simulate: no verdict after %.0f days of virtual time: machines or networks are too slow for "+
			"this grid", forever.Hours()/24)
	}
}

// observe checks between two windows whether the run has begun or ended.
func (e *engine) observe() {
	if e.began == microproto.Never {
		e.scheduleEvents()
	}
	n := int32(len(e.hosts))
	at := microproto.Instant(0)
	if !e.recovery.active && e.stepEnds.Load() > 0 {
		e.completeSteps(e.latest())
	}
	switch {
	case e.recovery.active: // no verdict counts that comes before the next epoch
	case e.recovery.pending || e.recovery.leaderless: // nor one that no leader gets
	case e.failed():
	case e.done.Load() == n && !(e.run.Recover != nil && e.silent()):
		for _, m := range e.hosts {
			at = max(at, m.doneAt)
		}
		e.finish(max(at, e.recovery.ledAt))
	case e.swept.Load() == n:
		for _, m := range e.hosts {
			at = max(at, m.sweptAt)
		}
		e.ended = iterate.ReachedSweeps
		e.finish(at)
	}
}

// failed ends the run with the earliest failure, if there is one.
func (e *engine) failed() bool {
	var first *machine
	for _, p := range e.work {
		if m, ok := p.owner.(*machine); ok && m.fault != nil && (first == nil || m.faultAt < first.faultAt) {
			first = m
		}
	}
	if first == nil {
		return false
	}
	e.now = first.faultAt
	if e.run.Recover != nil && e.suspected() != microproto.Never { // a rank has noticed it sooner
		e.finish(e.now)
		e.noticeLoss()
		return true
	}
	e.fault = fmt.Errorf("simulate: rank %d, %v after the first relaxation: %w", first.index, e.elapsed(), first.fault)
	e.finish(e.now)
	return true
}

// scheduleEvents schedules the model's events, once a rank has relaxed.
func (e *engine) scheduleEvents() {
	for _, p := range e.work {
		if m, ok := p.owner.(*machine); ok {
			e.began = min(e.began, m.begun)
		}
	}
	if e.began == microproto.Never {
		return
	}
	if e.run.resumed.epoch > 0 {
		e.origin = max(e.run.resumed.at+time.Duration(e.began), e.run.resumed.left)
	}
	e.bound = e.instant(cmp.Or(e.run.Until, forever))
	e.end = e.bound
	if s := &e.run.resumed; e.run.Recover != nil {
		if s.group == nil {
			s.begin(e.run)
		}
		if s.epoch > 0 {
			s.group.Recovered(e.origin, s.leader)
		}
	}
	e.beginMeasuring()
	for i := range e.model.Events {
		ev := &e.model.Events[i]
		if e.run.resumed.outdated(ev) || ev.Until > 0 && ev.Until <= e.origin {
			continue
		}
		e.changes = append(e.changes, modelChange{max(ev.At, e.origin), ev, true})
		if ev.Until > 0 {
			e.changes = append(e.changes, modelChange{ev.Until, ev, false})
		}
	}
	slices.SortStableFunc(e.changes, func(a, b modelChange) int { return cmp.Compare(a.at, b.at) })
}

func (e *engine) elapsed() time.Duration {
	if e.began == microproto.Never {
		return e.run.resumed.left
	}
	return max(0, e.since(e.now))
}

// since returns the time from the first relaxation of the run to an instant of this epoch. instant is its inverse.
func (e *engine) since(at microproto.Instant) time.Duration { return e.origin + at.Sub(e.began) }

func (e *engine) instant(since time.Duration) microproto.Instant {
	return e.began.Add(since - e.origin)
}

func (e *engine) stuck() error {
	e.now = e.latest()
	out := ""
	for _, m := range e.hosts[:min(16, len(e.hosts))] {
		out += fmt.Sprintf("[%d: phase %d, sweep %d, %v] ", m.index, m.host.Phase, m.peer.Progress().Sweep,
			m.peer.Outcome().Reason)
	}
	return fmt.Errorf("simulate: stuck at %v, nothing is left to happen: %s", time.Duration(e.now), out)
}

func (e *engine) watch() {
	if e.run.Watch == nil {
		return
	}
	now := e.hosts[0].peer.Progress()
	p := Progress{Step: now.Step, Residual: now.Residual}
	points, all := uint64(0), 0
	for _, q := range e.processes {
		p.Events += q.events
	}
	for _, m := range e.hosts {
		points, all = points+m.points, all+m.block
		p.Segments += m.rank.Segments
	}
	if e.began != microproto.Never {
		p.Virtual = e.since(e.latest())
	}
	p.Sweeps = float64(points) / float64(all)
	p.Ranks = func() []RankResult {
		all := make([]RankResult, len(e.hosts))
		for rank, m := range e.hosts {
			all[rank] = e.account(m, p.Virtual)
		}
		return all
	}
	p.Blocks = func(f func(problem.Box, func([]float64, problem.Box))) {
		for _, m := range e.hosts {
			if m.solution != nil {
				q := m.settled()
				f(q.Box(), q.Values)
			}
		}
	}
	e.run.Watch(p)
}
