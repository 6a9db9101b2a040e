package launch

import (
	"errors"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/placement"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// process identifies a process on a host, as join messages do.
type process struct {
	host  string
	pid   int
	space uint64 // of pid
}

// Moved describes a part that went from one process to another while the run was in progress.
type Moved struct {
	Rank    int     `json:"rank"`
	From    string  `json:"from"` // processes
	To      string  `json:"to"`
	At      float64 `json:"at"`      // seconds since the first relaxation, when the processes began to change
	Seconds float64 `json:"seconds"` // until all relaxed in the new places
}

// moving is the state of the parts that move from one process to another. A part moves at the beginning of an epoch: a
// new peer for its rank, in the other process, gets the values that the former peer has. That one stays until all
// relax again, and goes on if anything happens before.
type moving struct {
	balancer placement.Balancer
	meters   map[process]*placement.Meter
	leaving  map[process]bool // processes that were asked to leave

	sinceLeave int // ticks since the last of them was

	slow    map[process]float64
	pending []*handover // for which the other process was asked; the epoch has not begun
	handing []*handover // of the epoch in progress
	waited  int         // ticks since the newest of pending
	moves   []Moved
	known   []process // that have run parts or could; their indices are those of placement
}

// handover is a part that moves.
type handover struct {
	rank   int
	place  process // to which it moves
	from   *member // has the values
	to     *member // nil before its process has joined for it
	values []float64
	known  bool // values, or nothing is needed of from
	at     time.Duration
}

// balances reports whether parts move from slow processes to fast ones.
func (r *run) balances() bool { return r.BalanceParts && r.Recovers() }

// checkMoves decides, at every tick, which parts move.
func (r *run) checkMoves() {
	if r.active || r.stopping || r.failure != nil || r.held() || !r.Recovers() {
		return
	}
	for _, m := range r.members {
		if m.done() {
			return
		}
	}
	if len(r.pending) > 0 {
		absent := func(h *handover) bool { return h.to == nil }
		if r.waited++; r.waited > r.ticks(r.PeerTimeout) {
			r.pending = slices.DeleteFunc(r.pending, absent)
		}
		if len(r.pending) > 0 && !slices.ContainsFunc(r.pending, absent) {
			r.nextEpoch()
		}
		return
	}
	if !r.balances() && !r.Elastic && len(r.leaving) == 0 || r.othersMayLeave() {
		return
	}
	r.decideMoves()
}

// index returns the number of a process.
func (r *run) index(p process) int {
	i := slices.Index(r.known, p)
	if i < 0 {
		i, r.known = len(r.known), append(r.known, p)
	}
	return i
}

// places returns the parts, and the processes that run them or could. Spare peers of the launcher's wait for losses,
// unless a process leaves.
func (r *run) places() (parts []placement.Part, processes []placement.Process) {
	here := map[process]bool{}
	for _, m := range r.members {
		here[processOf(m)] = true
		parts = append(parts, placement.Part{Points: m.box.Points(), Process: r.index(processOf(m))})
	}
	for _, s := range r.spares {
		if len(r.leaving) > 0 || r.Elastic && s.child == 0 {
			here[processOf(s)] = true
			r.index(processOf(s))
		}
	}
	for _, p := range r.known {
		q := placement.Process{Leaving: r.leaving[p] || !here[p]}
		if m := r.meters[p]; m != nil {
			q.Speed = m.Speed()
		}
		processes = append(processes, q)
	}
	return parts, processes
}

// decideMoves asks processes for peers to which parts move.
func (r *run) decideMoves() {
	parts, processes := r.places()
	now := r.now
	moves := r.balancer.Decide(now, now, parts, processes)
	if len(r.leaving) > 0 && r.stuck(moves, parts) {
		return
	}
	for _, m := range moves {
		r.prepareMove(r.members[m.Part], r.known[m.To])
	}
	if r.waited = 0; len(r.pending) > 0 {
		r.info("parts move to other processes", "parts", len(r.pending))
	}
}

// stuck handles a process that is to leave and whose parts no other process can take: the launcher starts one, or ends
// the run early.
func (r *run) stuck(moves []placement.Move, parts []placement.Part) bool {
	for i, p := range parts {
		if r.leaving[r.known[p.Process]] && !slices.ContainsFunc(moves, func(m placement.Move) bool { return m.Part == i }) {
			if len(r.starting) > 0 {
				return true // it will join
			}
			if r.Spawn == nil {
				r.stopLeaving()
				return true
			}
			s := &member{rank: len(r.members) + len(r.moves) + len(r.losses)}
			r.starting = append(r.starting, s)
			r.add(start{s, s.rank})
			return true
		}
	}
	return false
}

// stopLeaving ends the run early for want of a process that takes the parts of one that leaves.
func (r *run) stopLeaving() {
	r.warn("no other process can take the parts of one that leaves: stopping")
	r.stop()
}

// prepareMove asks a process to run another peer, for the part of m. A spare process runs its first part itself; the
// others follow in another epoch.
func (r *run) prepareMove(m *member, to process) {
	h := &handover{rank: m.rank, place: to, from: m}
	for i, s := range r.spares {
		if processOf(s) == to {
			h.to = s
			r.spares = slices.Delete(r.spares, i, i+1)
			r.pending = append(r.pending, h)
			return
		}
	}
	for _, q := range r.members {
		if q.conn != 0 && processOf(q) == to {
			r.send(q, rendezvous.Host{Rank: m.rank})
			r.pending = append(r.pending, h)
			return
		}
	}
}

// expects takes a peer that joins for a part that is to move. It reports whether the peer is one.
func (r *run) expects(c *caller) bool {
	for _, h := range r.pending {
		if h.to == nil && h.rank == c.join.Rank && h.place == joined(&c.join) {
			h.to = &member{caller: *c}
			r.tellSpare(h.to)
			return true
		}
	}
	return false
}

// beginMoves begins the moves of an epoch, unless a peer was lost: then they wait.
func (r *run) beginMoves() {
	if slices.ContainsFunc(r.members, func(m *member) bool { return !m.valued || m.conn == 0 }) {
		return
	}
	for _, h := range r.pending {
		from := r.members[h.rank]
		if h.to == nil || from != h.from || from.lost || from.gone {
			r.dropMove(h)
			continue
		}
		to := h.to
		next := from.successor()
		to.rank, to.box, to.final, to.sweep, to.valued = next.rank, next.box, next.final, next.sweep, true
		to.former, to.carried = next.former, next.carried
		label, err := r.label(h.rank, &to.caller)
		if err != nil {
			r.warn("a part cannot move", "error", err, "rank", h.rank)
			r.dropMove(h)
			continue
		}
		if _, known := r.slow[h.place]; !known && r.Parts > 1 {
			r.slow[h.place] = 1
		}
		r.add(displace{of: from})
		r.seat(to, &to.caller, label)
		h.at = r.now
		h.known = r.inTime || r.exact()
		r.members[h.rank] = to
		r.change(rankLeft(h.rank))
		r.handing = append(r.handing, h)
		if !h.known {
			r.send(from, rendezvous.Capture{Number: -r.epoch, Boxes: []problem.Box{{Hi: r.Problem.N}}})
		}
	}
	r.pending = nil
}

// dropMove dismisses the peer that was to take a part.
func (r *run) dropMove(h *handover) {
	if to := h.to; to != nil {
		r.send(to, rendezvous.Bye{Moved: true})
		r.add(disconnect{to})
	}
}

// awaitsHandover reports whether values of a part that moves have not arrived.
func (r *run) awaitsHandover() bool { return slices.ContainsFunc(r.handing, r.awaits) }

// awaits reports whether values of a move have not arrived; nil: there is no move.
func (r *run) awaits(h *handover) bool {
	return h != nil && (!h.known || r.exact() && h.from.listens != r.epoch)
}

// handoverTo returns the move by which a member gets its part, nil if there is none.
func (r *run) handoverTo(m *member) *handover {
	for _, h := range r.handing {
		if h.to == m {
			return h
		}
	}
	return nil
}

// handleFormer handles an event of a peer whose part moves elsewhere. It returns false for another peer.
func (r *run) handleFormer(m *member, o event) bool {
	i := slices.IndexFunc(r.handing, func(h *handover) bool { return h.from == m })
	if i < 0 {
		return false
	}
	h := r.handing[i]
	m.exited, m.quietTicks = m.exited || o.exited, 0
	if o.closed != nil || o.exited {
		m.gone = true
		if errors.Is(o.closed, rendezvous.ErrMalformed) {
			r.ban(m)
		}
		if r.awaitsHandover() || r.resumption.awaits(m) {
			r.lose(h.to, failure{reported, h.rank, m.String() + " was lost while its part moved"}) // its process is not
		}
		return true
	}
	switch msg := o.message.(type) {
	case rendezvous.Listen:
		m.entered(&msg)
		h.to.sweep, h.to.omega = m.sweep, m.omega
	case rendezvous.Captured:
		if msg.Copy != nil {
			r.receiveCopy(m, &msg, o.values)
		} else if msg.Number == -r.epoch && !h.known {
			if len(o.values) != m.box.Points() {
				r.add(disconnect{m})
				r.lose(h.to, failure{reported, h.rank, m.String() + " sent other values than those of its part"})
				return true
			}
			h.values, h.known = o.values, true
			h.to.sweep = max(h.to.sweep, msg.Sweep)
		}
	}
	r.advance()
	return true
}

// undoMoves ends the moves of an epoch that is over before all relaxed in it: the parts stay where they were.
func (r *run) undoMoves() {
	for _, h := range r.handing {
		if h.from.gone { // the new peer repairs the part, unless it has all values already
			h.to.valued = h.to.ready
			continue
		}
		to := r.members[h.rank]
		if to == h.to && to.conn != 0 {
			r.dismissMoved(to)
		}
		r.add(displace{of: h.from, back: true})
		h.from.since = r.epoch
		r.members[h.rank] = h.from
		r.by(h.from, "process of "+h.from.String()+", which still had the block")
	}
	r.handing = nil
}

// dismissMoved ends a peer whose part another process runs.
func (r *run) dismissMoved(m *member) {
	m.moved = true
	r.send(m, rendezvous.Bye{Moved: true})
	r.add(finish{m})
}

// endMovesEarly dismisses the peers of moves that are under way when the run ends.
func (r *run) endMovesEarly() {
	for _, h := range r.handing {
		if !h.from.gone {
			r.dismissMoved(h.from)
		}
	}
	for _, h := range r.pending {
		if h.to != nil {
			r.spares = append(r.spares, h.to)
		}
	}
	r.handing, r.pending = nil, nil
}

// endMoves ends the moves of an epoch in which all relax.
func (r *run) endMoves() {
	if len(r.handing) == 0 {
		return
	}
	now := r.now
	var moves []placement.Move
	at := now
	for _, h := range r.handing {
		moves = append(moves, placement.Move{
			Part: h.rank, From: r.index(processOf(h.from)), To: r.index(processOf(h.to)),
		})
		r.moves = append(r.moves, Moved{
			Rank: h.rank, From: h.from.process(), To: h.to.process(), At: h.at.Seconds(), Seconds: (now - h.at).Seconds(),
		})
		r.info("part moved", "rank", h.rank, "from", h.from.process(), "to", h.to.process(), "pause", now-h.at)
		at = min(at, h.at)
		if !h.from.gone {
			r.dismissMoved(h.from)
		}
	}
	r.balancer.Moved(now, now-at, moves)
	r.handing = nil
}

// leave handles a peer whose process is asked to leave.
func (r *run) leave(m *member) {
	if r.stopping || r.failure != nil || r.leaving[processOf(m)] {
		return
	}
	if !r.Recovers() {
		r.stop()
		return
	}
	r.info("a process leaves: its parts move to others", "process", m.process())
	r.leaving[processOf(m)], r.sinceLeave = true, 0
}

// leaveTime is how long parts wait after a process was asked to leave. If all are, as at the end of a job, the run ends
// early instead: no process can take the parts.
const leaveTime = time.Second

// othersMayLeave reports, at a tick, whether parts have to wait for that.
func (r *run) othersMayLeave() bool {
	stays := func(m *member) bool { return !r.leaving[processOf(m)] }
	r.sinceLeave++
	return len(r.leaving) > 0 && r.sinceLeave <= r.ticks(leaveTime) && slices.ContainsFunc(r.members, stays)
}

// measure records how fast the process of a peer relaxes.
func (r *run) measure(m *member, b *rendezvous.Beat) {
	m.progressed(b.Relaxed, b.Busy)
	if !r.balances() {
		return
	}
	p := processOf(m)
	meter := r.meters[p]
	if meter == nil {
		meter = &placement.Meter{}
		r.meters[p] = meter
	}
	points, busy := uint64(0), 0.0
	for _, q := range r.members {
		if processOf(q) == p {
			points, busy = points+q.relaxed, busy+q.busy
		}
	}
	meter.Add(r.now, points, time.Duration(busy*float64(time.Second)))
}
