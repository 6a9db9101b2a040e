package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/placement"
	"github.com/p2pdc/p2pdc/microproto"
)

// Move is a peer that went to another host while the run was in progress. Times are since the first relaxation of the
// run.
type Move struct {
	Rank     int
	From, To int           // hosts
	At       time.Duration // the epoch begins in which it moves
	// Resumed is when all ranks relax again. 0: the run ended before.
	Resumed time.Duration
}

// joinLatencies is how many latencies a new peer for a part takes to join: its process is asked, and then connects with
// TCP, TLS and a challenge.
const joinLatencies = 7

// leastDecision bounds the interval of decisions about moves, as that of the launcher's ticks in a solve.
const leastDecision = 5 * time.Millisecond

// moving decides which parts move, by the rules of a solve.
type moving struct {
	balancer placement.Balancer
	meters   []placement.Meter // by host
	moves    []Move
	open     int // of moves: after the newest epoch not all ranks have relaxed yet
}

// handover is a part that moves in the epoch that begins.
type handover struct {
	placement.Move
	at     time.Duration
	values []float64 // nil: its values are those of the start of a time step, or of a kept iterate
}

// newMoving returns the state of the moves of a run, nil if parts do not move.
func newMoving(r *Config) *moving {
	if !r.moves() {
		return nil
	}
	return &moving{meters: make([]placement.Meter, r.used())}
}

// beginMeasuring begins to measure the speeds of hosts in an epoch, at its first relaxation.
func (e *engine) beginMeasuring() {
	m := e.run.resumed.moving
	if m == nil {
		return
	}
	for i := range m.meters {
		m.meters[i].Add(e.since(e.began), 0, 0)
	}
	e.decision = e.began.Add(e.decisionInterval())
}

// decisionInterval returns the time between two decisions about moves.
func (e *engine) decisionInterval() time.Duration {
	return max(leastDecision, e.run.Recover.suspect()/64)
}

// checkMoves measures the speeds of hosts, and decides at an instant which parts move. When the hosts have peers for
// parts that are to move, the next epoch begins.
func (e *engine) checkMoves(at microproto.Instant) {
	c := &e.recovery
	e.decision = at.Add(e.decisionInterval())
	e.measure(e.since(at))
	e.resumeMoves()
	switch {
	case c.active || c.pending || c.leaderless || e.silent() || e.done.Load() > 0:
	case len(c.planned) == 0:
		e.planMoves(at)
	case at >= c.joined:
		e.now = at
		e.request()
	}
}

// measure adds the points that each host has relaxed in this epoch until now, and the time that this took, to its meter.
func (e *engine) measure(now time.Duration) {
	if !e.run.Balance {
		return // the hosts count as equally fast
	}
	meters := e.run.resumed.moving.meters
	points, busy := make([]uint64, len(meters)), make([]time.Duration, len(meters))
	for rank, m := range e.hosts {
		host := e.run.hostOf(rank)
		points[host] += m.points - m.before
		busy[host] += m.relaxing
	}
	for i := range meters {
		meters[i].Add(now, points[i], busy[i])
	}
}

// planMoves decides which parts move, and asks the hosts to which they move for peers.
func (e *engine) planMoves(at microproto.Instant) {
	if e.allRelax() == microproto.Never {
		return
	}
	m, c := e.run.resumed.moving, &e.recovery
	var parts []placement.Part
	for rank, h := range e.hosts {
		parts = append(parts, placement.Part{Points: h.block, Process: e.run.hostOf(rank)})
	}
	processes, now := make([]placement.Process, len(m.meters)), e.since(at)
	for i := range processes {
		processes[i] = placement.Process{Speed: m.meters[i].Speed(), Leaving: !e.run.present(i, now)}
	}
	c.planned = m.balancer.Decide(now, now, parts, processes)
	c.joined = at.Add(joinLatencies * e.farthest())
}

// beginMoves begins the planned moves in the epoch that follows, unless a peer was lost.
func (e *engine) beginMoves() {
	c := &e.recovery
	c.handing = nil
	for _, m := range c.planned {
		h := handover{Move: m, at: e.since(e.now)}
		if s := &e.run.resumed; s.series == nil && s.copies == nil {
			h.values = e.hosts[m.Part].values()
		}
		c.handing = append(c.handing, h)
	}
	for _, given := range c.given {
		if given {
			c.handing = nil
		}
	}
	c.planned = nil
}

// moved returns the ranks whose parts move in the epoch that begins.
func (e *engine) moved() (ranks []int) {
	for i := range e.recovery.handing {
		ranks = append(ranks, e.recovery.handing[i].Part)
	}
	return ranks
}

// target returns the host of a rank in the epoch that begins.
func (e *engine) target(rank int) int {
	for i := range e.recovery.handing {
		if h := &e.recovery.handing[i]; h.Part == rank {
			return h.To
		}
	}
	return e.run.hostOf(rank)
}

// handOver sends the values of parts that move from one host to the other, through the process that leads, and sets
// when the next epoch begins.
func (e *engine) handOver() {
	c, moved, latency := &e.recovery, e.moved(), e.farthest()
	fetched := e.now.Add(2*latency + e.carryTime(moved, e.run.hostOf))
	delivered := e.carryTime(moved, e.target)
	c.connecting = fetched.Add(latency + delivered + e.listsTime(len(moved)) + e.newsTime(moved))
	c.ready = c.connecting.Add(time.Duration(e.began))
}

// start returns the values from which a rank starts in the epoch that begins.
func (e *engine) start(rank int) []float64 {
	for i := range e.recovery.handing {
		if h := &e.recovery.handing[i]; h.Part == rank {
			return h.values
		}
	}
	return e.solution(rank)
}

// moveParts puts the parts that move on their hosts of the epoch that begins.
func (e *engine) moveParts() {
	s := &e.run.resumed
	for i := range e.recovery.handing {
		h := &e.recovery.handing[i]
		s.hosts[h.Part] = h.To
		s.group.Move(e.elapsed(), h.Part)
		s.moving.moves = append(s.moving.moves, Move{Rank: h.Part, From: h.From, To: h.To, At: h.at})
	}
	if s.copies != nil {
		s.copies.buddies = buddiesOf(e.run)
	}
}

// resumeMoves ends the moves of this epoch once all ranks relax.
func (e *engine) resumeMoves() {
	m, at := e.run.resumed.moving, e.allRelax()
	if m == nil || m.open == len(m.moves) || at == microproto.Never {
		return
	}
	now, began := e.since(at), e.since(at)
	var moves []placement.Move
	for ; m.open < len(m.moves); m.open++ {
		v := &m.moves[m.open]
		v.Resumed, began = now, min(began, v.At)
		moves = append(moves, placement.Move{Part: v.Rank, From: v.From, To: v.To})
	}
	m.balancer.Moved(now, now-began, moves)
}
