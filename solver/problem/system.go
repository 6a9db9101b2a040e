package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// NewSystem is the System of a box of a stationary problem (or a time step, see AtStep)
// for the methods of package method, and the padded array of the reference vector there:
// max(φ, 0), ghosts as the neighbours and the boundary have them. Both are the caller's.
// Coarser grids cover the same region, ghost to ghost; only for the whole grid can they
// tell source, obstacles and boundary data too.
func NewSystem(p *Problem, box Box) (method.System, []float64, error) {
	if err := p.ValidateHead(); err != nil {
		return method.System{}, nil, err
	}
	b, err := Discretize(p, box)
	if err != nil {
		return method.System{}, nil, err
	}
	u := make([]float64, b.Layout.Len())
	if err := b.FillReference(u); err != nil {
		return method.System{}, nil, err
	}
	return b.System(), u, nil
}

// System is the block as the methods see it: the arrays are the block's, so what is
// written there later (a time step's source, say) holds for them.
func (b *Discretization) System() method.System {
	p := b.Problem
	s := method.System{
		Layout: b.Layout, Operator: b.Operator, Source: b.Source, Lower: b.Lower, Upper: b.Upper,
		Parity: b.parity(), Symmetric: p.Symmetric(), Strength: p.Strength(),
	}
	s.Coarse = func(n [3]int, e *method.Edges) (kernel.Operator, error) {
		return p.CoarseOperatorIn(b.Box, n, Box{Hi: n}, e, [kernel.Directions][]float64{})
	}
	if !p.Diffusion.Constant() {
		s.Edges = func() *method.Edges { return p.edges(b.Box) }
	}
	if b.Box == (Box{Hi: p.N}) {
		s.Boundary = p.CoarseBoundary
		if p.Evolution == nil {
			s.Fields = p.coarseFields
		}
	}
	return s
}

// parity is the colour of the box's first point in the whole grid.
func (b *Discretization) parity() int { return (b.Box.Lo[0] + b.Box.Lo[1] + b.Box.Lo[2]) & 1 }

// Symmetric tells whether A is symmetric: nothing flows.
func (p *Problem) Symmetric() bool {
	for a := range p.Dimension {
		if v := p.Velocity[a]; !v.Constant() || v.Value != 0 {
			return false
		}
	}
	return true
}

// StrengthPoints per axis are looked at for strength.
const StrengthPoints = 5

// Strength is how strongly A couples neighbours along each axis, the mean over a few
// points of the whole grid, so that all blocks find the same.
func (p *Problem) Strength() [3]float64 {
	st := NewStencil(p)
	st.half = true
	count := [3]int{1, 1, 1}
	for a := range p.Dimension {
		count[a] = min(StrengthPoints, p.N[a])
	}
	var out [3]float64
	Box{Hi: count}.Each(func(_ int, idx [3]int) bool {
		for a := range idx {
			idx[a] = (p.N[a] + 1) * idx[a] / (count[a] + 1)
			idx[a] = max(1, min(p.N[a], idx[a]))
		}
		v := st.At(idx)
		for a := range p.Dimension {
			out[a] += math.Abs(v[kernel.West+2*a]) + math.Abs(v[kernel.East+2*a])
		}
		return true
	})
	return out
}

// Region is the problem on n points between the ghosts of a box.
func (p *Problem) Region(box Box, n [3]int) *Problem {
	q := *p
	q.N, q.Evolution, q.Initial = n, nil, nil
	q.Lo = p.At(box.Lo[0], box.Lo[1], box.Lo[2])
	q.Hi = p.At(box.Hi[0]+1, box.Hi[1]+1, box.Hi[2]+1)
	return &q
}

// CoarseOperatorIn is the part that lies in a box of A on a coarser grid of a region, an
// M-matrix there too, in the arrays of room where there are some; e is κ between the box's
// points and those around it, nil: it is constant.
func (p *Problem) CoarseOperatorIn(region Box, n [3]int, part Box, e *method.Edges, room [kernel.Directions][]float64) (kernel.Operator, error) {
	l, err := kernel.NewLayout(p.Dimension, part.Size())
	if err != nil {
		return kernel.Operator{}, err
	}
	q := p.Region(region, n)
	q.Upwind = true
	st := NewStencil(q)
	if e != nil {
		st.d = &diffusion{Edges: e}
	}
	op, _, err := st.Operator(part, l, room)
	return op, err
}

// coarseFields evaluates source and obstacles on a coarser grid of the domain.
func (p *Problem) coarseFields(n [3]int, source, lower, upper []float64) error {
	return p.CoarseFieldsIn(n, Box{Hi: n}, source, lower, upper)
}

// CoarseFieldsIn evaluates them in a box of that grid.
func (p *Problem) CoarseFieldsIn(n [3]int, part Box, source, lower, upper []float64) error {
	q := p.Region(Box{Hi: p.N}, n)
	var err error
	q.EachPlace(part, func(d, i, j, k int, x, y, z float64) bool {
		f, lo, hi := p.Source.At(Point{x, y, z}), math.Inf(-1), math.Inf(1)
		if p.Obstacle != nil {
			lo = p.Obstacle(Point{x, y, z})
		}
		if p.Upper != nil {
			hi = p.Upper(Point{x, y, z})
		}
		if math.IsNaN(f) || math.IsNaN(lo) || math.IsNaN(hi) {
			err = p.Refuse("source %v, obstacles %v and %v at %v", f, lo, hi, q.Place([3]int{i, j, k}))
		}
		source[d], lower[d] = f, lo
		if upper != nil { // else the grid has no upper obstacle
			upper[d] = hi
		}
		return err == nil
	})
	return err
}

// CoarseBoundary evaluates the boundary data on a coarser grid of the domain, on faces,
// edges and corners.
func (p *Problem) CoarseBoundary(n [3]int, l kernel.Layout, values []float64) error {
	return p.CoarseBoundaryIn(n, Box{Hi: n}, l, values)
}

// CoarseBoundaryIn evaluates them at those ghosts of a box of that grid that lie on the
// boundary.
func (p *Problem) CoarseBoundaryIn(n [3]int, part Box, l kernel.Layout, values []float64) error {
	q := p.Region(Box{Hi: p.N}, n)
	var err error
	for a := range p.Dimension {
		for _, end := range []int{-1, n[a]} {
			if end < 0 && part.Lo[a] > 0 || end > part.Hi[a] {
				continue
			}
			side := part
			for c := range p.Dimension {
				side.Lo[c], side.Hi[c] = part.Lo[c]-1, part.Hi[c]+1
			}
			side.Lo[a], side.Hi[a] = end, end+1
			q.EachPlace(side, func(_, i, j, k int, x, y, z float64) bool {
				v := q.Boundary(Point{x, y, z})
				values[l.Index(i-1-part.Lo[0], j-1-part.Lo[1], k-1-part.Lo[2])] = v
				if !kernel.Finite(v) {
					err = p.Refuse("the boundary data are %v at %v", v, q.Place([3]int{i, j, k}))
				}
				return err == nil
			})
		}
	}
	return err
}
