package solver

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
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
func ContactForce(p *Problem, before []float64, dt float64, u []float64, e Executor) (Force, error) {
	if err := p.validateHead(); err != nil {
		return Force{}, err
	}
	if len(u) != p.Points() || before != nil && len(before) != p.Points() {
		return Force{}, p.refuse("%d values to find the force at; the grid has %d points", len(u), p.Points())
	}
	if e == nil {
		e = Sequential{}
	}
	out := Force{Values: make([]float64, len(u))}
	j := judgement{p: p, before: before, dt: dt, u: u}
	boxes := j.boxes()
	errs, sums := make([]error, len(boxes)), make([]forces, len(boxes))
	e.For(len(boxes), func(i int) { errs[i] = j.force(boxes[i], out.Values, &sums[i]) })
	var total forces
	for i, err := range errs {
		if err != nil {
			return Force{}, err
		}
		total.merge(&sums[i])
	}
	all := total.totals(p)
	out.Lower, out.Upper = all[0], all[1]
	return out, nil
}

// forces adds up the force on the lower and on the upper obstacle.
type forces [2]kernel.Sum

func (f *forces) merge(o *forces) {
	f[0].Merge(&o[0])
	f[1].Merge(&o[1])
}

// totals are the sums, each point standing for its cell.
func (f *forces) totals(p *Problem) (out [2]float64) {
	for i := range out {
		out[i] = f[i].Float64()
		for a := range p.Dimension {
			out[i] *= p.Spacing(a)
		}
	}
	return out
}

// force writes a slab of the force.
func (j *judgement) force(box Box, dst []float64, sums *forces) error {
	b, err := newBlock(j.p, box)
	if err != nil {
		return err
	}
	j.remember(b)
	s, err := b.sweep(1)
	if err != nil {
		return err
	}
	v := make([]float64, b.layout.Len())
	if err = b.fillReference(v); err != nil {
		return err
	}
	j.fill(b, v)
	b.force(s, v, dst[box.Lo[0]+j.p.N[0]*(box.Lo[1]+j.p.N[1]*box.Lo[2]):], sums)
	return nil
}

// force adds the force at padded values v to sums, and writes it where dst is not nil. A
// point where both obstacles meet counts with the lower one.
func (b *block) force(s *kernel.Sweep, v, dst []float64, sums *forces) {
	if b.problem.Obstacle == nil && b.problem.Upper == nil {
		return
	}
	au := make([]float64, len(v))
	s.Apply(au, v, b.layout.Interior())
	d := 0
	b.eachRow(func(row []float64, first [3]int) {
		image := au[b.index(first):][:len(row)]
		for i, u := range row {
			which := -1
			switch u {
			case b.lower.At(d):
				which = 0
			case b.upper.At(d):
				which = 1
			}
			if which >= 0 {
				lambda := image[i] - b.source.At(d)
				sums[which].Add(lambda)
				if dst != nil {
					dst[d] = lambda
				}
			}
			d++
		}
	}, v, false)
}

// boxes are the slabs that are judged at a time.
func (j *judgement) boxes() []Box {
	p := j.p
	slow := p.Dimension - 1
	thick := max(1, evaluationPoints/(p.Points()/p.N[slow]))
	boxes := make([]Box, (p.N[slow]+thick-1)/thick)
	for i := range boxes {
		boxes[i] = Box{Hi: p.N}
		boxes[i].Lo[slow], boxes[i].Hi[slow] = i*thick, min((i+1)*thick, p.N[slow])
	}
	return boxes
}

// remember adds what a time step began with to the source of a slab: slabs are whole
// planes of the slowest axis.
func (j *judgement) remember(b *block) {
	if j.before == nil {
		return
	}
	slow := j.p.Dimension - 1
	plane := j.p.Points() / j.p.N[slow]
	b.remember(j.before[plane*b.box.Lo[slow]:plane*b.box.Hi[slow]], j.dt)
}

// fill copies the vector's values at a slab's points and beside them to v; boundary data
// are there.
func (j *judgement) fill(b *block, v []float64) {
	p := j.p
	at := func(idx [3]int) int { return idx[0] - 1 + p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1)) }
	b.eachRow(func(row []float64, first [3]int) { copy(row, j.u[at(first):]) }, v, false)
	b.eachGhost(func(i int, idx [3]int) bool {
		for a := range p.Dimension {
			if idx[a] == 0 || idx[a] == p.N[a]+1 {
				return true
			}
		}
		v[i] = j.u[at(idx)]
		return true
	})
}
