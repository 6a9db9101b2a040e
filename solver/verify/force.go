package verify

import (
	"cmp"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Force holds the reaction forces of the obstacles: λ = A·u − f where u is on an obstacle, 0 elsewhere. It is ≥
// 0 on the lower obstacle and ≤ 0 on the upper one, up to the residual.
type Force struct {
	Values       []float64 // per unit of volume (area, length), interior values [z][y][x]
	Lower, Upper float64   // Σλ·h₀·h₁·h₂ over the points on each obstacle
}

// ContactForce returns the force at u, an assembled solution. For a time step, p is the problem of the step
// (AtStep), before the values at its start and dt its length. For a stationary problem before is nil. It works
// chunk by chunk like Evaluate and needs memory for Values only.
func ContactForce(p *problem.Problem, before []float64, dt float64, u []float64, e problem.Executor) (Force, error) {
	p, in, err := p.InRange()
	if err != nil {
		return Force{}, err
	}
	if len(u) != p.Points() || before != nil && len(before) != p.Points() {
		return Force{}, p.Errorf("%d values to find the force at; the grid has %d points", len(u), p.Points())
	}
	e = cmp.Or[problem.Executor](e, problem.Sequential{})
	u, before = in.Scaled(u), in.Scaled(before)
	out := Force{Values: make([]float64, len(u))}
	j := evaluator{p: p, before: before, dt: dt, u: u}
	boxes := j.boxes()
	sums := make([]forces, len(boxes))
	err = j.eachChunk(e, boxes, func(i int, w *chunk) error { return j.force(w, out.Values, &sums[i]) })
	if err != nil {
		return Force{}, err
	}
	var total forces
	for i := range sums {
		total.merge(&sums[i])
	}
	all := total.totals(p)
	k := -in.Scale
	out.Lower, out.Upper = k.Times(all[0]), k.Times(all[1])
	k.Apply(out.Values)
	return out, nil
}

// forces accumulates the forces on the lower and on the upper obstacle.
type forces [2]kernel.Sum

func (f *forces) merge(o *forces) {
	f[0].Merge(&o[0])
	f[1].Merge(&o[1])
}

// totals returns the sums times the volume of a cell.
func (f *forces) totals(p *problem.Problem) (out [2]float64) {
	for i := range out {
		out[i] = f[i].Float64()
		for a := range p.Dimension {
			out[i] *= p.Spacing(a)
		}
	}
	return out
}

// force writes the force on a chunk to dst.
func (j *evaluator) force(w *chunk, dst []float64, sums *forces) error {
	b := &w.Discretization
	j.fill(b, w.v)
	b.EachRowOf(b.Box, func(at, m int, first [3]int) bool {
		d := b.Dense(first)
		phi, psi := w.obstacles(d)
		contact := scanContact(w.sweep.Kernel(), w.words, w.v[at:][:m], phi, psi)
		w.addForce(contact, first, d, dst[j.p.Dense(first):][:m], sums)
		return true
	})
	return nil
}

// addForce adds the force at the points of a row to sums and, if dst is not nil, writes it to dst. t holds the
// points in contact, d is the dense index of the row. A point where both obstacles coincide counts with the
// lower one.
func (w *chunk) addForce(t contactScan, first [3]int, d int, dst []float64, sums *forces) {
	if t.end == 0 || w.Problem.Obstacle == nil && w.Problem.Upper == nil {
		return
	}
	var at kernel.Box
	for a := range at.Lo {
		at.Lo[a] = first[a] - 1 - w.Box.Lo[a]
		at.Hi[a] = at.Lo[a] + 1
	}
	at.Lo[0], at.Hi[0] = t.begin, t.end
	w.sweep.Apply(w.image, w.v, at)
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
	w.sweep.Kernel().AddValues(&sums[0], lower)
}
