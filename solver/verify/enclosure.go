package verify

import (
	"cmp"
	"context"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Enclosure holds two vectors that enclose the discrete solution of a stationary problem, rounding included.
type Enclosure struct {
	Lower, Upper []float64  // interior values [z][y][x]
	Width        float64    // largest difference of the two
	Sum          [2]float64 // bounds of Evaluation.Sum
	// Contact holds the number of points that are proved to be in contact with the lower obstacle, and the number
	// of points that may be.
	Contact [2]int
	// UpperContact is Contact for the upper obstacle.
	UpperContact [2]int
	Sweeps       int // relaxation sweeps that narrowed the enclosure
}

// sweepsPerVisit is the number of sweeps over a slab before the next one is visited.
const sweepsPerVisit = 8

// Enclose encloses the solution between u − ε·w and u + ε·w, where judged, the evaluation of u, provides w and
// ε. It returns an error if judged has no error bound. Both vectors are then relaxed: T(v)_i = P((f + Σ a_ij
// v_j)/a_ii) is non-decreasing in v if A is an M-matrix, so u* = T(u*) ≤ T(v) for any v ≥ u*, in any order of
// the points (Spiteri and Chau 2002). A point where T(upper) equals φ is proved to be in contact. Every point
// is relaxed sweeps times. The memory is that of the two vectors. After the end of ctx, Enclose soon returns its error.
func Enclose(
	ctx context.Context, p *problem.Problem, u []float64, judged *Evaluation, sweeps int, e problem.Executor,
) (Enclosure, error) {
	c := &judged.Certificate
	switch {
	case p.Evolution != nil:
		return Enclosure{}, p.Errorf("it is nonstationary; the errors of earlier time steps cannot be enclosed")
	case len(u) != p.Points() || sweeps < 0:
		return Enclosure{}, p.Errorf("%d values to enclose with %d sweeps; the grid has %d points", len(u), sweeps,
			p.Points())
	case c.Why != "" || c.w == nil:
		return Enclosure{}, p.Errorf("the evaluation has no error bound, which an enclosure needs: %s", c.Why)
	}
	e = cmp.Or[problem.Executor](e, problem.Sequential{})
	p, in, err := p.InRange()
	if err != nil {
		return Enclosure{}, err
	}
	u = in.Scaled(u)
	n := &encloser{p: p, u: u, certificate: c, Enclosure: Enclosure{
		Lower: make([]float64, len(u)), Upper: make([]float64, len(u)), Sweeps: sweeps,
	}}
	err = n.eachSlab(ctx, e, n.begin)
	for done := 0; done < sweeps && err == nil; done += sweepsPerVisit {
		n.sweeps = min(sweepsPerVisit, sweeps-done)
		err = n.eachSlab(ctx, e, n.improve)
	}
	if err == nil {
		err = n.finish(ctx)
	}
	if err == nil && in.Scale != 0 {
		n.unscale(-in.Scale)
	}
	return n.Enclosure, err
}

// unscale multiplies the enclosure by 2^k, rounded outwards where the product is not exact.
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
	sweeps      int // per visit
}

// eachSlab visits every other slab and then the remaining ones, which read the values of the first.
func (n *encloser) eachSlab(
	ctx context.Context, e problem.Executor, visit func(b *problem.Discretization) error,
) error {
	p := n.p
	slow := p.Dimension - 1
	thick := min(p.N[slow], max(2, evaluationPoints/(p.Points()/p.N[slow])))
	slabs := (p.N[slow] + thick - 1) / thick
	errs := make([]error, slabs)
	for parity := range min(2, slabs) {
		e.For((slabs+1-parity)/2, func(i int) {
			i = 2*i + parity
			if errs[i] = ctx.Err(); errs[i] != nil {
				return
			}
			box := problem.Box{Hi: p.N}
			box.Lo[slow], box.Hi[slow] = i*thick, min((i+1)*thick, p.N[slow])
			b, err := problem.Discretize(p, box)
			if err == nil {
				err = visit(b)
			}
			errs[i] = err
		})
	}
	return cmp.Or(errs...)
}

// begin sets a slab's rows to u ± ε·w, projected between the obstacles.
func (n *encloser) begin(b *problem.Discretization) error {
	row := make([]float64, b.Layout.N[0])
	b.EachRowOf(b.Box, func(_, _ int, first [3]int) bool {
		n.certificate.w.fill(row, first)
		from, d := n.p.Dense(first), b.Dense(first)
		for i, v := range row {
			radius := n.certificate.factor*v*(1+8*kernel.UnitRoundoff) + math.SmallestNonzeroFloat64
			u := n.u[from+i]
			n.Lower[from+i] = b.Project(math.Nextafter(u-radius, math.Inf(-1)), d+i)
			n.Upper[from+i] = b.Project(math.Nextafter(u+radius, math.Inf(1)), d+i)
		}
		return true
	})
	return nil
}

// improve relaxes both vectors on a slab.
func (n *encloser) improve(b *problem.Discretization) error {
	for _, side := range []struct {
		values []float64
		sign   float64
	}{{n.Lower, -1}, {n.Upper, 1}} {
		v := make([]float64, b.Layout.Len())
		if err := b.FillReference(v); err != nil {
			return err
		}
		j := evaluator{p: n.p, u: side.values}
		j.fill(b, v)
		// The rounding error of a relaxation is at most 11 unit round-offs of the row's magnitudes over the
		// diagonal. The source is shifted outwards by more than that.
		shifted := shiftedSource(b, side.sign*2*residualRounding(b, kernel.MaxAbs(v)))
		// A value that a relaxation would move outwards, by its rounding, stays where it is. So more sweeps
		// never give a wider enclosure.
		lower, upper := b.Lower, n.present(b, side.values)
		if side.sign < 0 {
			lower, upper = upper, b.Upper
		}
		s, err := kernel.New(kernel.Config{
			Layout: b.Layout, Operator: b.Operator, Source: shifted, Lower: lower, Upper: upper, Step: 1,
		})
		if err != nil {
			return err
		}
		for range n.sweeps {
			s.RelaxColour(v, 0, 1, b.Layout.Interior())
			s.RelaxColour(v, 1, 1, b.Layout.Interior())
		}
		b.EachRow(func(row []float64, first [3]int) {
			old := side.values[n.p.Dense(first):][:len(row)]
			copy(old, row)
		}, v, false)
	}
	return nil
}

// present returns a slab's values of one of the two vectors.
func (n *encloser) present(b *problem.Discretization, values []float64) kernel.Field {
	f := kernel.Field{Array: make([]float64, b.Layout.Points())}
	b.EachRowOf(b.Box, func(_, k int, first [3]int) bool {
		copy(f.Array[b.Dense(first):][:k], values[n.p.Dense(first):])
		return true
	})
	return f
}

// shiftedSource returns the block's source plus a constant.
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

// finish computes the width, sums and contact counts.
func (n *encloser) finish(ctx context.Context) error {
	var sums [2]kernel.Sum
	p := n.p
	for d, idx := range (problem.Box{Hi: p.N}).Each {
		lower, upper := n.Lower[d], n.Upper[d]
		if idx[0] == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !(lower <= upper) {
			return p.Errorf("the enclosure is empty at %v; this is a bug", p.Location(idx))
		}
		n.Width = max(n.Width, upper-lower)
		sums[0].Add(lower)
		sums[1].Add(upper)
		phi, psi := p.Obstacles(p.At(idx[0], idx[1], idx[2]))
		for _, c := range []struct {
			points  *int
			contact bool
		}{
			{&n.Contact[0], upper <= phi}, {&n.Contact[1], lower <= phi},
			{&n.UpperContact[0], lower >= psi}, {&n.UpperContact[1], upper >= psi},
		} {
			if c.contact {
				*c.points++
			}
		}
	}
	for i, toward := range []float64{math.Inf(-1), math.Inf(1)} {
		n.Sum[i] = sums[i].Float64()
		for a := range p.Dimension {
			n.Sum[i] = math.Nextafter(n.Sum[i]/float64(p.N[a]+1), toward)
		}
	}
	return nil
}
