package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// ReferenceAt returns the reference vector u⁰ at grid point idx: max(φ, 0), at most ψ, in the interior and the
// boundary data on ∂Ω. Residuals are relative to the residual of u⁰.
func (p *Problem) ReferenceAt(idx [3]int) float64 {
	q := p.At(idx[0], idx[1], idx[2])
	if p.onBoundary(idx) {
		return p.Boundary(q)
	}
	phi, psi := p.Obstacles(q)
	return Clamp(0, phi, psi)
}

// FillReference sets the own points and face ghosts of a padded array to the reference vector.
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

// referenceGhosts sets the face ghosts of dst to the reference vector.
func (b *Discretization) referenceGhosts(dst []float64) (err error) {
	p := b.Problem
	x := p.Coordinates(0, b.Box.Lo[0]+1, b.Box.Hi[0]+1)
	for face, boundary := range b.EachFace {
		if !boundary {
			b.EachRowOf(face, func(at, n int, first [3]int) bool {
				err = p.referenceRow(dst[at:][:n], x[:n], first)
				return err == nil
			})
		} else {
			p.EachPoint(face, func(_, i, j, k int, x, y, z float64) bool {
				g := p.Boundary(Point{x, y, z})
				if dst[b.Layout.Index(i-1-b.Box.Lo[0], j-1-b.Box.Lo[1], k-1-b.Box.Lo[2])] = g; !kernel.Finite(g) {
					err = p.referenceError(g, [3]int{i, j, k})
				}
				return err == nil
			})
		}
		if err != nil {
			break
		}
	}
	return err
}

func (p *Problem) referenceError(v float64, idx [3]int) error {
	return p.Errorf("the boundary data or the obstacle are %v at %v", v, p.Location(idx))
}

// referenceOwn writes 0 projected onto [φ, ψ] to row, whose first point has dense index d.
func (b *Discretization) referenceOwn(row []float64, d int) {
	if b.Lower.Array == nil || b.Upper.Array != nil || b.Upper.Value < 0 {
		for i := range row {
			row[i] = b.Project(0, d+i)
		}
		return
	}
	for i, phi := range b.Lower.Array[d:][:len(row)] {
		row[i] = positivePart(phi)
	}
	psi := b.Upper.Value
	if math.IsInf(psi, 1) {
		return
	}
	for i, v := range row {
		if psi < v {
			row[i] = psi
		}
	}
}

// positivePart returns max(v, +0) without a branch. v must not be NaN.
func positivePart(v float64) float64 {
	b := math.Float64bits(v)
	return math.Float64frombits(b &^ uint64(int64(b)>>63))
}

// referenceRow writes the reference vector to a row of ghosts in the interior of the domain. first is its first
// grid point, x its x coordinates.
func (p *Problem) referenceRow(dst, x []float64, first [3]int) error {
	if len(dst) == 1 || p.Obstacle == nil || p.Upper != nil {
		for i := range dst {
			idx := [3]int{first[0] + i, first[1], first[2]}
			if dst[i] = p.ReferenceAt(idx); !kernel.Finite(dst[i]) {
				return p.referenceError(dst[i], idx)
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
