package verify

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// banded is the LU factorization of the operator of a small grid, points in memory order. It needs no pivoting
// because the operator is an M-matrix (Berman and Plemmons, chapter 6).
type banded struct {
	n, band int       // band is the largest distance of neighbours in memory
	rows    []float64 // 2·band + 1 entries each: eliminated entries, pivot, upper entries
}

// bandOf returns the distance in memory of the furthest neighbours on a grid.
func bandOf(l kernel.Layout) int {
	switch l.Dim {
	case 1:
		return 1
	case 2:
		return l.N[0]
	}
	return l.N[0] * l.N[1]
}

func newBanded(l kernel.Layout, op *kernel.Operator) *banded {
	f := &banded{n: l.Points(), band: bandOf(l)}
	width := 2*f.band + 1
	f.rows = make([]float64, f.n*width)
	strides := [3]int{1, l.N[0], l.N[0] * l.N[1]}
	for d, at := range (problem.Box{Hi: l.N}).Each {
		row := f.rows[d*width:][:width]
		row[f.band] += op.Arrays[kernel.Center][d]
		for k := kernel.West; k <= 2*l.Dim; k++ {
			a := (k - 1) / 2
			side := 2*((k-1)%2) - 1
			if next := at[a] + side; next >= 1 && next <= l.N[a] {
				row[f.band+side*strides[a]] -= op.Arrays[k][d]
			}
		}
	}
	f.factor()
	return f
}

// factor computes the LU factors in place.
func (f *banded) factor() {
	width := 2*f.band + 1
	for i := range f.n {
		row := f.rows[i*width:][:width]
		for j := max(0, i-f.band); j < i; j++ {
			at := f.band + j - i
			if row[at] == 0 {
				continue
			}
			before := f.rows[j*width:][:width]
			row[at] /= before[f.band]
			for k := 1; k <= f.band; k++ {
				row[at+k] -= float64(row[at] * before[f.band+k])
			}
		}
	}
}

// solve replaces the right-hand side by the solution.
func (f *banded) solve(v []float64) {
	width := 2*f.band + 1
	for i := range f.n {
		row := f.rows[i*width:][:width]
		for j := max(0, i-f.band); j < i; j++ {
			v[i] -= float64(row[f.band+j-i] * v[j])
		}
	}
	for i := f.n - 1; i >= 0; i-- {
		row := f.rows[i*width:][:width]
		for j := i + 1; j <= min(f.n-1, i+f.band); j++ {
			v[i] -= float64(row[f.band+j-i] * v[j])
		}
		v[i] /= row[f.band]
	}
}
