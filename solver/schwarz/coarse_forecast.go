package schwarz

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// coarseForecast tells what relaxation will have left of an error when its correction arrives.
// Peers do not wait for it, and what they have removed themselves must not be removed
// again: without a forecast a correction does harm to every error that is halved on its
// way. It emulates relaxations on the coarse grid, where, too, each peer solves in its
// region with the values around it. How many fit the time between a share and its
// correction, network and old values included, is learnt from what was left of the errors
// before: that is known when the next shares come.
type coarseForecast struct {
	layout        kernel.Layout
	stencil       func(dense int) [kernel.Directions]float64
	boxes         []forecastBox
	states        [maxForecastDepth + 1][]float64 // padded: the error of the last shares, after one relaxation, …
	computed      int                             // states after the first
	predicted     []float64                       // the correction made of them; padded, as all arrays
	hasPrediction bool                            // there is one
	scratch       []float64
	target        []float64
	depth         float64 // relaxations that the next forecast goes forward
	squaredErrors [maxForecastDepth*depthSteps + 1]float64
}

// forecastBox is the part of the coarse grid that a peer owns, and that it solves in.
type forecastBox struct{ own, region kernel.Box }

const (
	maxForecastDepth = 8   // relaxations
	depthSteps       = 4   // steps of the choice between two
	sweepsPerSolve   = 2   // of Gauss–Seidel, there and back, are a peer's solve
	fitDecay         = 0.5 // weight of what was learnt in the round before
)

func newCoarseForecast(run *problem.Config, g *coarseGrid) *coarseForecast {
	f := &coarseForecast{layout: g.layout}
	for i := range f.states {
		f.states[i] = make([]float64, g.layout.Len())
	}
	for _, a := range []*[]float64{&f.predicted, &f.scratch, &f.target} {
		*a = make([]float64, g.layout.Len())
	}
	for r := range run.Partition.Peers() {
		own := run.Partition.Box(iterate.Rank(r))
		f.boxes = append(f.boxes, forecastBox{g.nearestIn(own), g.nearestIn(grown(own, run.Method.Overlap, g.fine))})
	}
	return f
}

// nearestIn is the box of coarse points whose nearest fine points lie in a fine box.
func (g *coarseGrid) nearestIn(b problem.Box) (out kernel.Box) {
	for a := range 3 {
		near := g.axes[a].nearest
		for out.Lo[a] < len(near) && near[out.Lo[a]] < b.Lo[a] {
			out.Lo[a]++
		}
		for out.Hi[a] = out.Lo[a]; out.Hi[a] < len(near) && near[out.Hi[a]] < b.Hi[a]; {
			out.Hi[a]++
		}
	}
	return out
}

// begin forgets, and takes the coarse operator of a run, or of a time step.
func (f *coarseForecast) begin(op *kernel.Operator) {
	f.hasPrediction, f.depth, f.computed = false, 1, 0
	clear(f.squaredErrors[:])
	constant := op.Values
	switch op.Form {
	case kernel.Variable:
		f.stencil = func(dense int) (v [kernel.Directions]float64) {
			for d := range 1 + 2*f.layout.Dim {
				v[d] = op.Arrays[d][dense]
			}
			return v
		}
		return
	case kernel.Isotropic:
		constant[kernel.Center] = op.Diag
		for d := kernel.West; d < kernel.Directions; d++ {
			constant[d] = op.Off
		}
	}
	f.stencil = func(int) [kernel.Directions]float64 { return constant }
}

// forget drops the correction made last, which was taken back: nothing is learnt from it.
func (f *coarseForecast) forget() {
	if f != nil {
		f.hasPrediction = false
	}
}

// relax makes next from cur, of which it keeps the ghosts 0. Where the correction may not
// go anywhere the error stays.
func (f *coarseForecast) relax(next, cur, lower, upper []float64) {
	l := f.layout
	strides := [3]int{1, l.Row, l.Plane}
	solve := func(x, y, z int) {
		d, at := l.Dense(x, y, z), l.Index(x, y, z)
		if lower[d] >= 0 && upper[d] <= 0 {
			return
		}
		v, sum := f.stencil(d), 0.0
		for a := range l.Dim {
			sum += float64(v[kernel.West+2*a]*f.scratch[at-strides[a]]) + float64(v[kernel.East+2*a]*f.scratch[at+strides[a]])
		}
		f.scratch[at] = sum / v[kernel.Center]
	}
	for _, b := range f.boxes {
		copy(f.scratch, cur)
		r := b.region
		for range sweepsPerSolve / 2 {
			eachPoint(r, solve)
			eachPoint(r, func(x, y, z int) { // back
				solve(r.Lo[0]+r.Hi[0]-1-x, r.Lo[1]+r.Hi[1]-1-y, r.Lo[2]+r.Hi[2]-1-z)
			})
		}
		eachPoint(b.own, func(x, y, z int) { next[l.Index(x, y, z)] = f.scratch[l.Index(x, y, z)] })
	}
}

// correct replaces an error, as the newest shares have it, by what will be left of it.
// lower and upper, dense, bound the correction.
func (f *coarseForecast) correct(e, lower, upper []float64) {
	if f.hasPrediction {
		f.fitDepth(e)
	}
	copy(f.states[0], e)
	f.computed = min(int(f.depth)+2, maxForecastDepth)
	for j := range f.computed {
		f.relax(f.states[j+1], f.states[j], lower, upper)
	}
	f.interpolate(e, f.depth)
	copy(f.predicted, e)
	f.hasPrediction = true
}

// between writes the error after a number of relaxations, a fraction included.
func (f *coarseForecast) interpolate(dst []float64, depth float64) {
	j := max(0, min(int(depth), f.computed-1))
	t := depth - float64(j)
	p, q := f.states[j], f.states[j+1]
	for i := range dst {
		dst[i] = p[i] + float64(t*(q[i]-p[i]))
	}
}

// learn finds from the error that is left, e, which depth would have been right. Depths
// beyond what was emulated count as the last one.
func (f *coarseForecast) fitDepth(e []float64) {
	total := 0.0
	for i, v := range e {
		f.target[i] = v + f.predicted[i] // what relaxation alone would have left
		total += float64(f.states[0][i] * f.states[0][i])
	}
	if !(total > 0) {
		return
	}
	best, squares := 0, 0.0
	for k := range f.squaredErrors {
		if k <= f.computed*depthSteps {
			f.interpolate(f.scratch, float64(k)/depthSteps)
			squares = 0
			for i, v := range f.target {
				squares += float64((v - f.scratch[i]) * (v - f.scratch[i]))
			}
		}
		f.squaredErrors[k] = fitDecay*f.squaredErrors[k] + math.Min(squares/total, maxFitError)
		if f.squaredErrors[k] < f.squaredErrors[best] {
			best = k
		}
	}
	f.depth = float64(best) / depthSteps
}

// forecastWorst is the worst that a round may say of a depth: it is to be forgotten soon.
const maxFitError = 4

// points is what a forecast costs, in points relaxed. Its loops take twice as long a point
// as the kernels.
func (f *coarseForecast) workPoints() int {
	n := 0
	for _, b := range f.boxes {
		n += b.region.Points()
	}
	return 2 * sweepsPerSolve * min(int(f.depth)+2, maxForecastDepth) * n
}
