package repair

import (
	"cmp"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Recut returns the partition with which a run goes on after a loss and, by rank, the part of its box whose values no
// survivor holds: the box of a lost peer, nothing of most others. held has the boxes of the survivors, by rank, and
// an empty box for each lost peer. The partition is part unless the run moves planes. Planes that were on their way
// between two peers then belong to a lost peer between them, or to the lower survivor.
func Recut(part problem.Partition, held []problem.Box) (next problem.Partition, missing []problem.Box) {
	parts := part.Parts()
	for a, cuts := range part.Cuts {
		next.Cuts[a] = slices.Clone(cuts)
		if parts[a] == len(held) { // slabs, whose cuts may have moved
			recut(next.Cuts[a], held, a)
		}
	}
	for r, b := range held {
		missing = append(missing, Missing(next.Box(iterate.Rank(r)), b))
	}
	return next, missing
}

// Missing returns the part of a box of Recut that is outside the box that its peer held.
func Missing(box, held problem.Box) problem.Box {
	if rest := difference(box, held); len(rest) > 0 {
		return rest[0]
	}
	return problem.Box{}
}

// recut moves the cuts of slabs to where the survivors' boxes begin. If that moves the ends of lost peers in a row,
// they share what is between.
func recut(cuts []int, held []problem.Box, axis int) {
	old := slices.Clone(cuts)
	for r := 0; r < len(held); r++ {
		first := r
		for r < len(held) && held[r].Empty() {
			r++
		}
		lo, hi := old[first], old[r]
		if first > 0 {
			lo = held[first-1].Hi[axis]
		}
		if r < len(held) {
			hi = held[r].Lo[axis]
			cuts[r] = hi
		}
		for i := first; i < r && (lo != old[first] || hi != old[r]); i++ {
			cuts[i] = lo + (hi-lo)*(i-first)/(r-first)
		}
	}
}

// Join returns the values of a box with two parts, one of which may be empty: u holds those of held, v those of
// missing. It returns u or v itself if that has all.
func Join(box, held problem.Box, u []float64, missing problem.Box, v []float64) []float64 {
	switch box {
	case held:
		return u
	case missing:
		return v
	}
	out := make([]float64, box.Points())
	insert(box, out, held, u)
	insert(box, out, missing, v)
	return out
}

// Next returns the configuration with which a peer goes on after a loss, in the next epoch of the run. c is its
// configuration in the epoch that ended. part is that of Recut, and u holds the values of the peer's box in it: those
// of Peer.Solution of a survivor, and the repaired ones. newest is the progress of the survivor with most sweeps in the
// epoch. At least one sweep remains, so that the residual of the assembled vector is measured.
func Next(c problem.Config, part problem.Partition, u []float64, newest iterate.Progress) problem.Config {
	c.Partition, c.Initial, c.Omega = part, u, cmp.Or(newest.Omega, c.Omega)
	if c.MaxSweeps > 0 {
		c.MaxSweeps -= min(newest.Sweep, c.MaxSweeps-1)
	}
	return c
}
