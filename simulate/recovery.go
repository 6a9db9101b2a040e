package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Recovery makes a run go on after peers are lost. Other processes, on machines of the same class, take their places.
// Each solves the block of its rank again from the values around it (package solver/repair), and all ranks continue
// from what they have in a new epoch of the run. With time steps, all ranks begin the step in progress again.
type Recovery struct {
	// Suspect is the silence after which a machine is given up. 0: 1 s. A machine that returns sooner is not lost. The
	// death of a peer is noticed at once.
	Suspect time.Duration
	// Spares is the number of processes that wait to take the place of lost peers. When there are no more, new ones
	// are started, which takes longer.
	Spares int
	// Exact makes every rank store copies of its iterates with another one, from time to time. After a loss all ranks go
	// back to the newest iterate that is known of each, or begin again if there is none (package solver/buddy). So the
	// run has the bits and the sweeps of one without losses. It needs a scheme in lockstep and a method other than
	// Schwarz. Solver.KeepEvery is the least time between two kept iterates; 0: buddy.KeepEvery. With time steps Exact
	// changes nothing: a step that begins again has the same bits anyway.
	Exact bool
}

// defaultSuspect is used when Recovery.Suspect is 0.
const defaultSuspect = time.Second

// Loss is a loss of a peer that a run has recovered from. Times are since the first relaxation of the run.
type Loss struct {
	Rank int
	// Killed reports that the peer was killed. Otherwise its machine was silent.
	Killed  bool
	Noticed time.Duration
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
	epoch    uint64
	at       time.Duration   // since the first relaxation of the run: the ranks begin to connect
	left     time.Duration   // since the first relaxation of the run: the epoch before ends
	starts   [][]float64     // starting values by rank; nil: those of Solver
	states   [][]byte        // of the kept iterate whose values starts are, by rank; nil: they are of none
	points   []uint64        // relaxed until then, by rank; nil: this is not counted
	copies   *copies         // of all epochs; nil: no iterates are kept
	replaced []time.Duration // by rank: when its last peer was given up; less than 0: never
	sweeps   float64         // complete sweeps of the whole grid
	spares   int             // that have taken the place of lost peers
	series   *series         // of all epochs; nil: the problem is stationary
}

// recovering is the state of a recovery within an epoch. The survivors of an asynchronous run go on meanwhile.
type recovering struct {
	active     bool                 // peers were given up, and the next epoch has not begun
	frozen     bool                 // nobody relaxes meanwhile
	waits      bool                 // the repair begins when no machine is silent any more
	ready      microproto.Instant   // when the next epoch begins if no further machine falls silent
	connecting microproto.Instant   // when the ranks begin to connect for it
	silentAt   []microproto.Instant // by rank: when the peer of the rank fell silent
	silentBy   []*cluster.Event     // by rank: why; nil: the peer is not silent, or was given up
	given      []bool               // by rank: the peer of this epoch was given up; another takes its place
	restored   [][]float64          // by rank: repaired values
	restoredAt []microproto.Instant
	losses     []Loss // of the epoch
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
		}
		if at := e.allRelax(); at != microproto.Never {
			for i := range res.Losses {
				if l := &res.Losses[i]; l.Resumed == 0 {
					l.Resumed = e.since(at)
				}
			}
		}
		res.Losses = append(res.Losses, e.recovery.losses...)
		if total = res; err != nil || !e.left {
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
			*l = Loss{Rank: l.Rank, Killed: l.Killed, Noticed: l.Noticed, Spare: l.Spare}
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
	}
	for age := range r.Staleness {
		r.Staleness[age] += before.Staleness[age]
	}
}

// lose begins or ends the silence of a machine at an instant, by an event of the model.
func (e *engine) lose(ev *cluster.Event, on bool, at microproto.Instant) {
	rank, c := ev.Rank, &e.recovery
	switch by := c.silentBy[rank]; {
	case on && by == nil:
		e.lost[rank], c.silentAt[rank], c.silentBy[rank] = true, at, ev
		e.hosts[rank].retired = c.given[rank] || ev.Killed
	case on && by.Until > 0 && (ev.Until == 0 || ev.Until > by.Until):
		c.silentBy[rank] = ev
	case !on && by == ev:
		e.lost[rank], c.silentBy[rank] = c.given[rank], nil
	}
	e.setEnd(at)
	if s := &e.run.resumed; e.run.Recover != nil && (s.series != nil || s.copies != nil) {
		return // the launcher has the start of the time step, or the run begins again
	}
	for rank := range e.hosts {
		if e.held(rank, at) {
			return
		}
	}
	e.finish(at)
	e.fault = fmt.Errorf("simulate: %v after the first relaxation: the last machine is lost", e.elapsed())
}

// setEnd sets the end of the present stage: the bound of the run, when the first silent machine will be given up, or
// when the next epoch begins.
func (e *engine) setEnd(now microproto.Instant) {
	e.end = e.suspected()
	if e.recovery.active && !e.silent() {
		e.end = e.recovery.ready
	}
	e.end = min(e.bound, max(e.end, now))
}

// silent reports whether a peer is silent that has not been given up.
func (e *engine) silent() bool {
	return slices.ContainsFunc(e.recovery.silentBy, func(ev *cluster.Event) bool { return ev != nil })
}

// suspected returns when the first silent peer will be given up, Never if there is none. A run that does not recover
// gives up killed peers only.
func (e *engine) suspected() microproto.Instant {
	at := microproto.Never
	for rank, ev := range e.recovery.silentBy {
		if ev != nil && (e.run.Recover != nil || ev.Killed) {
			at = min(at, e.noticed(rank))
		}
	}
	return at
}

// noticed returns when the loss of a silent peer will be noticed. The machine of rank 0 runs the launcher.
func (e *engine) noticed(rank int) microproto.Instant {
	if c := &e.recovery; !c.silentBy[rank].Killed {
		return c.silentAt[rank].Add(cmp.Or(e.run.Recover.Suspect, defaultSuspect))
	}
	return e.recovery.silentAt[rank].Add(e.latency(int32(rank), 0))
}

// recover gives up the peers whose loss has been noticed, and begins to repair the blocks that nobody has, or begins
// again. Values that a peer has repaired in time remain.
func (e *engine) recover() error {
	c, s := &e.recovery, &e.run.resumed
	due := e.due()
	c.active, c.frozen = true, e.run.Solver.Scheme.Lockstep()
	for _, rank := range due {
		l := Loss{Rank: rank, Killed: c.silentBy[rank].Killed, Noticed: e.elapsed(), Spare: s.spares < e.run.Recover.Spares}
		if l.Spare {
			s.spares++
		}
		c.losses = append(c.losses, l)
		c.given[rank], c.silentBy[rank], c.restored[rank] = true, nil, nil
		e.hosts[rank].retired = true
		if s.copies != nil {
			s.copies.ranks[rank].Discard()
		}
	}
	if c.waits = e.silent(); c.waits {
		c.ready = e.now
	} else if s.series != nil {
		e.restartStep()
	} else if s.copies != nil {
		e.goBack()
	} else if err := e.repair(); err != nil {
		return err
	}
	e.setEnd(e.now)
	return nil
}

// due returns the silent ranks whose loss has been noticed: all of them if the protocol has noticed that one is silent.
func (e *engine) due() (ranks []int) {
	all := e.suspected() > e.now
	for rank, ev := range e.recovery.silentBy {
		if ev != nil && (all || e.noticed(rank) <= e.now) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// outdated reports whether an event was that of a machine that has been replaced.
func (s *resumption) outdated(ev *cluster.Event) bool {
	return (ev.Lost || ev.Killed || ev.Slow > 0) && ev.Rank < len(s.replaced) && ev.At <= s.replaced[ev.Rank]
}
