package verify

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Enclosure are two vectors between which the discrete solution of a stationary problem
// lies, for certain: rounding is allowed for everywhere.
type Enclosure struct {
	Lower, Upper []float64  // interior values [z][y][x]
	Width        float64    // largest distance of the two
	Sum          [2]float64 // of Evaluation.Sum
	// Contact is how many points are in contact with the lower obstacle for certain, and
	// how many may be.
	Contact [2]int
	// UpperContact is the same for the upper obstacle.
	UpperContact [2]int
	Sweeps       int // of relaxation that improved the first two vectors
}

// enclosureVisit is how many sweeps a slab gets at a time.
const sweepsPerVisit = 8

// Enclose encloses the solution by u ± ε·w, w and ε being those of the error bound of
// judged, the evaluation of u; it must have one. Then both are relaxed: T(v)_i = P((f +
// Σ a_ij v_j)/a_ii) does not decrease with v where A is an M-matrix, so that u* = T(u*)
// ≤ T(v) for any v ≥ u*, whatever the order of the points (Spiteri and Chau 2002); and a
// point where T(upper) is φ is in contact for certain. Every point gets sweeps
// relaxations; memory is that of the two vectors.
func Enclose(p *problem.Problem, u []float64, judged *Evaluation, sweeps int, e problem.Executor) (Enclosure, error) {
	c := &judged.Certificate
	switch {
	case p.Evolution != nil:
		return Enclosure{}, p.Refuse("it is nonstationary: errors of earlier time steps are not enclosed")
	case len(u) != p.Points() || sweeps < 0:
		return Enclosure{}, p.Refuse("%d values to enclose with %d sweeps; the grid has %d points", len(u), sweeps, p.Points())
	case c.Why != "" || c.w == nil:
		return Enclosure{}, p.Refuse("it has no error bound, so nothing to enclose the solution with: %s", c.Why)
	}
	if e == nil {
		e = problem.Sequential{}
	}
	p, in, err := p.InRange()
	if err != nil {
		return Enclosure{}, err
	}
	u = in.Copied(u)
	n := &encloser{p: p, u: u, certificate: c, Enclosure: Enclosure{
		Lower: make([]float64, len(u)), Upper: make([]float64, len(u)), Sweeps: sweeps,
	}}
	err = n.eachSlab(e, n.begin)
	for done := 0; done < sweeps && err == nil; done += sweepsPerVisit {
		n.sweeps = min(sweepsPerVisit, sweeps-done)
		err = n.eachSlab(e, n.improve)
	}
	if err == nil {
		err = n.finish()
	}
	if err == nil && in.Scale != 0 {
		n.unscale(-in.Scale)
	}
	return n.Enclosure, err
}

// unscale multiplies the enclosure by 2^k, rounding outwards what is no longer exact.
func (n *encloser) unscale(k problem.Scale) {
	for i := range n.Lower {
		n.Lower[i], n.Upper[i] = k.Outward(n.Lower[i], -1), k.Outward(n.Upper[i], 1)
	}
	n.Width = k.Outward(n.Width, 1)
	n.Sum = [2]float64{k.Outward(n.Sum[0], -1), k.Outward(n.Sum[1], 1)}
}

type encloser struct {
	Enclosure
	p           *problem.Problem
	u           []float64
	certificate *Certificate
	sweeps      int // of a visit
}

// eachSlab visits every other slab, and then the others, which read the first ones'.
func (n *encloser) eachSlab(e problem.Executor, visit func(b *problem.Discretization) error) error {
	p := n.p
	slow := p.Dimension - 1
	thick := min(p.N[slow], max(2, evaluationPoints/(p.Points()/p.N[slow])))
	slabs := (p.N[slow] + thick - 1) / thick
	errs := make([]error, slabs)
	for parity := range min(2, slabs) {
		e.For((slabs+1-parity)/2, func(i int) {
			i = 2*i + parity
			box := problem.Box{Hi: p.N}
			box.Lo[slow], box.Hi[slow] = i*thick, min((i+1)*thick, p.N[slow])
			b, err := problem.Discretize(p, box)
			if err == nil {
				err = visit(b)
			}
			errs[i] = err
		})
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// at is where the slab's row begins in a vector of interior values.
func (n *encloser) rowOffset(first [3]int) int {
	return first[0] - 1 + n.p.N[0]*(first[1]-1+n.p.N[1]*(first[2]-1))
}

// begin sets a slab's rows to u ± ε·w, between the obstacles.
func (n *encloser) begin(b *problem.Discretization) error {
	w := make([]float64, b.Layout.Len())
	b.EachRow(func(row []float64, first [3]int) {
		n.certificate.w.fill(row, first)
		from := n.rowOffset(first)
		for i, v := range row {
			d := from + i - n.rowOffset([3]int{b.Box.Lo[0] + 1, b.Box.Lo[1] + 1, b.Box.Lo[2] + 1})
			radius := n.certificate.factor*v*(1+8*kernel.UnitRoundoff) + math.SmallestNonzeroFloat64
			u := n.u[from+i]
			n.Lower[from+i] = b.Project(math.Nextafter(u-radius, math.Inf(-1)), d)
			n.Upper[from+i] = b.Project(math.Nextafter(u+radius, math.Inf(1)), d)
		}
	}, w, false)
	return nil
}

// improve relaxes a slab of both vectors.
func (n *encloser) improve(b *problem.Discretization) error {
	for _, side := range []struct {
		values []float64
		sign   float64
	}{{n.Lower, -1}, {n.Upper, 1}} {
		v := make([]float64, b.Layout.Len())
		if err := n.fill(b, v, side.values); err != nil {
			return err
		}
		// A relaxation computes at most 11 unit round-offs of the row's magnitudes, over
		// the diagonal, from where it should: the source moves by more than that, outwards.
		shifted := shiftedSource(b, side.sign*2*residualRounding(b, v))
		s, err := kernel.New(kernel.Config{
			Layout: b.Layout, Operator: b.Operator, Source: shifted, Lower: b.Lower, Upper: b.Upper, Step: 1,
		})
		if err != nil {
			return err
		}
		for range n.sweeps {
			s.RelaxColour(v, 0, 1, b.Layout.Interior())
			s.RelaxColour(v, 1, 1, b.Layout.Interior())
		}
		b.EachRow(func(row []float64, first [3]int) {
			old := side.values[n.rowOffset(first):][:len(row)]
			for i, x := range row {
				if side.sign*(x-old[i]) < 0 {
					old[i] = x
				}
			}
		}, v, false)
	}
	return nil
}

// shifted is the block's source with a number added.
func shiftedSource(b *problem.Discretization, by float64) kernel.Field {
	if b.Source.Array == nil {
		return kernel.Field{Value: b.Source.Value + by}
	}
	f := kernel.Field{Array: make([]float64, len(b.Source.Array))}
	for i, v := range b.Source.Array {
		f.Array[i] = v + by
	}
	return f
}

// fill copies a slab of a vector, what lies beside it, and boundary data to v.
func (n *encloser) fill(b *problem.Discretization, v, values []float64) error {
	if err := b.FillReference(v); err != nil {
		return err
	}
	j := evaluator{p: n.p, u: values}
	j.fill(b, v)
	return nil
}

// finish reads off what is asked for.
func (n *encloser) finish() error {
	var sums [2]kernel.Sum
	var err error
	p := n.p
	problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool {
		lower, upper := n.Lower[d], n.Upper[d]
		if !(lower <= upper) {
			err = p.Refuse("the enclosure is empty at %v: this is a fault of the program", p.Place(idx))
			return false
		}
		n.Width = max(n.Width, upper-lower)
		sums[0].Add(lower)
		sums[1].Add(upper)
		if p.Obstacle != nil {
			phi := p.Obstacle(p.At(idx[0], idx[1], idx[2]))
			if upper <= phi {
				n.Contact[0]++
			}
			if lower <= phi {
				n.Contact[1]++
			}
		}
		if p.Upper != nil {
			psi := p.Upper(p.At(idx[0], idx[1], idx[2]))
			if lower >= psi {
				n.UpperContact[0]++
			}
			if upper >= psi {
				n.UpperContact[1]++
			}
		}
		return true
	})
	for i, toward := range []float64{math.Inf(-1), math.Inf(1)} {
		n.Sum[i] = sums[i].Float64()
		for a := range p.Dimension {
			n.Sum[i] = math.Nextafter(n.Sum[i]/float64(p.N[a]+1), toward)
		}
	}
	return err
}
