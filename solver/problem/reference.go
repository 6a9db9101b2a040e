package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// ReferenceAt is u⁰ of SPEC §1 at grid point idx: max(φ, 0), at most ψ, in the
// interior, the data on the boundary. Residuals are relative to that vector's.
func (p *Problem) ReferenceAt(idx [3]int) float64 {
	q := p.At(idx[0], idx[1], idx[2])
	for a := range p.Dimension {
		if idx[a] == 0 || idx[a] == p.N[a]+1 {
			return p.Boundary(q)
		}
	}
	v := 0.0
	if p.Obstacle != nil {
		if phi := p.Obstacle(q); phi > v {
			v = phi
		}
	}
	if p.Upper != nil {
		if psi := p.Upper(q); psi < v {
			v = psi
		}
	}
	return v
}

// FillReference sets own points and ghosts of a padded array to the reference
// vector: boundary data where the box touches ∂Ω, and what the neighbours own
// elsewhere.
func (b *Discretization) FillReference(dst []float64) error {
	m := b.Layout.N[0]
	err := b.forRows(func(_, r int, first [3]int) error {
		b.referenceOwn(dst[b.Index(first):][:m], r*m)
		return nil
	})
	if err != nil {
		return err
	}
	return b.referenceGhosts(dst)
}

// referenceGhosts writes the reference vector on the ghosts alone.
func (b *Discretization) referenceGhosts(dst []float64) (err error) {
	p := b.Problem
	x := p.Coordinates(0, b.Box.Lo[0]+1, b.Box.Hi[0]+1)
	b.EachFace(func(face Box, boundary bool) bool {
		if !boundary {
			b.EachRowOf(face, func(at, n int, first [3]int) bool {
				err = p.referenceRow(dst[at:][:n], x[:n], first)
				return err == nil
			})
			return err == nil
		}
		p.EachPlace(face, func(_, i, j, k int, x, y, z float64) bool {
			g := p.Boundary(Point{x, y, z})
			if dst[b.Layout.Index(i-1-b.Box.Lo[0], j-1-b.Box.Lo[1], k-1-b.Box.Lo[2])] = g; !kernel.Finite(g) {
				err = p.refuseReference(g, [3]int{i, j, k})
			}
			return err == nil
		})
		return err == nil
	})
	return err
}

func (p *Problem) refuseReference(v float64, idx [3]int) error {
	return p.Refuse("the boundary data or the obstacle are %v at %v", v, p.Place(idx))
}

// referenceOwn writes 0 brought into [φ, ψ] at own points from dense index d on.
func (b *Discretization) referenceOwn(row []float64, d int) {
	if b.Lower.Array == nil || b.Upper.Array != nil || b.Upper.Value < 0 {
		for i := range row {
			row[i] = b.Project(0, d+i)
		}
		return
	}
	lower := b.Lower.Array[d:][:len(row)]
	if psi := b.Upper.Value; !math.IsInf(psi, 1) {
		for i, phi := range lower {
			v := positive(phi)
			if psi < v {
				v = psi
			}
			row[i] = v
		}
		return
	}
	for i, phi := range lower {
		row[i] = positive(phi)
	}
}

// positive is v if that is positive, else +0, without a branch; v is no NaN.
func positive(v float64) float64 {
	b := math.Float64bits(v)
	return math.Float64frombits(b &^ uint64(int64(b)>>63))
}

// referenceRow writes the reference vector on a row of ghosts that another block owns,
// which begins with grid point first. x are its columns.
func (p *Problem) referenceRow(dst, x []float64, first [3]int) error {
	if len(dst) == 1 || p.Obstacle == nil || p.Upper != nil {
		for i := range dst {
			idx := [3]int{first[0] + i, first[1], first[2]}
			if dst[i] = p.ReferenceAt(idx); !kernel.Finite(dst[i]) {
				return p.refuseReference(dst[i], idx)
			}
		}
		return nil
	}
	s := Sampler{p, "obstacle", p.Obstacle, p.Rows.Obstacle}
	err := s.fill(dst, x, first)
	for i, phi := range dst {
		dst[i] = max(phi, 0)
	}
	return err
}
