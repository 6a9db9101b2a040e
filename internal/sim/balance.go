package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// drawBalance lets planes move in some runs, in half of them with a peer whose speed changes. It
// draws after everything else, so that the other draws of a seed stay.
func drawBalance(r *rand.Rand, s *Scenario) {
	config := s.config(0, nil)
	if !chance(r, 0.5) || richardson.Balanceable(&config) != nil {
		return
	}
	s.Balance, s.Window = true, time.Nanosecond
	if chance(r, 0.5) {
		s.SpeedChanges = append(s.SpeedChanges, SpeedChange{
			At: time.Duration(r.Int64N(int64(s.FaultsEnd) + 1)), Rank: iterate.Rank(r.IntN(s.Peers())), Slow: pick(r, 1.0, 3, 10,
				30),
		})
	}
}

// checkCover checks that the peers' boxes cover the grid exactly, and within the bounds on moved
// planes.
func (c *Cluster) checkCover() error {
	s := c.Scenario
	given, taken := 0, 0
	for _, p := range c.peers {
		o := p.worker.Outcome()
		given, taken = given+o.PlanesSent, taken+o.PlanesReceived
	}
	if given != taken || given > 0 && !s.Balance {
		return fmt.Errorf("sim: %d planes were given, %d taken", given, taken)
	}
	slow := s.Problem.Dimension - 1
	if !s.Balance {
		slow = -1
	}
	for _, p := range c.peers {
		box, first := p.worker.Box(), s.Partition.Box(p.rank)
		if slow >= 0 {
			low, n := 0, box.Size()[slow]
			if p.rank > 0 {
				low = c.peers[p.rank-1].worker.Box().Hi[slow]
			}
			config := s.config(p.rank, nil)
			if most := richardson.MostPlanes(&config, p.rank); box.Lo[slow] != low || n < 1 || n > most ||
				int(p.rank) == s.Peers()-1 && box.Hi[slow] != s.Problem.N[slow] {
				return fmt.Errorf("sim: rank %d ends with planes %d to %d, the one below it at %d; it may have %d", p.rank,
					box.Lo[slow], box.Hi[slow], low, most)
			}
			box.Lo[slow], box.Hi[slow] = first.Lo[slow], first.Hi[slow]
		}
		if box != first {
			return fmt.Errorf("sim: rank %d ends with box %v instead of %v", p.rank, box, first)
		}
	}
	return nil
}
