package fas

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// guard damps, and then suspends, the corrections of the coarse grids at a peer whose residual does not fall. Each time
// the factor of the corrections is halved, maxHalvings times; after that, the peer relaxes only, twice as long each time and
// in the end for good. A residual that grows suspends corrections at once. Relaxation alone converges for every M-matrix,
// with values of any age, so every run ends.
//
// The residual is that of the own box after the first relaxation of a step. It falls between two arrivals and jumps at an
// arrival, so only the largest values of windows are compared. A window lasts several times as long as values travel, and
// until all neighbours have sent something: while one pauses, the residual stands still for no other reason.
type guard struct {
	limit    float64 // largest residual that does not end a window
	largest  float64 // of the run
	peak     float64 // in this window
	previous float64 // in the previous window; 0: none
	steps    int     // in this window
	halvings int     // of the factor of corrections
	rest     int     // steps left without corrections
	trips    int     // suspensions
}

const (
	guardWindow      = 8  // least length of a window in steps
	maxWindow        = 64 // largest
	travelsPerWindow = 4
	windowReduction  = 0.9   // by which the peak must fall from window to window
	guardGrowth      = 10    // largest factor between the first residual and any other
	negligible       = 1e-10 // fraction of the largest residual below which rounding prevails
	maxHalvings      = 3
	firstRest        = 8
	maxTrips         = 6
)

// observe records the residual of a step. Values travel for as many steps as given, and since silent steps a neighbour has not
// sent any. It reports whether the step must do without corrections.
func (g *guard) observe(size float64, travel, silent int) bool {
	if g.trips > maxTrips {
		return true
	}
	if g.rest > 0 {
		g.rest--
		return true
	}
	if g.limit == 0 {
		g.limit = guardGrowth * size
	}
	grown := !(size <= g.limit)
	if kernel.Finite(size) {
		g.largest = max(g.largest, size)
	}
	g.peak = max(g.peak, size)
	g.steps++
	if !grown && (g.steps < max(guardWindow, min(maxWindow, travelsPerWindow*travel)) || silent >= g.steps) {
		return false
	}
	stalled := g.previous > 0 && !(g.peak <= windowReduction*g.previous) && !(g.peak <= negligible*g.largest)
	g.previous, g.peak = g.peak, 0
	g.steps = 0
	if !grown && !stalled {
		return false
	}
	damped := g.halvings < maxHalvings
	if g.previous = 0; damped {
		g.halvings++
	}
	if damped && !grown {
		return false
	}
	g.trips++
	g.rest = firstRest<<(g.trips-1) - 1
	return true
}

// factor returns the factor of corrections.
func (g *guard) factor() float64 { return math.Ldexp(1, -g.halvings) }

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
