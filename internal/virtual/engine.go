package virtual

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/internal/cluster"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver"
)

// engine plays one Run. It is the World of all its hosts.
type engine struct {
	run      *Run
	model    *cluster.Model
	now      microproto.Instant
	queue    queue
	hosts    []*Host
	machines []machine // by rank
	net      network
	control  control
	memory   memory
	pool     pool

	began   microproto.Instant // of the first relaxation; Never: not yet
	slow    []float64          // by rank: what events make of its speed
	lost    []bool             // by rank: silent
	done    int                // ranks that have their verdict
	swept   int                // ranks that have done Run.Sweeps
	ended   solver.Reason      // the engine ended the run for that
	events  uint64
	account account
	fault   error
}

// forever bounds the virtual time of a run that has no bound.
const forever = 100 * 24 * time.Hour

// Play simulates a run. The error of what cannot be simulated names what is wrong; that of a run
// which fails (a machine is lost: a *p2psap.PeerLostError) comes with the Result as far as it
// got. ctx ends it early, with its error.
func Play(ctx context.Context, r Run) (*Result, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	e, err := newEngine(&r)
	if err != nil {
		return nil, err
	}
	defer e.pool.close()
	for rank := range e.hosts {
		e.queue.push(0, evStart, int32(rank))
	}
	err = e.loop(ctx)
	res, err2 := e.result()
	return res, errors.Join(err, err2)
}

// check refuses what cannot be played.
func (r *Run) check() error {
	switch {
	case r.Model == nil || r.Solver.Problem == nil || r.Catalog == nil || r.Policy == nil:
		return errors.New("virtual: a run needs a model, a problem, a catalog of micro-protocols and a policy")
	case r.Solver.Partition.Peers() > len(r.Model.Hosts):
		return fmt.Errorf("virtual: %d peers for the %d machines of model %q", r.Solver.Partition.Peers(), len(r.Model.Hosts), r.Model.Name)
	case r.Standing < 0:
		return fmt.Errorf("virtual: a point stands for %d points a side; it must be 1 or more", r.Standing)
	case r.SendQueue < 0 || r.ReceiveQueue < 0:
		return fmt.Errorf("virtual: a machine's queues of %d bytes to send and %d to receive", r.SendQueue, r.ReceiveQueue)
	case r.Until < 0:
		return fmt.Errorf("virtual: the run is to end after %v", r.Until)
	case r.Solver.Problem.Steps() > 0:
		return errors.New("virtual: problems in time steps are not simulated")
	case r.Late && r.Solver.Method.Name != "" && r.Solver.Method.Name != solver.Richardson:
		return fmt.Errorf("virtual: faces can be sent late in method %s only, not in %s", solver.Richardson, r.Solver.Method.Name)
	}
	return r.checkModel()
}

func (r *Run) checkModel() error {
	peers := r.Solver.Partition.Peers()
	sites, wide := map[int]bool{}, false
	for rank := range r.Model.Hosts[:peers] {
		h := &r.Model.Hosts[rank]
		if !(h.Relaxation > 0) || math.IsInf(h.Relaxation, 0) {
			return fmt.Errorf("virtual: machine %d (%s) relaxes %v points a second", rank, h.Class.Name, h.Relaxation)
		}
		n := &r.Model.Networks[h.Network]
		if !(n.Rate > 0) || math.IsInf(n.Rate, 0) || n.MTU < 256 {
			return fmt.Errorf("virtual: network %q carries %v bytes a second in frames of %d bytes", n.Name, n.Rate, n.MTU)
		}
		sites[h.Site] = true
		wide = wide || n.Kind == cluster.IB
	}
	if len(sites) > 1 && wide {
		return errors.New("virtual: sites with a network of kind ib are simulated one at a time: a line between them carries ether only")
	}
	for i := range r.Model.Wide {
		if w := &r.Model.Wide[i]; !(w.Rate > 0) || math.IsInf(w.Rate, 0) {
			return fmt.Errorf("virtual: the line between %v carries %v bytes a second", w.Between, w.Rate)
		}
	}
	return nil
}

func newEngine(r *Run) (*engine, error) {
	n := r.Solver.Partition.Peers()
	e := &engine{
		run: r, model: r.Model, began: microproto.Never,
		slow: make([]float64, n), lost: make([]bool, n), hosts: make([]*Host, n), machines: make([]machine, n),
	}
	e.memory.init()
	e.net.init(e, n)
	e.control.init(e)
	e.account.init(n)
	for rank := range n {
		if err := e.addHost(rank); err != nil {
			return nil, fmt.Errorf("virtual: rank %d: %w", rank, err)
		}
	}
	return e, nil
}

func (e *engine) addHost(rank int) error {
	r := e.run
	config := r.Solver
	config.Rank, config.Executor = solver.Rank(rank), nil
	peer, err := solver.New(config)
	if err != nil {
		return err
	}
	if r.Standing > 1 {
		peer = stand(peer, r.Standing, r.Solver.Problem.Dimension)
	}
	h := &r.Model.Hosts[rank]
	network := p2psap.Ethernet
	if r.Model.Networks[h.Network].Kind == cluster.IB {
		network = p2psap.InfiniBand
	}
	node, err := p2psap.NewNode(p2psap.NodeConfig{
		Name: NameOf(solver.Rank(rank)), Run: "virtual", Version: "virtual", Catalog: r.Catalog, Policy: r.Policy,
		Link: contact{e, rank}, Network: network, Cluster: r.Model.Sites[h.Site], Host: NameOf(solver.Rank(rank)),
		Process: uint64(rank) + 1, Seed: mix(r.Seed, uint64(rank)),
	})
	if err != nil {
		return err
	}
	e.hosts[rank] = NewHost(e, solver.Rank(rank), node, peer, 0)
	e.hosts[rank].Late = r.Late
	e.slow[rank] = 1
	e.machines[rank].init(h, peer, rand.New(rand.NewPCG(r.Seed, 0x6d616368696e65+uint64(rank))))
	return nil
}

// mix makes a seed of its own for each rank.
func mix(seed, rank uint64) uint64 {
	z := seed + (rank+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	return z ^ z>>27
}

// Between two calls of Watch, and two looks at the context, so many events happen.
const watchEvery = 1 << 15

func (e *engine) loop(ctx context.Context) error {
	end := microproto.Never
	for e.fault == nil && e.done < len(e.hosts) && e.ended == solver.Running {
		if len(e.queue.heap) == 0 {
			return fmt.Errorf("virtual: stuck at %v, nothing is left to happen: %s", time.Duration(e.now), e.state())
		}
		if e.events%watchEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			e.watch()
		}
		ev := e.queue.pop()
		if ev.at >= end {
			e.now, e.ended = end, solver.ReachedTime
			break
		}
		e.now = ev.at
		e.events++
		e.happen(&ev)
		if end == microproto.Never && e.began != microproto.Never {
			end = e.began.Add(until(e.run.Until))
		}
	}
	return e.fault
}

func until(d time.Duration) time.Duration {
	if d == 0 {
		return forever
	}
	return d
}

func (e *engine) happen(ev *event) {
	switch ev.kind {
	case evStart:
		e.hosts[ev.on].Start()
	case evTurn:
		e.hosts[ev.on].Turn()
	case evAlarm:
		e.hosts[ev.on].Due()
	case evWide:
		e.net.wide(ev.on)
	case evPort:
		e.net.port(ev.on)
	case evArrive:
		e.net.arrive(ev.on)
	case evInput:
		e.net.input(ev.on)
	case evRoom:
		e.net.room(ev.on)
	case evDial:
		e.control.dialled(ev.on)
	case evMessage:
		e.control.deliver(ev.on)
	case evChange:
		e.change(int(ev.on))
	}
}

func (e *engine) watch() {
	if e.run.Watch == nil {
		return
	}
	p := Progress{Events: e.events, Segments: e.account.segments, Residual: math.NaN()}
	if e.began != microproto.Never {
		p.Virtual = e.now.Sub(e.began)
	}
	e.pool.join(&e.machines[0].task)
	p.Residual = e.hosts[0].Peer.Progress().Residual
	points, all := uint64(0), 0
	for i := range e.machines {
		points, all = points+e.machines[i].points, all+e.machines[i].block
	}
	p.Sweeps = float64(points) / float64(all)
	e.run.Watch(p)
}

func (e *engine) state() string {
	out := ""
	for i, h := range e.hosts[:min(16, len(e.hosts))] {
		e.pool.join(&e.machines[i].task)
		out += fmt.Sprintf("[%d: phase %d, sweep %d, %v] ", h.Rank, h.Phase, h.Peer.Progress().Sweep, h.Peer.Outcome().Reason)
	}
	return out
}

// Now implements World.
func (e *engine) Now() microproto.Instant { return e.now }

// Wake implements World.
func (e *engine) Wake(h *Host, at microproto.Instant) {
	e.queue.push(at, evTurn, int32(h.Rank))
}

// Alarm implements World.
func (e *engine) Alarm(h *Host, at microproto.Instant) {
	if at != microproto.Never {
		e.queue.push(at, evAlarm, int32(h.Rank))
	}
}

// Opened implements World.
func (e *engine) Opened(*Host) {}

// Changed implements World.
func (e *engine) Changed(*Host) {}

// Stepped implements World.
func (e *engine) Stepped(*Host, *solver.StepResult) {}

// Finished implements World.
func (e *engine) Finished(*Host) { e.done++ }

// Fail implements World.
func (e *engine) Fail(h *Host, err error) {
	if e.fault == nil && !e.lost[h.Rank] {
		e.fault = fmt.Errorf("virtual: rank %d, %v after the first relaxation: %w", h.Rank, e.elapsed(), err)
	}
}

func (e *engine) elapsed() time.Duration {
	if e.began == microproto.Never {
		return 0
	}
	return e.now.Sub(e.began)
}

// Failed implements World.
func (e *engine) Failed() bool { return e.fault != nil }
