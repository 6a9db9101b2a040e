package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/placement"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Recovery makes a run go on after peers are lost. Other processes, on machines of the same class, take their places.
// Each solves the block of its rank again from the values around it (package internal/repair), and all ranks continue
// from what they have in a new epoch of the run. With time steps, all ranks begin the step in progress again.
type Recovery struct {
	// Suspect is the silence after which a machine is given up. 0: 1 s. A machine that returns sooner is not lost. The
	// death of a peer is noticed at once.
	Suspect time.Duration
	// Spares is the number of processes that wait to take the place of lost peers. When there are no more, new ones
	// are started, which takes longer.
	Spares int
	// Exact makes every rank store copies of its iterates with another one, from time to time. After a loss all ranks go
	// back to the newest iterate that is known of each, or begin again if there is none (package internal/buddy). So the
	// run has the bits and the sweeps of one without losses. It needs a scheme in lockstep and a method other than
	// Schwarz. Solver.KeepEvery is the least time between two kept iterates; 0: buddy.KeepEvery. With time steps Exact
	// changes nothing: a step that begins again has the same bits anyway.
	Exact bool
	// Keepers is the number of processes, the launcher included, that agree on who leads the run: 1, 3 or 5. A majority
	// of them has to agree to the replacement of peers. The launcher is a process next to the machine of rank 0. If it is
	// lost, a peer leads the run, if most keepers agree; with one keeper, or time steps, the run ends. 0: 1.
	Keepers int
}

// suspect returns the silence after which a machine is given up.
func (r *Recovery) suspect() time.Duration { return cmp.Or(r.Suspect, defaultSuspect) }

// maxFruitless bounds the losses of a rank without a new sweep of the run, as in a solve.
const maxFruitless = 3

// defaultSuspect is used when Recovery.Suspect is 0.
const defaultSuspect = time.Second

// Loss is a loss of a peer that a run has recovered from. Times are since the first relaxation of the run.
type Loss struct {
	Rank int
	Host int // of its process
	// Killed reports that the peer was killed. Otherwise its machine was silent.
	Killed  bool
	Noticed time.Duration
	// Left reports that the peer did not return to the process that leads after the loss of the leader.
	Left bool
	// Spare reports that a spare process has taken its place. Otherwise it is a new one.
	Spare    bool
	Method   string            // that repaired the block; empty: none, it has starting values or those of the step's start
	Iterates iterate.Iteration // of that method
	Residual float64           // relative, of the problem on the lost block
	Repair   time.Duration     // in which the block is solved; 0: it is not
	Unbound  error             // why the repair may have raised the error; nil: it has not
	// From is, with Recovery.Exact, the kept iterate from which all ranks have gone on; 0: the run has begun again.
	From iterate.Iteration
	// Resumed is when all ranks relax again. 0: the run ended before.
	Resumed time.Duration
}

// resumption is what an epoch of a run takes over from the epochs before it.
type resumption struct {
	epoch  uint64
	at     time.Duration // since the first relaxation of the run: the ranks begin to connect
	left   time.Duration // since the first relaxation of the run: the epoch before ends
	starts [][]float64   // starting values by rank; nil: those of Solver
	states [][]byte      // of the kept iterate whose values starts are, by rank; nil: they are of none
	points []uint64      // relaxed until then, by rank; nil: this is not counted
	copies *copies       // of all epochs; nil: no iterates are kept
	sweeps float64       // complete sweeps of the whole grid
	spares int           // that have taken the place of lost peers
	series *series       // of all epochs; nil: the problem is stationary
	// hosts are the hosts of the ranks. All epochs share it; it changes between two.
	hosts    []int
	replaced map[int]time.Duration // when the process of a host took the place of a lost one
	moving   *moving               // of all epochs; nil: parts do not move

	succession
	fruitless []int // by rank: losses since a rank has made a sweep
}

// recovering is the state of a recovery within an epoch. The survivors of an asynchronous run go on meanwhile.
type recovering struct {
	active     bool                 // peers were given up, and the next epoch has not begun
	frozen     bool                 // nobody relaxes meanwhile
	waits      bool                 // the repair begins when no machine is silent any more
	ready      microproto.Instant   // when the next epoch begins if no further machine falls silent
	connecting microproto.Instant   // when the ranks begin to connect for it
	pending    bool                 // the keepers have not agreed to the next epoch yet
	leaderless bool                 // no process leads the run, or its peers have not returned yet
	ledAt      microproto.Instant   // when they had returned to the last one that leads
	silentAt   []microproto.Instant // by rank: when the leader ceased to hear the peer of the rank
	silentBy   []*cluster.Event     // by rank: why; nil: the peer is not silent, or was given up
	noticedAt  []microproto.Instant // by rank: when the leader gave it up, until most keepers agree; Never: it did not
	left       []bool               // by rank: it did not return to a new leader
	given      []bool               // by rank: the peer of this epoch was given up; another takes its place
	restored   [][]float64          // by rank: repaired values
	restoredAt []microproto.Instant
	losses     []Loss             // of the epoch
	planned    []placement.Move   // parts that are to move
	joined     microproto.Instant // the hosts have peers for them
	handing    []handover         // parts that move in the next epoch
}

// checkRecovery refuses what a run cannot recover in.
func (r *Config) checkRecovery() error {
	switch {
	case r.Solver.KeepEvery != 0 && (r.Recover == nil || !r.Recover.Exact):
		return errors.New("simulate: iterates are kept (Solver.KeepEvery) only with Recovery.Exact")
	case r.Recover == nil:
		return nil
	case r.New != nil || r.Sweeps > 0:
		return errors.New("simulate: Recover applies to Config.Solver, without Config.Sweeps; use Solver.MaxSweeps")
	case r.Solver.Balance:
		return errors.New("simulate: a run that moves planes (Solver.Balance) does not recover")
	case r.Recover.Suspect < 0:
		return fmt.Errorf("simulate: a machine cannot be given up after %v of silence", r.Recover.Suspect)
	case !slices.Contains([]int{0, 1, 3, 5}, r.Recover.Keepers):
		return fmt.Errorf("simulate: %d keepers; there must be 1, 3 or 5", r.Recover.Keepers)
	case r.Recover.Spares < 0:
		return fmt.Errorf("simulate: %d spare processes; there must be 0 or more", r.Recover.Spares)
	}
	return nil
}

// simulateEpochs simulates the epochs of a run: one, and another after each recovery.
func simulateEpochs(ctx context.Context, r *Config) (*Result, error) {
	var total *Result
	for {
		e, err := newEngine(r)
		if err != nil {
			return total, err
		}
		for i, m := range e.hosts {
			m.schedule(0, evStart, nil)
			e.order.Set(int32(i), 0)
		}
		err = e.play(ctx)
		res, err2 := e.result()
		if err = errors.Join(err, err2); total != nil {
			res.addEpochs(total)
			res.Traces = total.Traces
		}
		res.Traces = e.traces(res.Traces)
		if at := e.allRelax(); at != microproto.Never {
			for i := range res.Losses {
				if l := &res.Losses[i]; l.Resumed == 0 {
					l.Resumed = e.since(at)
				}
			}
		}
		e.resumeMoves()
		res.Losses = append(res.Losses, e.recovery.losses...)
		if total = res; err != nil || !e.left {
			e.run.resumed.result(total)
			return total, err
		}
		if r = e.nextEpoch(); r.resumed.points != nil { // they count from the start of the run
			for i := range total.Ranks {
				total.Ranks[i].Sweeps = 0
			}
		}
	}
}

// configure sets the values from which the peer of a rank starts.
func (s *resumption) configure(c *problem.Config) {
	if s.copies != nil {
		c.KeepEvery = s.copies.every
	}
	if s.starts != nil {
		c.Initial = s.starts[c.Rank]
	}
	if s.states != nil {
		c.State = s.states[c.Rank]
	}
}

// play simulates an epoch of a run, and what recoveries take.
func (e *engine) play(ctx context.Context) error {
	defer e.pool.close()
	err := e.loop(ctx)
	for err == nil && e.broken {
		if err = e.recover(); err == nil {
			e.stopped, e.broken, e.ended = false, false, 0
			err = e.loop(ctx)
		}
	}
	for i := range e.recovery.losses { // the run may have ended before a repair
		if e.left {
			break
		}
		if l := &e.recovery.losses[i]; !e.held(l.Rank, e.now) {
			*l = Loss{Rank: l.Rank, Host: l.Host, Killed: l.Killed, Left: l.Left, Noticed: l.Noticed, Spare: l.Spare}
		}
	}
	return err
}

// allRelax returns when all ranks have begun to relax, Never if some have not.
func (e *engine) allRelax() (at microproto.Instant) {
	for _, m := range e.hosts {
		at = max(at, m.first)
	}
	return at
}

// addEpochs adds the account of the epochs before.
func (r *Result) addEpochs(before *Result) {
	r.Setup, r.Losses = before.Setup, before.Losses
	r.Events += before.Events
	for i := range r.Ranks {
		k, b := &r.Ranks[i], &before.Ranks[i]
		k.Sweeps += b.Sweeps
		k.Relaxing, k.Protocol = k.Relaxing+b.Relaxing, k.Protocol+b.Protocol
		k.Idle = max(0, r.Virtual-k.Relaxing-k.Protocol)
		k.Messages, k.Segments = k.Messages+b.Messages, k.Segments+b.Segments
		k.Bytes, k.Lost = k.Bytes+b.Bytes, k.Lost+b.Lost
		k.add(b.Reads)
	}
	for age := range r.Staleness {
		r.Staleness[age] += before.Staleness[age]
	}
}

// lose begins or ends the silence of a machine, or kills its peer, at an instant, by an event of the model.
func (e *engine) lose(ev *cluster.Event, on bool, at microproto.Instant) {
	s := &e.run.resumed
	w := e.run.paths()
	for rank := range e.hosts {
		p := e.process(rank)
		if !on || !ev.Killed || !w.concerns(ev, p) {
			continue
		}
		e.hosts[rank].retired = true
		if s.group != nil {
			s.group.Kill(e.since(at), rank)
			e.recovery.leaderless = e.recovery.leaderless || p == s.leader
		}
	}
	if e.hear(at); e.run.Recover != nil && (s.series != nil || s.copies != nil) {
		return // the launcher has the start of the time step, or the run begins again
	}
	for rank := range e.hosts {
		if e.has(rank, at) && w.down(e.process(rank), e.since(at)) == nil {
			return
		}
	}
	e.finish(at)
	e.fault = fmt.Errorf("simulate: %v after the first relaxation: the last machine is lost", e.elapsed())
}

// setEnd sets the end of the present stage: the bound of the run, when the first silent machine will be given up, or
// when the next epoch begins.
func (e *engine) setEnd(now microproto.Instant) {
	c := &e.recovery
	if e.end = e.suspected(); c.active && !e.silent() {
		e.end = c.ready
	}
	if c.pending || c.leaderless {
		e.end = microproto.Never
	}
	e.end = min(e.bound, max(e.end, now))
}

// silent reports whether a peer is silent that has not been given up.
func (e *engine) silent() bool {
	return slices.ContainsFunc(e.recovery.silentBy, func(ev *cluster.Event) bool { return ev != nil })
}

// suspected returns when the leader will give up the first silent peer, Never if there is none. A run that does not
// recover gives up killed peers only.
func (e *engine) suspected() microproto.Instant {
	at, c := microproto.Never, &e.recovery
	if c.leaderless {
		return at
	}
	for rank, ev := range c.silentBy {
		if ev != nil && c.noticedAt[rank] == microproto.Never && (e.run.Recover != nil || ev.Killed) {
			at = min(at, e.noticed(rank))
		}
	}
	return at
}

// noticed returns when the loss of a silent peer is noticed.
func (e *engine) noticed(rank int) microproto.Instant {
	switch c := &e.recovery; {
	case c.noticedAt[rank] != microproto.Never:
		return c.noticedAt[rank]
	case c.silentBy[rank].Killed:
		return c.silentAt[rank].Add(e.toLeader(rank))
	default:
		return c.silentAt[rank].Add(e.run.Recover.suspect())
	}
}

// recover replaces the peers that the leader has given up, and begins to repair the blocks that nobody has, or begins
// again. Values that a peer has repaired in time remain.
func (e *engine) recover() error {
	c, s := &e.recovery, &e.run.resumed
	c.active, c.frozen = true, e.run.Solver.Scheme.Lockstep()
	if s.paths.down(s.leader, e.since(e.now)) != nil {
		return fmt.Errorf("simulate: %v after the first relaxation: the process that leads the run reaches no peer", e.elapsed())
	}
	if s.fruitless == nil || slices.ContainsFunc(e.hosts, func(m *machine) bool { return m.timeline.swept > 0 }) {
		s.fruitless = make([]int, len(e.hosts))
	}
	spares := map[int]bool{} // by host of lost peers: one takes the places of all
	for rank, by := range c.silentBy {
		if by == nil || e.noticed(rank) > e.now {
			continue
		}
		host := e.run.hostOf(rank)
		if _, found := spares[host]; !found {
			spares[host] = s.spares < e.run.Recover.Spares
			if spares[host] {
				s.spares++
			}
		}
		l := Loss{
			Rank: rank, Host: host, Killed: by.Killed && !c.left[rank], Left: c.left[rank], Noticed: max(0, e.since(e.noticed(rank))),
			Spare: spares[host],
		}
		if s.fruitless[rank]++; s.fruitless[rank] > maxFruitless {
			return fmt.Errorf("simulate: %v after the first relaxation: rank %d was lost %d times without a sweep between",
				e.elapsed(), rank, s.fruitless[rank])
		}
		c.losses = append(c.losses, l)
		c.given[rank], c.silentBy[rank], c.restored[rank] = true, nil, nil
		c.noticedAt[rank], c.left[rank] = microproto.Never, false
		e.hosts[rank].retired, e.lost[rank] = true, true
		s.group.Replace(e.since(e.now), s.leader, rank)
		if s.replaced == nil {
			s.replaced = map[int]time.Duration{}
		}
		s.replaced[host] = e.since(e.now)
		if s.copies != nil {
			s.copies.ranks[rank].Discard()
		}
	}
	if c.waits = e.silent(); c.waits {
		c.ready = e.now
		e.setEnd(e.now)
		return nil
	}
	e.beginMoves()
	switch {
	case s.series != nil:
		e.restartStep()
	case s.copies != nil:
		e.goBack()
	case len(c.handing) > 0:
		e.handOver()
	default:
		if err := e.repair(); err != nil {
			return err
		}
	}
	e.setEnd(e.now)
	return nil
}

// due returns the silent ranks whose loss has been noticed: all of them if the protocol has noticed that one is silent.
func (e *engine) due() (ranks []int) {
	all := e.suspected() > e.now && !slices.ContainsFunc(e.recovery.noticedAt, func(at microproto.Instant) bool {
		return at != microproto.Never
	})
	for rank, ev := range e.recovery.silentBy {
		if ev != nil && (all || e.noticed(rank) <= e.now) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// outdated reports whether an event was that of a machine that has been replaced.
func (s *resumption) outdated(ev *cluster.Event) bool {
	if s.group == nil || ev.IsCut() || ev.Launcher {
		return false
	}
	at, replaced := s.replaced[ev.Rank]
	return replaced && ev.At <= at
}
