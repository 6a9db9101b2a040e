package option

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Critical returns the factor λ of today's prices at which exercise begins if all prices move by the same
// factor: the option is exercised at λ·S₀ and below (put) or above (call). For one asset λ·S₀ is the critical
// price. λ is NaN if no point of the domain with equal factors is exercised. p and u are as for Quote.
//
// Near the exercise boundary u − payoff grows with the square of the distance (smooth pasting), so its square
// root is extrapolated to zero from points that are not exercised.
func (o *Option) Critical(p *problem.Problem, u []float64) (float64, error) {
	f, err := newFrame(o)
	if err != nil {
		return math.NaN(), err
	}
	g, err := newSamples(p, u, f.d)
	if err != nil {
		return math.NaN(), err
	}
	r := newExerciseRay(o, f, g)
	inner, outer, found := r.bracket()
	if !found {
		return math.NaN(), nil
	}
	return math.Exp(r.step * r.root(inner, outer)), nil
}

// root returns the position at which the square root of the gap vanishes, extrapolated from three points at
// some distance inside. Points nearer to the boundary are so close to the payoff that the discretisation
// error dominates; they are used if the ray is too short. The last resort is the middle of the bracket.
func (r *exerciseRay) root(inner, outer int) float64 {
	for apart := rootSpacing; apart > 0; apart-- {
		if s, ok := r.extrapolate(inner, (inner-outer)*apart); ok && math.Abs(s-float64(outer)) <= maxRootOffset {
			return s
		}
	}
	return float64(inner+outer) / 2
}

// extrapolate returns the position at gap 0 of the parabola that gives the position as a function of the gap's
// square root. It passes through three points, which are apart steps from each other and from first.
func (r *exerciseRay) extrapolate(first, apart int) (float64, bool) {
	var k, g [3]float64
	for i := range k {
		at := first + apart*(i+1)
		if !r.inside(at) || !(r.samples.p.Obstacle(r.at(at)) > 0) {
			return 0, false
		}
		k[i], g[i] = float64(at), math.Sqrt(r.gap(at))
	}
	if !(g[0] > 0 && g[1] > g[0] && g[2] > g[1]) {
		return 0, false
	}
	return float64(k[0]*g[1]*g[2])/((g[0]-g[1])*(g[0]-g[2])) +
		float64(k[1]*g[0]*g[2])/((g[1]-g[0])*(g[1]-g[2])) +
		float64(k[2]*g[0]*g[1])/((g[2]-g[0])*(g[2]-g[1])), true
}

const (
	rootSpacing   = 2 // steps between the points that root uses
	maxRootOffset = 2 // largest accepted distance of the root from the bracket in steps
)

// exerciseRay samples u − payoff at y = k·step·direction for whole numbers k.
type exerciseRay struct {
	samples   *samples
	direction problem.Point
	step      float64 // step of log λ
	outward   int     // sign of k towards the exercise region
}

func newExerciseRay(o *Option, f *frame, g *samples) *exerciseRay {
	r := &exerciseRay{samples: g, direction: f.ray(), step: math.Inf(1), outward: -1}
	if o.Payoff == Call {
		r.outward = 1
	}
	for a := range f.d {
		if v := math.Abs(r.direction[a]); v > 0 {
			r.step = min(r.step, g.p.Spacing(a)/v)
		}
	}
	return r
}

// bracket returns neighbouring samples of which the outer one is exercised and the inner one is not.
func (r *exerciseRay) bracket() (inner, outer int, found bool) {
	if !r.inside(0) {
		return 0, 0, false
	}
	exercised, step := r.exercised(0), r.outward
	if exercised { // the boundary lies inwards
		step = -step
	}
	for k := step; r.inside(k); k += step {
		if r.exercised(k) == exercised {
			continue
		}
		if exercised {
			return k, k - step, true
		}
		return k - step, k, true
	}
	return 0, 0, false
}

func (r *exerciseRay) at(k int) (y problem.Point) {
	for a, v := range r.direction {
		y[a] = float64(k) * r.step * v
	}
	return y
}

// inside reports whether sample k lies in an interior cell of the grid.
func (r *exerciseRay) inside(k int) bool {
	p := r.samples.p
	y := r.at(k)
	for a := range p.Dimension {
		if y[a] <= p.Lo[a]+p.Spacing(a) || y[a] >= p.Hi[a]-p.Spacing(a) {
			return false
		}
	}
	return true
}

func (r *exerciseRay) exercised(k int) bool {
	return r.gap(k) <= 0 && r.samples.p.Obstacle(r.at(k)) > 0
}

// gap returns u − payoff, multilinear between grid points. It is 0 only if the whole cell is in contact.
func (r *exerciseRay) gap(k int) float64 {
	p, y := r.samples.p, r.at(k)
	var base [3]int
	var share [3]float64
	for a := range p.Dimension {
		c := float64(Center(p.N[a])) + y[a]/p.Spacing(a)
		whole := math.Floor(c + alignment)
		base[a], share[a] = int(whole), max(c-whole, 0)
		if share[a] < alignment {
			share[a] = 0
		}
		base[a] = min(max(base[a], 0), p.N[a])
	}
	sum := 0.0
	for corner := range 1 << p.Dimension {
		idx, w := [3]int{1, 1, 1}, 1.0
		for a := range p.Dimension {
			if idx[a] = base[a] + corner>>a&1; corner>>a&1 == 1 {
				w *= share[a]
			} else {
				w *= 1 - share[a]
			}
		}
		if w > 0 {
			sum += w * max(r.samples.p.ValueAt(r.samples.u, idx)-p.Obstacle(p.At(idx[0], idx[1], idx[2])), 0)
		}
	}
	return sum
}

// alignment is the rounding tolerance for samples at grid points, in spacings.
const alignment = 1e-9
