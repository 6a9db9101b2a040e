package placement

import (
	"slices"
	"time"
)

// Balancer decides when parts move. A move ends an epoch, which costs all processes some time.
type Balancer struct {
	cost    time.Duration // of the newest move; 0: not known
	readyAt time.Duration // no move before
	rest    time.Duration // between two moves
	last    map[int]Move  // newest of each part
}

// Bounds of a Balancer.
const (
	imbalance   = 1.15                   // of the longest time to that after the moves, from which parts move
	likelyCost  = 300 * time.Millisecond // of a move, before one was made
	restInCosts = 10                     // rest between two moves, in costs of one
	mostRest    = time.Hour
)

// Decide returns the parts that are to move now, at the time now since the start of the run, of which took was spent in
// sweeps of the present placement. It returns none if too little would be gained: the run is expected to go on for as
// long as it has taken, and a move must save more than it costs. The rest after a move doubles with every move that takes
// a part back where it came from, as measurements that vary would cause. While the speeds of some processes with parts
// are known and those of others are not yet, nothing moves. Leaving processes are emptied at once.
func (b *Balancer) Decide(now, took time.Duration, parts []Part, processes []Process) []Move {
	moves := Even(parts, processes)
	if len(moves) == 0 {
		return nil
	}
	leaving := slices.ContainsFunc(moves, func(m Move) bool { return processes[m.From].Leaving })
	if !leaving && (now < b.readyAt || !measured(parts, processes) || !b.pays(took, parts, processes, moves)) {
		return nil
	}
	return moves
}

// measured reports whether the speeds of all processes with parts are known, or of none.
func measured(parts []Part, processes []Process) bool {
	known, unknown := false, false
	for _, p := range parts {
		known = known || processes[p.Process].Speed > 0
		unknown = unknown || !(processes[p.Process].Speed > 0)
	}
	return !known || !unknown
}

// pays reports whether moves save more than they cost.
func (b *Balancer) pays(took time.Duration, parts []Part, processes []Process, moves []Move) bool {
	then := slices.Clone(parts)
	for _, m := range moves {
		then[m.Part].Process = m.To
	}
	before, after := Longest(parts, processes), Longest(then, processes)
	cost := b.cost
	if cost == 0 {
		cost = likelyCost
	}
	return before > imbalance*after && float64(took)*(1-after/before) > float64(cost)
}

// Moved records that parts have moved at the time now, and that it cost the run that much time.
func (b *Balancer) Moved(now, cost time.Duration, moves []Move) {
	b.cost = max(cost, time.Millisecond)
	if b.last == nil {
		b.last = map[int]Move{}
	}
	back := false
	for _, m := range moves {
		was, moved := b.last[m.Part]
		back = back || moved && was.From == m.To
		b.last[m.Part] = m
	}
	b.rest = max(b.rest, restInCosts*b.cost)
	if back {
		b.rest = min(2*b.rest, mostRest)
	}
	b.readyAt = now + b.rest
}
