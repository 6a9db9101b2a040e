package solver

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// profile is an approximate solution of A·w = 1, w = 0 on the boundary, for operators
// whose rows differ, on the grid of the problem or, interpolated from there, a coarser
// one. How good it is does not matter for what it proves: that is checked at every point
// of the grid in question. Where coefficients jump and A·w is not positive, A·w = κ
// is solved on the grid itself: relaxation brings each point as near to that, whatever
// its row's size.
type profile struct {
	p      *Problem // on the profile's grid
	layout kernel.Layout
	w      []float64 // padded
}

const (
	coarsestAxis = 7
	// Sweeps over a slab whose coefficients are at hand: they are cheap beside making
	// these. Over-relaxation reaches across a slab, the last ones smooth.
	profileSweeps   = 40
	profileSmooth   = 8
	profileOmega    = 1.6
	smallPoints     = 1 << 13 // where three times as many sweeps cost nothing
	profileAttempts = 4       // at a profile on the whole grid
	// profileLoss by which a bound may be larger than A·w = 1 would give it, before the
	// profile is refined.
	profileLoss = 2
)

// profileAxis is the longest axis of the first grid that is tried: enough where
// coefficients are smooth.
func profileAxis(dimension int) int { return []int{0, 1 << 16, 511, 127}[dimension] }

// newProfile finds w on a grid of n points, from a few points an axis to twice as many and
// so on, each time by interpolation and relaxation.
func newProfile(p *Problem, n [3]int, scaled bool, e Executor) (*profile, error) {
	grids := [][3]int{n}
	for again := true; again; {
		m := grids[len(grids)-1]
		again = false
		for a, k := range m {
			if k > coarsestAxis {
				m[a], again = k/2, true
			}
		}
		if again {
			grids = append(grids, m)
		}
	}
	var f *profile
	for i := len(grids) - 1; i >= 0; i-- {
		q := p.ones(grids[i], scaled)
		q.Upwind = p.Upwind || q.N != p.N
		next, err := emptyProfile(q)
		if err != nil {
			return nil, err
		}
		if f != nil {
			next.interpolate(f, e)
		}
		if err = next.relax(profileOmega, e); err != nil {
			return nil, err
		}
		f = next
	}
	return f, nil
}

// interpolate fills own points from a coarser profile.
func (f *profile) interpolate(from *profile, e Executor) {
	t, l := newCubicTransfer(from, f.p.N), f.layout
	e.For(l.N[2], func(z int) {
		line := make([]float64, t.line())
		for y := range l.N[1] {
			t.rowAt(f.w[l.Index(0, y, z):][:l.N[0]], line, [3]int{1, y + 1, z + 1})
		}
	})
}

// ones is A·w = 1, w = 0 on the boundary, on a grid of n points; scaled: A·w = κ.
func (p *Problem) ones(n [3]int, scaled bool) *Problem {
	q := *p
	q.N, q.Source, q.Boundary = n, Coefficient{Value: 1}, func(Point) float64 { return 0 }
	q.Obstacle, q.Upper, q.Initial, q.Exact, q.Rows = nil, nil, nil, nil, Rows{}
	if k := p.Diffusion; scaled && !k.Constant() {
		q.Source.Of = k.Of
	}
	return &q
}

func emptyProfile(p *Problem) (*profile, error) {
	l, err := kernel.NewLayout(p.Dimension, p.N)
	return &profile{p: p, layout: l, w: make([]float64, l.Len())}, err
}

// profileTransfer is the profile for judging solutions of p; nil where other barriers do.
func (p *Problem) profileTransfer(e Executor) (*cubicTransfer, error) {
	if newStencil(p).constant() || p.rowsDominate() {
		return nil, nil
	}
	for a := range p.Dimension {
		if peclet, _ := p.largestPeclet(a); peclet > 2 && !p.Upwind {
			return nil, nil // no M-matrix
		}
	}
	n := p.N
	for a := range p.Dimension {
		n[a] = min(n[a], profileAxis(p.Dimension))
	}
	f, err := newProfile(p, n, false, e)
	if err != nil {
		return nil, err
	}
	return newCubicTransfer(f, p.N), nil
}

// refine makes the next attempt at a profile of the judged problem's own grid.
func (j *judgement) refine(attempt int, e Executor) error {
	if attempt > 0 {
		return j.profile.from.relax(1, e) // over-relaxation need not converge; the transfer to the same grid is the identity
	}
	f, err := newProfile(j.p, j.p.N, true, e)
	if err == nil {
		j.profile = newCubicTransfer(f, j.p.N)
	}
	return err
}

// rowsDominate guesses, from a few points, whether the rows of A add up to so much (a
// reaction, a time step) that w = 1 is nearly as good as any w: after the time 1/c that a
// reaction takes, little has come in from the boundary.
func (p *Problem) rowsDominate() bool {
	count := [3]int{1, 1, 1}
	for a := range p.Dimension {
		count[a] = min(strengthPoints, p.N[a])
	}
	least, fastest := math.Inf(1), 0.0
	Box{Hi: count}.each(func(_ int, idx [3]int) bool {
		for a := range p.Dimension {
			idx[a] = max(1, (p.N[a]+1)*idx[a]/(count[a]+1))
		}
		x := p.At(idx[0], idx[1], idx[2])
		least = min(least, p.Reaction.At(x))
		for a := range p.Dimension {
			l := p.Hi[a] - p.Lo[a]
			fastest = max(fastest, 8*p.Diffusion.At(x)/(l*l)+math.Abs(p.Velocity[a].At(x))/l)
		}
		return true
	})
	return least > 10*fastest
}

// measure compares w with the residual of padded values u in a slab: A·w and its
// ratio to |r|, both rounded against the bound.
func (s *slabResult) measure(t *cubicTransfer, b *block, stepper *kernel.Sweep, u []float64) {
	s.least, s.ratio = math.Inf(1), 0
	if t == nil {
		return
	}
	l := b.layout
	w, aw, r := make([]float64, l.Len()), make([]float64, l.Len()), make([]float64, l.Len())
	line := make([]float64, t.line())
	b.eachRow(func(row []float64, first [3]int) { t.rowAt(row, line, first) }, w, true)
	stepper.Apply(aw, w, l.Interior())
	stepper.Defect(r, u, l.Interior())
	rounding := 8 * unitRoundoff * b.rowMagnitude() * largestMagnitude(w)
	b.eachRow(func(row []float64, first [3]int) {
		at := b.index(first)
		for i := range row {
			least := aw[at+i] - rounding
			if !(least >= s.least) {
				s.least = least
			}
			if !(w[at+i] >= 0) {
				s.least = math.Inf(-1)
			}
			s.top = max(s.top, w[at+i])
			if ratio := (math.Abs(r[at+i]) + s.rounding) / least; !(ratio <= s.ratio) {
				s.ratio = ratio
			}
		}
	}, aw, false)
}

// poor tells whether a profile proves nothing, or much less than one with A·w = 1 would.
func (s *slabResult) poor() bool { return !(s.least > 0) || s.ratio > profileLoss*s.inf }

// relax relaxes every other slab and then the others, twice, the second time cut in
// other places.
func (f *profile) relax(omega float64, e Executor) error {
	p := f.p
	slow := p.Dimension - 1
	thick := min(p.N[slow], max(8, evaluationPoints/(p.Points()/p.N[slow])))
	for _, start := range []int{0, -thick / 2} {
		slabs := (p.N[slow] - start + thick - 1) / thick
		errs := make([]error, slabs)
		for parity := range min(2, slabs) {
			e.For((slabs+1-parity)/2, func(i int) {
				i = 2*i + parity
				box := Box{Hi: p.N}
				box.Lo[slow], box.Hi[slow] = max(0, start+i*thick), min(start+(i+1)*thick, p.N[slow])
				errs[i] = f.relaxSlab(box, omega)
			})
		}
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// relaxSlab does red-black sweeps in a box.
func (f *profile) relaxSlab(box Box, omega float64) error {
	b, err := newBlock(f.p, box)
	if err != nil {
		return err
	}
	s, err := b.sweep(1)
	if err != nil {
		return err
	}
	w := make([]float64, b.layout.Len())
	b.eachRow(func(dst []float64, lo [3]int) { copy(dst, f.w[f.layout.Index(lo[0]-1, lo[1]-1, lo[2]-1):]) }, w, true)
	sweeps := profileSweeps
	if f.p.Points() <= smallPoints {
		sweeps *= 3
	}
	for i := range sweeps + profileSmooth {
		if i == sweeps {
			omega = 1
		}
		s.RelaxColour(w, 0, omega, b.layout.Interior())
		s.RelaxColour(w, 1, omega, b.layout.Interior())
	}
	b.eachRow(func(src []float64, lo [3]int) { copy(f.w[f.layout.Index(lo[0]-1, lo[1]-1, lo[2]-1):], src) }, w, false)
	return nil
}

// eachRow visits the rows of a padded array, with their ghosts and those of rows
// beside the block, or without, and the grid index of their first point (0 and N+1
// are the boundary).
func (b *block) eachRow(f func(row []float64, first [3]int), v []float64, ghosts bool) {
	l, in := b.layout, b.layout.Interior()
	if ghosts {
		for a := range l.Dim {
			in.Lo[a], in.Hi[a] = -1, l.N[a]+1
		}
	}
	m := in.Hi[0] - in.Lo[0]
	for z := in.Lo[2]; z < in.Hi[2]; z++ {
		for y := in.Lo[1]; y < in.Hi[1]; y++ {
			i := l.Index(in.Lo[0], y, z)
			f(v[i:][:m:m], [3]int{b.box.Lo[0] + in.Lo[0] + 1, b.box.Lo[1] + y + 1, b.box.Lo[2] + z + 1})
		}
	}
}
