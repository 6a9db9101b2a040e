package method

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// averaged returns s with the coupling strengths of its operator and with coarse operators that are averaged from
// the next finer ones.
func averaged(s System) System {
	s.Strength = strengthOf(s.Layout, s.Operator)
	fine, op := s.Layout, s.Operator
	s.Coarse = func(n [3]int, _ *Edges) (kernel.Operator, error) {
		if points(n) >= fine.Points() { // the first coarse grid again
			fine, op = s.Layout, s.Operator
		}
		coarse, err := kernel.NewLayout(fine.Dim, n)
		if err == nil {
			fine, op = coarse, averageOperator(fine, coarse, op)
		}
		return op, err
	}
	return s
}

// strengthOf returns the coupling strength of an operator along each axis: the mean magnitude of its
// coefficients there, sampled at a few thousand points.
func strengthOf(l kernel.Layout, op kernel.Operator) [3]float64 {
	var out [3]float64
	every := max(1, l.Points()/4096)
	for a := range l.Dim {
		low, high := kernel.West+2*a, kernel.East+2*a
		switch op.Form {
		case kernel.Isotropic:
			out[a] = math.Abs(op.Off)
		case kernel.Constant:
			out[a] = (math.Abs(op.Values[low]) + math.Abs(op.Values[high])) / 2
		default:
			sum, n := 0.0, 0
			for i := 0; i < l.Points(); i += every {
				sum += math.Abs(op.Arrays[low][i]) + math.Abs(op.Arrays[high][i])
				n += 2
			}
			out[a] = sum / float64(n)
		}
	}
	return out
}

// averageOperator returns the operator on a coarser grid, from the finer one's coefficients at the
// nearest points. The diffusion (even in the direction) decreases with the square of the spacing,
// the convection (odd) with the spacing, and the reaction (the rest of the diagonal) is unchanged.
func averageOperator(fine, coarse kernel.Layout, op kernel.Operator) kernel.Operator {
	var ratio [3]float64
	for a := range fine.Dim {
		ratio[a] = float64(coarse.N[a]+1) / float64(fine.N[a]+1)
	}
	if op.Form == kernel.Isotropic {
		op = kernel.Operator{Form: kernel.Constant, Values: [kernel.Directions]float64{
			op.Diag, op.Off, op.Off, op.Off, op.Off, op.Off, op.Off}}
	}
	if op.Form == kernel.Constant {
		return kernel.Operator{Form: kernel.Constant, Values: rescaled(op.Values, fine.Dim, ratio)}
	}
	out := kernel.Operator{Form: kernel.Variable}
	for d := range 1 + 2*fine.Dim {
		out.Arrays[d] = make([]float64, coarse.Points())
	}
	nearest := func(a, i int) int {
		return min(fine.N[a]-1, int(math.Round(float64(i+1)/ratio[a]))-1)
	}
	var row [kernel.Directions]float64
	for i := range coarse.Points() {
		x, y, z := i%coarse.N[0], i/coarse.N[0]%coarse.N[1], i/(coarse.N[0]*coarse.N[1])
		p := [3]int{nearest(0, x)}
		if fine.Dim > 1 {
			p[1] = nearest(1, y)
		}
		if fine.Dim > 2 {
			p[2] = nearest(2, z)
		}
		d := fine.Dense(p[0], p[1], p[2])
		for k := range 1 + 2*fine.Dim {
			row[k] = op.Arrays[k][d]
		}
		for k, v := range rescaled(row, fine.Dim, ratio) {
			if k < 1+2*fine.Dim {
				out.Arrays[k][i] = v
			}
		}
	}
	return out
}

// rescaled returns a row of the operator on a grid whose spacing is 1/ratio times as large.
func rescaled(v [kernel.Directions]float64, dim int, ratio [3]float64) [kernel.Directions]float64 {
	var out [kernel.Directions]float64
	rest := v[kernel.Center]
	for a := range dim {
		low, high := v[kernel.West+2*a], v[kernel.East+2*a]
		rest -= low + high
		even, odd := (low+high)/2*ratio[a]*ratio[a], (low-high)/2*ratio[a]
		even = max(even, math.Abs(odd)) // upwind where central differences would not give an M-matrix
		out[kernel.West+2*a], out[kernel.East+2*a] = even+odd, even-odd
		out[kernel.Center] += 2 * even
	}
	out[kernel.Center] += max(rest, 0)
	return out
}
