package launch

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// ownership holds the boxes of the blocks that peers send. They are those of the partition unless planes move. Then
// each peer declares its box before it sends the values, and boxes must be disjoint.
type ownership struct {
	config problem.Config // Problem, Partition, Method, Balance
	axis   int            // along which planes move

	boxes []problem.Box // by rank; empty until declared
}

func newOwnership(p *Plan) *ownership {
	o := &ownership{
		config: problem.Config{Problem: p.Problem, Partition: p.Partition, Method: p.Method, Balance: p.Balance},
		axis:   p.Problem.Dimension - 1,
		boxes:  make([]problem.Box, p.Partition.Peers()),
	}
	o.reset()
	return o
}

func (o *ownership) reset() {
	clear(o.boxes)
	for r := range o.boxes {
		if !o.config.Balance {
			o.boxes[r] = o.config.Partition.Box(iterate.Rank(r))
		}
	}
}

// recut begins again with another partition.
func (o *ownership) recut(p problem.Partition) {
	o.config.Partition = p
	o.reset()
}

func (o *ownership) declare(rank int, b problem.Box) error {
	if !o.config.Balance {
		return errors.New("a box was declared, but no planes move in this run")
	}
	was := o.config.Partition.Box(iterate.Rank(rank))
	for a := range 3 {
		if a != o.axis && (b.Lo[a] != was.Lo[a] || b.Hi[a] != was.Hi[a]) {
			return fmt.Errorf("box %v of a peer that had %v", b, was)
		}
	}
	lo, hi, most := b.Lo[o.axis], b.Hi[o.axis], richardson.MostPlanes(&o.config, iterate.Rank(rank))
	if lo < 0 || hi <= lo || hi > o.config.Problem.N[o.axis] || hi-lo > most {
		return fmt.Errorf("planes %d to %d of %d: at most %d are allowed", lo, hi, o.config.Problem.N[o.axis], most)
	}
	if o.boxes[rank].Points() > 0 {
		return errors.New("the box was declared twice")
	}
	for q, other := range o.boxes {
		if q != rank && lo < other.Hi[o.axis] && other.Lo[o.axis] < hi {
			return fmt.Errorf("planes %d to %d overlap those of peer %d", lo, hi, q)
		}
	}
	o.boxes[rank] = b
	return nil
}

// box returns the declared box of a peer, or that of the partition.
func (o *ownership) box(rank int) problem.Box {
	return o.boxes[rank]
}

// unowned returns the planes that belong to no peer with a complete block.
func (o *ownership) unowned(whole func(rank int) bool) []problem.Box {
	n := o.config.Problem.N[o.axis]
	taken := make([]bool, n+1)
	taken[n] = true
	for r, b := range o.boxes {
		for z := b.Lo[o.axis]; z < b.Hi[o.axis] && whole(r); z++ {
			taken[z] = true
		}
	}
	var out []problem.Box
	from := -1
	for z, is := range taken {
		switch {
		case !is && from < 0:
			from = z
		case is && from >= 0:
			gap := problem.Box{Hi: o.config.Problem.N}
			gap.Lo[o.axis], gap.Hi[o.axis] = from, z
			out, from = append(out, gap), -1
		}
	}
	return out
}
