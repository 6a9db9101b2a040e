package schwarz

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// coarseForecast predicts what relaxation will have left of an error when its correction arrives. Peers relax
// while a correction is computed, and what they have removed must not be removed again: without a forecast, a
// correction increases every error that is halved in the meantime. The forecast emulates relaxations on the
// coarse grid, where each peer solves in its region with the values around it. The number of relaxations
// between a share and its correction, including the effects of latency and outdated values, is fitted to the
// errors that remained in earlier rounds, which the next shares reveal.
type coarseForecast struct {
	layout        kernel.Layout
	operator      *kernel.Operator
	boxes         []forecastBox
	states        [maxForecastDepth + 1][]float64 // padded: the error of the last shares, after one relaxation, …
	computed      int                             // states after the first
	predicted     []float64                       // padded: the correction computed from them
	hasPrediction bool                            // there is one
	scratch       []float64
	target        []float64
	depth         float64 // number of relaxations that the next forecast assumes
	squaredErrors [maxForecastDepth*depthSteps + 1]float64
}

// forecastBox is the part of the coarse grid that a peer owns and the region in which it solves.
type forecastBox struct{ own, region kernel.Box }

const (
	maxForecastDepth = 8   // relaxations
	depthSteps       = 4   // steps per relaxation in the choice of the depth
	sweepsPerSolve   = 2   // symmetric Gauss–Seidel sweeps that emulate a peer's solve
	fitDecay         = 0.5 // weight of the previous rounds in the fit
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

// nearestIn returns the box of coarse points whose nearest fine points lie in a fine box.
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

// begin resets the forecast and sets the coarse operator of a run or a time step.
func (f *coarseForecast) begin(op *kernel.Operator) {
	f.operator = op
	f.hasPrediction = false
	f.depth = 1
	f.computed = 0
	clear(f.squaredErrors[:])
}

// forget discards the last correction, which was taken back, so that the fit ignores it.
func (f *coarseForecast) forget() {
	if f != nil {
		f.hasPrediction = false
	}
}

// relax computes next from cur by one relaxation, without changing ghosts. Where the correction is fixed to 0,
// the error is unchanged.
func (f *coarseForecast) relax(next, cur, lower, upper []float64) {
	l := f.layout
	strides := [3]int{1, l.Row, l.Plane}
	solve := func(x, y, z int) {
		op, d, at := f.operator, l.Dense(x, y, z), l.Index(x, y, z)
		if lower[d] >= 0 && upper[d] <= 0 {
			return
		}
		sum := 0.0
		for a := range l.Dim {
			west, east := method.Coefficient(op, kernel.West+2*a, d), method.Coefficient(op, kernel.East+2*a, d)
			sum += float64(west*f.scratch[at-strides[a]]) + float64(east*f.scratch[at+strides[a]])
		}
		f.scratch[at] = sum / method.Coefficient(op, kernel.Center, d)
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

// correct replaces an error, given by the newest shares, by the prediction of what will be left of it. lower
// and upper, dense, bound the correction.
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

// interpolate writes the error after a number of relaxations, which need not be an integer.
func (f *coarseForecast) interpolate(dst []float64, depth float64) {
	j := max(0, min(int(depth), f.computed-1))
	t := depth - float64(j)
	p, q := f.states[j], f.states[j+1]
	for i := range dst {
		dst[i] = p[i] + float64(t*(q[i]-p[i]))
	}
}

// fitDepth fits the depth to the error e that is left. Depths beyond the emulated ones count as the last of
// them.
func (f *coarseForecast) fitDepth(e []float64) {
	total := 0.0
	for i, v := range e {
		f.target[i] = v + f.predicted[i] // the error after relaxation alone
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

// maxFitError bounds the relative error of a round in the fit, so that a poor round is soon forgotten.
const maxFitError = 4

// workPoints returns the cost of a forecast in point relaxations. Its loops take twice as long per point as the
// kernels.
func (f *coarseForecast) workPoints() int {
	n := 0
	for _, b := range f.boxes {
		n += b.region.Points()
	}
	return 2 * sweepsPerSolve * min(int(f.depth)+2, maxForecastDepth) * n
}
