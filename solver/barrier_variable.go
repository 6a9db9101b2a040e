package solver

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// profile is an approximate solution of A·w = 1, w = 0 on the boundary, found where rows
// differ from point to point: from a coarse grid to finer ones, each starting from the
// one before by cubic interpolation and relaxed, slab by slab, until A·w is near 1 point
// by point. Coefficients are evaluated for one slab at a time and thread, so that w is
// the only array of the grid's size. How good w is does not matter: it is checked.
type profile struct {
	p   *Problem // on this profile's grid
	w   []float64
	row int // distance from (x, y, z) to (x, y+1, z)
	// plane is that to (x, y, z+1).
	plane int
}

const (
	coarsestAxis  = 7
	onesAccuracy  = 0.05 // how near A·w is to come to 1
	onesSweeps    = 40   // over a slab, at most
	profileRefine = 3    // a profile that loses more than that is refined
)

func newProfile(p *Problem) *profile {
	f := &profile{p: p, row: p.N[0] + 2}
	size := [3]int{p.N[0] + 2, 1, 1}
	for a := 1; a < p.Dimension; a++ {
		size[a] = p.N[a] + 2
	}
	f.plane = f.row * size[1]
	f.w = make([]float64, f.plane*size[2])
	return f
}

// index is where grid point (x, y, z) lies, 0 and N+1 the boundary.
func (f *profile) index(x, y, z int) int {
	i := x
	if f.p.Dimension > 1 {
		i += f.row * y
	}
	if f.p.Dimension > 2 {
		i += f.plane * z
	}
	return i
}

// coarseProfile is one on the grids coarser than that of p; p's own, too, if it is one
// slab.
func coarseProfile(p *Problem, e Executor) (*profile, error) {
	grids := [][3]int{p.N}
	for {
		n, again := grids[len(grids)-1], false
		for a, m := range n {
			if m > coarsestAxis {
				n[a], again = m/2, true
			}
		}
		if !again {
			break
		}
		grids = append(grids, n)
	}
	if p.Points() > evaluationPoints {
		grids = grids[:len(grids):len(grids)][1:]
	}
	var f *profile
	for i := len(grids) - 1; i >= 0; i-- {
		q := *p
		q.N, q.Upwind = grids[i], p.Upwind || i > 0
		next := newProfile(&q)
		if f != nil {
			next.interpolate(f, e)
		}
		if f = next; f.relax(e) != nil {
			return nil, f.relax(e)
		}
	}
	return f, nil
}

// relax relaxes slabs, every other one at a time, twice with other cuts.
func (f *profile) relax(e Executor) error {
	p := f.p
	slow := p.Dimension - 1
	thick := min(p.N[slow], max(2, evaluationPoints/(p.Points()/p.N[slow])))
	for _, start := range []int{0, -thick / 2} {
		slabs := (p.N[slow] - start + thick - 1) / thick
		errs := make([]error, slabs)
		for parity := range 2 {
			e.For((slabs+1-parity)/2, func(i int) {
				i = 2*i + parity
				box := Box{Hi: p.N}
				box.Lo[slow], box.Hi[slow] = max(0, start+i*thick), min(start+(i+1)*thick, p.N[slow])
				errs[i] = f.relaxSlab(box)
			})
		}
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		if slabs == 1 {
			break
		}
	}
	return nil
}

// relaxSlab does Gauss–Seidel sweeps for A·w = 1 in a box, to and fro.
func (f *profile) relaxSlab(box Box) error {
	l, err := kernel.NewLayout(f.p.Dimension, box.Size())
	if err != nil {
		return err
	}
	o, err := newStencil(f.p).rows(box, l)
	if err != nil {
		return err
	}
	for range onesSweeps / 2 {
		f.sweep(box, &o, 1)
		if f.sweep(box, &o, -1) <= onesAccuracy {
			break
		}
	}
	return nil
}

// sweep is one Gauss–Seidel sweep and the largest |1 − A·w| that it met.
func (f *profile) sweep(box Box, o *kernel.Operator, step int) (worst float64) {
	n := box.Size()
	for r := range n[1] * n[2] {
		x := 0
		if step < 0 {
			r, x = n[1]*n[2]-1-r, n[0]-1
		}
		y, z := r%n[1], r/n[1]
		i, d := f.index(box.Lo[0]+x+1, box.Lo[1]+y+1, box.Lo[2]+z+1), x+n[0]*r
		for range n[0] {
			c := o.Arrays[kernel.Center][d]
			r := 1 + f.neighbours(o, f.w, i, d) - c*f.w[i]
			worst = max(worst, math.Abs(r))
			f.w[i] += r / c
			i += step
			d += step
		}
	}
	return worst
}

// neighbours is Σ coefficient · neighbour at index i of a closed array, dense index d.
func (f *profile) neighbours(o *kernel.Operator, w []float64, i, d int) float64 {
	sum := o.Arrays[kernel.West][d]*w[i-1] + o.Arrays[kernel.East][d]*w[i+1]
	if f.p.Dimension > 1 {
		sum += o.Arrays[kernel.South][d]*w[i-f.row] + o.Arrays[kernel.North][d]*w[i+f.row]
	}
	if f.p.Dimension > 2 {
		sum += o.Arrays[kernel.Bottom][d]*w[i-f.plane] + o.Arrays[kernel.Top][d]*w[i+f.plane]
	}
	return sum
}
