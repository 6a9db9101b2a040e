package richardson

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// load is what the peers on one side of a cut can do together.
type load struct {
	known   bool
	speed   float64 // planes a second, all of them
	longest float64 // seconds that the slowest sweep among those takes who could give planes
	planes  int     // of the neighbour at the cut
}

// differs tells whether a neighbour should hear of c after having heard of l.
func (l load) changed(c load) bool {
	if !l.known || l.planes != c.planes {
		return true
	}
	far := func(a, b float64) bool { return math.Abs(a-b) > loadChange*math.Max(math.Abs(a), math.Abs(b)) }
	return far(l.speed, c.speed) || far(l.longest, c.longest)
}

// join adds a peer to what lies beyond it.
func (l load) add(c load) load {
	return load{known: l.known && c.known, speed: l.speed + c.speed, longest: math.Max(l.longest, c.longest), planes: c.planes}
}

const (
	loadChange = 0.05
	// imbalance of the longest sweep against an even one below which nothing moves.
	imbalance = 0.15
	// leastPart of a peer's planes is worth moving, and a whole plane: what is less than
	// that only changes who has the remainder of planes by peers.
	minMovedPart = 0.05
	// defaultWindow is Config.BalanceWindow where it is 0.
	defaultWindow = 50 * time.Millisecond
	// moveSweeps is what a move costs, in sweeps of the slowest peer, beside moveSeconds.
	moveSweeps  = 4
	moveSeconds = 1e-3
	// leadSweeps are between a proposal and the iterate from which it holds, so that the
	// answer is there in time; restSweeps and restWindows of the meter are between two
	// proposals at a cut, twice as many for every time that planes go back again.
	proposalLead   = 4
	backOffSweeps  = 24
	backOffWindows = 3
	maxBackOff     = 256
	// maxMoveBytes bounds what one move carries, unless it is a single plane.
	maxMoveBytes = 32 << 20
)

// balance is what decides on planes across one cut, seen by the peer below it.
type balance struct {
	planes       int               // of the grid
	cut          int               // planes below the cut
	below, above load              // own planes and those of the neighbour in load.planes
	sweeps       iterate.Iteration // done so far: as many are expected to come
}

// move is how many planes should go up (negative: down), so that every sweep takes as
// long. Where a peer cannot give all that, or the other not take it, less moves. It is
// 0 while the slowest sweep is not much longer than it had to be, while what would be
// gained over as many sweeps as have been is less than the move costs, or where it is
// other cuts that should move.
func (b balance) move() int {
	speed := b.below.speed + b.above.speed
	if !b.below.known || !b.above.known || !(speed > 0) || math.IsInf(speed, 1) {
		return 0
	}
	even := float64(b.planes) / speed
	longest := math.Max(b.below.longest, b.above.longest)
	if !(longest > (1+imbalance)*even) || (longest-even)*float64(b.sweeps) < moveSweeps*longest+moveSeconds {
		return 0
	}
	excess := float64(b.cut) - float64(b.planes)*b.below.speed/speed
	if math.Abs(excess) < math.Max(1, minMovedPart*float64(min(b.below.planes, b.above.planes))) {
		return 0
	}
	m := int(math.Round(excess))
	return max(min(m, b.below.planes-1), 1-b.above.planes)
}

// ErrBalance is wrapped by what Balanceable says.
var ErrBalance = errors.New("solver: planes cannot be moved between the peers of this run")

// Balanceable tells why Config.Balance would move nothing; nil if it would.
func Balanceable(c *problem.Config) error {
	if name := c.Method.Name; name != "" && name != problem.Richardson {
		return fmt.Errorf("%w: the method is %s, planes move with %s only", ErrBalance, name, problem.Richardson)
	}
	slow := c.Problem.Dimension - 1
	for a, parts := range c.Partition.Parts() {
		if a != slow && parts > 1 {
			return fmt.Errorf("%w: they have boxes, planes move between slabs only", ErrBalance)
		}
	}
	switch {
	case c.Partition.Parts()[slow] < 2:
		return fmt.Errorf("%w: there is one peer", ErrBalance)
	case c.Order == problem.InTurn && c.Scheme.Lockstep():
		return fmt.Errorf("%w: relaxed in turn, a synchronous answer depends on the partition", ErrBalance)
	}
	return nil
}

// MostPlanes bounds the planes that a rank may ever hold with Config.Balance, and so
// its memory: twice its share or an even one, whichever is larger.
func MostPlanes(c *problem.Config, r iterate.Rank) int {
	slow := c.Problem.Dimension - 1
	n, peers := c.Problem.N[slow], c.Partition.Peers()
	own := c.Partition.Box(r).Size()[slow]
	return min(n-(peers-1), 2*max(own, (n+peers-1)/peers))
}
