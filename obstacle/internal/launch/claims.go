package launch

import (
	"errors"
	"fmt"
	"sync"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// claims are the boxes whose values the peers hand over. They are those of the partition
// unless planes move: then each peer says which its box has become before its values
// come, and no two may have a point in common.
type claims struct {
	config problem.Config // Problem, Partition, Method, Balance
	axis   int            // along which planes move

	mu    sync.Mutex
	boxes []problem.Box // by rank; empty: not said yet
}

func newClaims(p *Plan) *claims {
	c := &claims{
		config: problem.Config{Problem: p.Problem, Partition: p.Partition, Method: p.Method, Balance: p.Balance},
		axis:   p.Problem.Dimension - 1,
		boxes:  make([]problem.Box, p.Partition.Peers()),
	}
	c.reset()
	return c
}

// reset forgets what was said.
func (c *claims) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.boxes {
		c.boxes[r] = c.first(r)
	}
}

// first is what a peer's box is before it says anything.
func (c *claims) first(rank int) problem.Box {
	if c.config.Balance {
		return problem.Box{}
	}
	return c.config.Partition.Box(iterate.Rank(rank))
}

// claim takes a peer's word for its box.
func (c *claims) claim(rank int, b problem.Box) error {
	if !c.config.Balance {
		return errors.New("it says what its box has become, while no planes move in this run")
	}
	was := c.config.Partition.Box(iterate.Rank(rank))
	for a := range 3 {
		if a != c.axis && (b.Lo[a] != was.Lo[a] || b.Hi[a] != was.Hi[a]) {
			return fmt.Errorf("a box %v of a peer that had %v", b, was)
		}
	}
	lo, hi, most := b.Lo[c.axis], b.Hi[c.axis], richardson.MostPlanes(&c.config, iterate.Rank(rank))
	if lo < 0 || hi <= lo || hi > c.config.Problem.N[c.axis] || hi-lo > most {
		return fmt.Errorf("a box of planes %d to %d; there are %d, of which it may have %d", lo, hi, c.config.Problem.N[c.axis], most)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.boxes[rank].Points() > 0 {
		return errors.New("it says twice what its box has become")
	}
	for q, other := range c.boxes {
		if q != rank && lo < other.Hi[c.axis] && other.Lo[c.axis] < hi {
			return fmt.Errorf("planes %d to %d, of which peer %d has some", lo, hi, q)
		}
	}
	c.boxes[rank] = b
	return nil
}

// box is what a peer has said, or the partition.
func (c *claims) box(rank int) problem.Box {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.boxes[rank]
}

// gaps are the planes that nobody has of those whose blocks have come whole.
func (c *claims) gaps(whole func(rank int) bool) []problem.Box {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.config.Problem.N[c.axis]
	taken := make([]bool, n+1)
	taken[n] = true
	for r, b := range c.boxes {
		for z := b.Lo[c.axis]; z < b.Hi[c.axis] && whole(r); z++ {
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
			gap := problem.Box{Hi: c.config.Problem.N}
			gap.Lo[c.axis], gap.Hi[c.axis] = from, z
			out, from = append(out, gap), -1
		}
	}
	return out
}
