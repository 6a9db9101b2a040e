package fas

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// guard suspends the corrections of the coarse grids at a peer whose residual does not fall. Relaxation alone converges for
// every M-matrix, with values of any age. Each suspension is twice as long as the one before: if corrections never help,
// relaxation takes over.
//
// The residual is that of the own box after the first relaxation of a step. It falls between two arrivals and jumps at an
// arrival, so only the largest values of windows are compared. A window lasts several times as long as values travel.
type guard struct {
	first    float64 // of the run
	largest  float64 // of the run
	peak     float64 // in this window
	previous float64 // in the previous window; 0: none
	steps    int     // in this window
	rest     int     // steps left without corrections
	next     int     // length of the next suspension
	trips    int
}

const (
	guardWindow     = 8  // least length of a window in steps
	maxWindow       = 64 // largest; values of a slow peer seem the older the longer the run lasts
	agesPerWindow   = 4
	windowReduction = 0.9   // by which the peak must fall from window to window
	guardGrowth     = 10    // largest factor between the first residual and any other
	negligible      = 1e-10 // fraction of the largest residual below which rounding prevails
	firstRest       = 8
	maxRest         = 1 << 12
)

// observe records the residual of a step, which read values up to age steps old. It reports whether the step must do
// without corrections.
func (g *guard) observe(size float64, age int) bool {
	if g.rest > 0 {
		g.rest--
		return true
	}
	if g.first == 0 {
		g.first = size
	}
	grown := !(size <= guardGrowth*g.first)
	if kernel.Finite(size) {
		g.largest = max(g.largest, size)
	}
	g.peak = max(g.peak, size)
	if g.steps++; !grown && g.steps < max(guardWindow, min(maxWindow, agesPerWindow*age)) {
		return false
	}
	stalled := g.previous > 0 && !(g.peak <= windowReduction*g.previous) && !(g.peak <= negligible*g.largest)
	g.previous, g.peak = g.peak, 0
	g.steps = 0
	if !grown && !stalled {
		return false
	}
	g.trips++
	g.next = min(maxRest, max(firstRest, 2*g.next))
	g.rest, g.previous = g.next-1, 0
	return true
}

// residual returns ‖r‖₂ of the points of b on level 0, of which the level holds the residual.
func (v *levels) residual(b kernel.Box) float64 {
	sum, l := 0.0, v.parts[0].Layout
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for _, r := range v.grids[0].Residual[l.Index(b.Lo[0], y, z):][:b.Hi[0]-b.Lo[0]] {
				sum += float64(r * r)
			}
		}
	}
	return math.Sqrt(sum)
}

// relaxOnly is phaseUp without corrections. The factor is 1: over-relaxation need not converge if A is not symmetric.
func (v *levels) relaxOnly() {
	for range restSweeps {
		for colour := range 2 {
			v.grids[0].Relax(colour, 1, v.parts[0].inner)
		}
	}
}

// restSweeps is the number of sweeps of a step without corrections, which then costs about as much as another.
const restSweeps = 4

// restWork returns the cost of relaxOnly in point relaxations.
func (v *levels) restWork() int { return restSweeps * v.parts[0].inner.Points() }
