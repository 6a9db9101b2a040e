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
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/repair"
)

// Recovery makes a run go on after machines are lost. Spare machines of the same class take their places. Each solves
// the block of its rank again from the values around it (package solver/repair), and all ranks continue from what
// they have in a new epoch of the run.
type Recovery struct {
	// Suspect is the silence after which the others give a machine up. 0: 1 s. A machine that returns sooner is
	// not lost.
	Suspect time.Duration
}

// defaultSuspect is used when Recovery.Suspect is 0.
const defaultSuspect = time.Second

// Loss is a loss that a run has recovered from. Times are since the first relaxation of the run.
type Loss struct {
	Ranks   []int
	Noticed time.Duration
	// Repair is the time in which the values around the holes arrive and the holes are solved.
	Repair time.Duration
	// Resumed is the time of the first relaxation after the loss.
	Resumed time.Duration
}

// resumption is what an epoch of a run takes over from the epochs before it.
type resumption struct {
	epoch    uint64
	at       time.Duration   // since the first relaxation of the run: the ranks begin to connect
	starts   [][]float64     // starting values by rank
	replaced []time.Duration // by rank: when its last machine was given up; less than 0: never
	sweeps   float64         // complete sweeps of the whole grid
}

// checkRecovery refuses what a run cannot recover in.
func (r *Config) checkRecovery() error {
	switch {
	case r.Recover == nil:
		return nil
	case r.New != nil || r.Sweeps > 0:
		return errors.New("simulate: Recover applies to Config.Solver, without Config.Sweeps; use Solver.MaxSweeps")
	case r.Recover.Suspect < 0:
		return fmt.Errorf("simulate: a machine cannot be given up after %v of silence", r.Recover.Suspect)
	}
	return nil
}

// simulateEpochs simulates the epochs of a run: one, and another after each loss.
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
		err = e.loop(ctx)
		res, err2 := e.result()
		if err = errors.Join(err, err2); total != nil {
			res.addEpochs(total)
			res.Losses[len(res.Losses)-1].Resumed = e.origin
		}
		if total = res; err != nil || !e.broken {
			return total, err
		}
		if r, err = e.recover(total); err != nil {
			return total, err
		}
	}
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

// suspected returns when the first silent machine will be given up, Never if there is none or the run does not recover.
func (e *engine) suspected() microproto.Instant {
	at := microproto.Never
	for rank, lost := range e.lost {
		if lost && e.run.Recover != nil {
			at = min(at, e.lostAt[rank].Add(cmp.Or(e.run.Recover.Suspect, defaultSuspect)))
		}
	}
	return at
}

// recover repairs the blocks of all silent machines, and returns the configuration of the next epoch. It adds the loss
// to the result.
func (e *engine) recover(total *Result) (*Config, error) {
	r, p := *e.run, e.run.Solver.Problem
	s, l := &r.resumed, Loss{Noticed: e.elapsed()}
	held, done := make([]problem.Box, len(e.hosts)), iterate.Iteration(0)
	if s.replaced == nil {
		s.replaced = slices.Repeat([]time.Duration{-1}, len(e.hosts))
	}
	s.replaced = slices.Clone(s.replaced)
	for rank, m := range e.hosts {
		if e.lost[rank] {
			l.Ranks, s.replaced[rank] = append(l.Ranks, rank), l.Noticed
		} else {
			held[rank] = m.settled().Box()
			done = max(done, m.peer.Outcome().Sweeps)
		}
	}
	part, missing := repair.Recut(r.Solver.Partition, held)
	holes := slices.DeleteFunc(slices.Clone(missing), problem.Box.Empty)
	faces, own, repaired := repair.NewFaces(holes), make([][]float64, len(held)), make([][]float64, len(held))
	for rank, b := range held {
		if !b.Empty() {
			own[rank] = make([]float64, b.Points())
			e.hosts[rank].settled().Solution(own[rank])
			if err := faces.Add(b, repair.Pack(holes, b, own[rank])); err != nil {
				return nil, err
			}
		}
	}
	for _, group := range repair.Groups(holes) {
		fixed, err := repair.Solve(repair.Hole{
			Problem: p, Boxes: group, Value: faces.Value, New: cmp.Or(r.Methods, solver.Methods()).New,
			Tolerance: r.Solver.Tolerance,
		})
		if err != nil {
			return nil, fmt.Errorf("simulate: the blocks of ranks %v cannot be repaired: %w", l.Ranks, err)
		}
		for rank, b := range missing {
			if slices.Contains(group, b) {
				repaired[rank] = fixed.Values(b)
				l.Repair = max(l.Repair, e.repairTime(rank, group, &fixed))
			}
		}
	}
	s.starts = make([][]float64, len(held))
	for rank := range held {
		s.starts[rank] = repair.Join(part.Box(iterate.Rank(rank)), held[rank], own[rank], missing[rank], repaired[rank])
	}
	s.epoch++
	s.sweeps = e.completeSweeps()
	s.at = l.Noticed + l.Repair
	total.Losses = append(total.Losses, l)
	r.Solver = repair.Next(r.Solver, part, nil, done)
	return &r, nil
}

// repairTime returns how long the machine of a rank takes to receive the values around a hole and to solve it.
func (e *engine) repairTime(rank int, hole []problem.Box, r *repair.Repaired) time.Duration {
	h, points := &e.model.Hosts[rank], 0
	for _, b := range repair.Shell(hole, problem.Box{Hi: e.run.Solver.Problem.N}) {
		points += b.Points()
	}
	side, face, volume := float64(max(1, e.run.Scale)), 1.0, 1.0
	for a := range e.run.Solver.Problem.Dimension {
		if volume *= side; a > 0 {
			face *= side
		}
	}
	n := &e.model.Networks[h.Network]
	seconds := 8*face*float64(points)/n.Rate + r.Work*volume*float64(r.Box.Points())/h.Relaxation*cmp.Or(h.Slow, 1)
	return n.Latency + time.Duration(seconds*float64(time.Second))
}

// outdated reports whether an event was that of a machine that has been replaced.
func (s *resumption) outdated(ev *cluster.Event) bool {
	return (ev.Lost || ev.Slow > 0) && ev.Rank < len(s.replaced) && ev.At <= s.replaced[ev.Rank]
}
