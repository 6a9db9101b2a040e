package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// NewSystem returns the System of a box of a stationary problem or a time step (see AtStep) for the methods of
// package method, and the padded reference vector with its ghosts. The caller owns both. Coarser grids cover
// the same region, from ghost to ghost. Source, obstacles and boundary data on coarser grids are available only
// if the box is the whole grid.
func NewSystem(p *Problem, box Box) (method.System, []float64, error) {
	if err := p.ValidateStatement(); err != nil {
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

// System returns the block as a method.System that shares the block's arrays. Later changes, such as the source
// of a time step, apply to it.
func (b *Discretization) System() method.System {
	p := b.Problem
	s := method.System{
		Layout: b.Layout, Operator: b.Operator, Source: b.Source, Lower: b.Lower, Upper: b.Upper,
		Parity: (b.Box.Lo[0] + b.Box.Lo[1] + b.Box.Lo[2]) & 1, Symmetric: p.Symmetric(),
		WeakFlow: p.WeakFlow(), Strength: p.Strength(),
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
			s.Fields = func(n [3]int, source, lower, upper []float64) error {
				return p.CoarseFieldsIn(n, Box{Hi: n}, source, lower, upper)
			}
		}
	}
	return s
}

// Symmetric reports whether A is symmetric, which holds if the velocity is 0.
func (p *Problem) Symmetric() bool {
	for a := range p.Dimension {
		if v := p.Velocity[a]; !v.Constant() || v.Value != 0 {
			return false
		}
	}
	return true
}

// weakPeclet is the largest grid Péclet number |b|·h/κ of a weak flow.
const weakPeclet = 0.1

// WeakFlow reports whether A is not symmetric but nearly: at Samples the flow is weak beside the diffusion.
func (p *Problem) WeakFlow() bool {
	if p.Symmetric() {
		return false
	}
	for idx := range p.Samples {
		x := p.At(idx[0], idx[1], idx[2])
		kappa := p.Diffusion.At(x)
		for a := range p.Dimension {
			if !(math.Abs(p.Velocity[a].At(x))*p.Spacing(a) <= weakPeclet*kappa) {
				return false
			}
		}
	}
	return true
}

// MayDiverge reports whether A may be no M-matrix, so that no method is known to converge.
func (p *Problem) MayDiverge() bool { return !p.Upwind && !p.Symmetric() }

// samples is the number of points of Samples.
const samples = 100

// scattered holds, by dimension, the steps of a sequence of points that fill the unit cube evenly: powers of 1/g, where g
// is the root of g^(d+1) = g + 1. The points of a lattice might all miss the stripes of a periodic diffusion.
var scattered = [4][3]float64{
	1: {0.6180339887498949},
	2: {0.7548776662466927, 0.5698402909980532},
	3: {0.8191725133961645, 0.6710436067037893, 0.5497004779019703},
}

// Samples calls yield for a few points spread over the grid, as a loop over grid indices (1-based). They depend on the
// grid alone.
func (p *Problem) Samples(yield func(idx [3]int) bool) {
	for i := range samples {
		idx := [3]int{1, 1, 1}
		for a := range p.Dimension {
			_, at := math.Modf(0.5 + float64(float64(i)*scattered[p.Dimension][a]))
			idx[a] += int(at * float64(p.N[a]))
		}
		if !yield(idx) {
			return
		}
	}
}

// Strength returns the mean coupling of neighbours along each axis over Samples. All blocks obtain the same value.
func (p *Problem) Strength() [3]float64 {
	st := NewStencil(p)
	st.half = true
	var out [3]float64
	for idx := range p.Samples {
		v := st.At(idx)
		for a := range p.Dimension {
			out[a] += math.Abs(v[kernel.West+2*a]) + math.Abs(v[kernel.East+2*a])
		}
		if st.Constant() {
			break
		}
	}
	return out
}

// Region returns the problem on n points between the ghosts of a box.
func (p *Problem) Region(box Box, n [3]int) *Problem {
	q := *p
	q.N, q.origin = n, nil
	q.Evolution = nil
	q.Initial = nil
	q.Lo = p.At(box.Lo[0], box.Lo[1], box.Lo[2])
	q.Hi = p.At(box.Hi[0]+1, box.Hi[1]+1, box.Hi[2]+1)
	return &q
}

// coarseNegative is the factor of a negative reaction on coarser grids. The smallest eigenvalue of −u″ on a grid of one
// point is 0.81 times that of fine grids; the sum must remain positive.
const coarseNegative = 0.8

// coarseReaction returns the reaction on coarser grids.
func (c Coefficient) coarseReaction() Coefficient {
	if c.Constant() {
		if c.Value < 0 {
			c.Value *= coarseNegative
		}
		return c
	}
	of := c.Of
	c.Of = func(q Point) float64 {
		v := of(q)
		if v < 0 {
			v *= coarseNegative
		}
		return v
	}
	return c
}

// CoarseOperatorIn returns the coefficients of A in a box (part) of a coarser grid of a region. They form an
// M-matrix there as well. It uses the arrays in room where they are large enough. e holds κ between the box's
// points and those around it; nil means constant.
func (p *Problem) CoarseOperatorIn(region Box, n [3]int, part Box, e *method.Edges,
	room [kernel.Directions][]float64) (kernel.Operator, error) {
	l, err := kernel.NewLayout(p.Dimension, part.Size())
	if err != nil {
		return kernel.Operator{}, err
	}
	q := p.Region(region, n)
	q.Upwind = true
	q.Reaction = p.Reaction.coarseReaction()
	st := NewStencil(q)
	st.d = e
	op, _, err := st.Operator(part, l, room)
	return op, err
}

// CoarseFieldsIn evaluates source and obstacles in a box of a coarser grid of the domain.
func (p *Problem) CoarseFieldsIn(n [3]int, part Box, source, lower, upper []float64) error {
	q := p.Region(Box{Hi: p.N}, n)
	var err error
	q.EachPoint(part, func(d, i, j, k int, x, y, z float64) bool {
		f := p.Source.At(Point{x, y, z})
		lo, hi := p.Obstacles(Point{x, y, z})
		if math.IsNaN(f) || math.IsNaN(lo) || math.IsNaN(hi) {
			err = p.Errorf("source %v, obstacles %v and %v at %v", f, lo, hi, q.Location([3]int{i, j, k}))
		}
		source[d], lower[d] = f, lo
		if upper != nil { // else the grid has no upper obstacle
			upper[d] = hi
		}
		return err == nil
	})
	return err
}

// CoarseBoundary evaluates the boundary data on a coarser grid of the domain: on faces, edges and corners.
func (p *Problem) CoarseBoundary(n [3]int, l kernel.Layout, values []float64) error {
	return p.CoarseBoundaryIn(n, Box{Hi: n}, l, values)
}

// CoarseBoundaryIn evaluates the boundary data at the ghosts of a box of a coarser grid that lie on ∂Ω.
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
			q.EachPoint(side, func(_, i, j, k int, x, y, z float64) bool {
				v := q.Boundary(Point{x, y, z})
				values[l.Index(i-1-part.Lo[0], j-1-part.Lo[1], k-1-part.Lo[2])] = v
				if !kernel.Finite(v) {
					err = p.Errorf("the boundary data are %v at %v", v, q.Location([3]int{i, j, k}))
				}
				return err == nil
			})
		}
	}
	return err
}
