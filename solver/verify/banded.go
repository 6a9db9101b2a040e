package verify

import "github.com/p2pdc/p2pdc/internal/kernel"

// banded is the factored operator of a small grid, points in memory order. Elimination
// needs no pivots where the operator is an M-matrix (Berman and Plemmons, chapter 6).
type banded struct {
	n, band int       // the furthest neighbour of a point is band points away
	rows    []float64 // 2·band + 1 entries each: what is eliminated, pivot, rest
}

// bandOf is how far apart in memory the neighbours of a grid's points are.
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
	d := 0
	for z := range l.N[2] {
		for y := range l.N[1] {
			for x := range l.N[0] {
				row := f.rows[d*width:][:width]
				row[f.band] += op.Arrays[kernel.Center][d]
				for k := kernel.West; k <= 2*l.Dim; k++ {
					a := (k - 1) / 2
					side := 2*((k-1)%2) - 1
					if next := [3]int{x, y, z}[a] + side; next >= 0 && next < l.N[a] {
						row[f.band+side*strides[a]] -= op.Arrays[k][d]
					}
				}
				d++
			}
		}
	}
	f.factor()
	return f
}

// factor eliminates what lies before the diagonal, leaving the factors there.
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
