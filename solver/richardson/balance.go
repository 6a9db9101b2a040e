package richardson

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// load is the combined speed of the peers on one side of a cut.
type load struct {
	known   bool
	speed   float64 // planes per second of all peers
	longest float64 // seconds of the slowest sweep among the peers with more than one plane
	planes  int     // of the peer at the cut
}

// changed reports whether c differs enough from l, the load sent last, to be sent.
func (l load) changed(c load) bool {
	if !l.known || l.planes != c.planes {
		return true
	}
	far := func(a, b float64) bool { return math.Abs(a-b) > loadChange*max(math.Abs(a), math.Abs(b)) }
	return far(l.speed, c.speed) || far(l.longest, c.longest)
}

// add returns the load of the peers of l and c, where c is the peer at the cut.
func (l load) add(c load) load {
	return load{
		known: l.known && c.known, speed: l.speed + c.speed, longest: max(l.longest, c.longest), planes: c.planes,
	}
}

const (
	// loadChange is the relative change at which a load is sent again.
	loadChange = 0.05
	// imbalance is the relative excess of the longest sweep over an even one below which no plane moves.
	imbalance = 0.15
	// minMovedPart is the smallest part of a peer's planes that is moved, and at least one plane. Smaller
	// moves would only change which peer has the remainder of the division.
	minMovedPart = 0.05
	// defaultWindow is used when Config.BalanceWindow is 0.
	defaultWindow = 50 * time.Millisecond
	// The cost of a move is moveSweeps sweeps of the slowest peer plus moveSeconds.
	moveSweeps  = 4
	moveSeconds = 1e-3
	// proposalLead is the number of sweeps between a proposal and the iterate at which the move is made, so
	// that the answer arrives in time. backOffSweeps sweeps and backOffWindows windows of the speed sampler
	// lie between two proposals at a cut. Both double each time that the direction of moves changes.
	proposalLead   = 4
	backOffSweeps  = 24
	backOffWindows = 3
	maxBackOff     = 256
	// maxMoveBytes bounds what one move carries, unless it is a single plane.
	maxMoveBytes = 32 << 20
)

// balance decides on moves across one cut, at the peer below it.
type balance struct {
	planes       int               // of the grid
	cut          int               // planes below the cut
	below, above load              // load.planes are those of the two peers at the cut
	sweeps       iterate.Iteration // made so far; as many are expected to follow
}

// move returns the number of planes to move up, negative for down, so that all sweeps take the same time. It
// is limited to the planes that the peers at the cut can send. It is 0 if the slowest sweep is not much
// longer than an even one, if the expected gain is smaller than the cost of a move, or if the imbalance
// is at other cuts.
func (b balance) move() int {
	speed := b.below.speed + b.above.speed
	if !b.below.known || !b.above.known || !(speed > 0) || math.IsInf(speed, 1) {
		return 0
	}
	even := float64(b.planes) / speed
	longest := max(b.below.longest, b.above.longest)
	if !(longest > (1+imbalance)*even) || (longest-even)*float64(b.sweeps) < moveSweeps*longest+moveSeconds {
		return 0
	}
	excess := float64(b.cut) - float64(b.planes)*b.below.speed/speed
	if math.Abs(excess) < max(1, minMovedPart*float64(min(b.below.planes, b.above.planes))) {
		return 0
	}
	m := int(math.Round(excess))
	return max(min(m, b.below.planes-1), 1-b.above.planes)
}

// ErrBalance is wrapped by the errors of Balanceable.
var ErrBalance = errors.New("richardson: planes cannot be moved between the peers of this run")

// Balanceable returns an error with the reason why Config.Balance has no effect, nil if it has one.
func Balanceable(c *problem.Config) error {
	if name := c.Method.Name; name != "" && name != problem.Richardson {
		return fmt.Errorf("%w: the method is %s; planes move with %s only", ErrBalance, name, problem.Richardson)
	}
	slow := c.Problem.Dimension - 1
	for a, parts := range c.Partition.Parts() {
		if a != slow && parts > 1 {
			return fmt.Errorf("%w: the peers have boxes; planes move between slabs only", ErrBalance)
		}
	}
	switch {
	case c.Partition.Parts()[slow] < 2:
		return fmt.Errorf("%w: there is one peer", ErrBalance)
	case c.Order == problem.InTurn && c.Scheme.Lockstep():
		return fmt.Errorf("%w: with the order in-turn the synchronous answer depends on the partition", ErrBalance)
	}
	return nil
}

// MostPlanes returns the largest number of planes that a rank may have with Config.Balance, which bounds its
// memory: twice its initial number or twice an even share, whichever is larger.
func MostPlanes(c *problem.Config, r iterate.Rank) int {
	slow := c.Problem.Dimension - 1
	n, peers := c.Problem.N[slow], c.Partition.Peers()
	own := c.Partition.Box(r).Size()[slow]
	return min(n-(peers-1), 2*max(own, (n+peers-1)/peers))
}
