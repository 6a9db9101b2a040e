package verify

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Force is what the obstacles press back with: λ = A·u − f where u is on an obstacle, 0
// elsewhere. It is ≥ 0 on the lower one and ≤ 0 on the upper one, up to the residual.
type Force struct {
	Values       []float64 // per unit of volume (area, length), interior values [z][y][x]
	Lower, Upper float64   // Σλ·h₀·h₁·h₂ over the points on each obstacle: the total
}

// ContactForce is the force at u, an assembled solution. Of a nonstationary problem p is
// that of the step (AtStep) and before the end of the step before it, dt long; else before
// is nil. It goes slab by slab as Evaluate does; what it needs besides is Values.
func ContactForce(p *problem.Problem, before []float64, dt float64, u []float64, e problem.Executor) (Force, error) {
	p, in, err := p.InRange()
	if err != nil {
		return Force{}, err
	}
	if len(u) != p.Points() || before != nil && len(before) != p.Points() {
		return Force{}, p.Refuse("%d values to find the force at; the grid has %d points", len(u), p.Points())
	}
	if e == nil {
		e = problem.Sequential{}
	}
	u, before = in.Copied(u), in.Copied(before)
	out := Force{Values: make([]float64, len(u))}
	j := evaluator{p: p, before: before, dt: dt, u: u}
	boxes := j.boxes()
	errs, sums := make([]error, len(boxes)), make([]forces, len(boxes))
	j.eachChunk(e, boxes, func(i int, w *chunk) error { return j.force(w, out.Values, &sums[i]) }, func(i int, err error) { errs[i] = err })
	var total forces
	for i, err := range errs {
		if err != nil {
			return Force{}, err
		}
		total.merge(&sums[i])
	}
	all := total.totals(p)
	k := -in.Scale
	out.Lower, out.Upper = k.Times(all[0]), k.Times(all[1])
	k.Apply(out.Values)
	return out, nil
}

// forces adds up the force on the lower and on the upper obstacle.
type forces [2]kernel.Sum

func (f *forces) merge(o *forces) {
	f[0].Merge(&o[0])
	f[1].Merge(&o[1])
}

// totals are the sums, each point standing for its cell.
func (f *forces) totals(p *problem.Problem) (out [2]float64) {
	for i := range out {
		out[i] = f[i].Float64()
		for a := range p.Dimension {
			out[i] *= p.Spacing(a)
		}
	}
	return out
}

// force writes a slab of the force.
func (j *evaluator) force(w *chunk, dst []float64, sums *forces) error {
	b := &w.Discretization
	stepper, err := b.Sweep(1)
	if err != nil {
		return err
	}
	if err = b.FillReference(w.v); err != nil {
		return err
	}
	j.fill(b, w.v)
	b.EachRowOf(b.Box, func(at, m int, first [3]int) bool {
		d := b.Dense(first)
		phi, psi := w.obstacles(d)
		row := problem.Box{Lo: [3]int{first[0] - 1, first[1] - 1, first[2] - 1}}
		w.addForce(stepper, scanContact(stepper.Kernel(), w.words, w.v[at:][:m], phi, psi), first, d, dst[j.dense(row):][:m], sums)
		return true
	})
	return nil
}

// force adds the force at the points of a row to sums, and writes it where dst, for the
// row's points, is not nil; t are the points in contact, d is the dense index of the row.
// A point where both obstacles meet counts with the lower one.
func (w *chunk) addForce(s *kernel.Sweep, t contactScan, first [3]int, d int, dst []float64, sums *forces) {
	if t.end == 0 || w.Problem.Obstacle == nil && w.Problem.Upper == nil {
		return
	}
	var at kernel.Box
	for a := range at.Lo {
		at.Lo[a] = first[a] - 1 - w.Box.Lo[a]
		at.Hi[a] = at.Lo[a] + 1
	}
	at.Lo[0], at.Hi[0] = t.begin, t.end
	s.Apply(w.image, w.v, at)
	phi, psi := w.obstacles(d)
	i, lower := w.Index(first), w.lambda[:0]
	for x := t.begin; x < t.end; x++ {
		u := w.v[i+x]
		if u != phi[x] && u != psi[x] {
			continue
		}
		lambda := w.image[i+x] - w.Source.At(d+x)
		if u == phi[x] {
			lower = append(lower, lambda)
		} else {
			sums[1].Add(lambda)
		}
		if dst != nil {
			dst[x] = lambda
		}
	}
	s.Kernel().AddValues(&sums[0], lower)
}
