package verify

// banded is the LU factorization of a matrix with few entries far from the diagonal. It needs no pivoting
// because the matrix is an M-matrix (Berman and Plemmons, chapter 6).
type banded struct {
	n, band int       // band is the largest distance of neighbours in memory
	rows    []float64 // 2·band + 1 entries each: eliminated entries, pivot, upper entries
}

// directSolver returns the factors of a matrix, or nil if it is too large or has entries too far from the diagonal.
func directSolver(m rows) *banded {
	band := 0 // the largest distance in memory of a point and its neighbours
	for i := range m.size() {
		_, column, _ := m.row(i)
		for _, j := range column {
			band = max(band, i-int(j), int(j)-i)
		}
		if band > 1 && m.size()*band > bandedEntries {
			return nil
		}
	}
	return newBanded(m, band)
}

func newBanded(m rows, band int) *banded {
	f := &banded{n: m.size(), band: band}
	width := 2*f.band + 1
	f.rows = make([]float64, f.n*width)
	for i := range f.n {
		row := f.rows[i*width:][:width]
		diagonal, column, coupling := m.row(i)
		row[f.band] = diagonal
		for k, j := range column {
			row[f.band+int(j)-i] = -coupling[k]
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
		row, first := f.rows[i*width:][:width], max(0, i-f.band)
		v[i] -= dot(row[f.band+first-i:f.band], v[first:i])
	}
	for i := f.n - 1; i >= 0; i-- {
		row, last := f.rows[i*width:][:width], min(f.n-1, i+f.band)
		v[i] = (v[i] - dot(row[f.band+1:][:last-i], v[i+1:last+1])) / row[f.band]
	}
}
