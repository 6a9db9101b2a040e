package kernel

import "math"

// MarkHeld sets the bits of points whose residual is −0, that is, of points in contact that stay
// there (see Sweep.Defect). in consists of rows of n values; value i of row k is bit i of
// words[k·step:]. All bits of the words that a row touches are written.
func (k *Kernel) MarkHeld(words []uint64, step int, in []float64, n int) {
	if n < 1 || len(in) < n {
		return
	}
	for row := range len(in) / n {
		words[row*step+(n-1)/64] = 0
	}
	k.loops.mark(words, step, in[:len(in)/n*n], n)
}

// markPlain sets the bits of the values of each row from index first on, a multiple of 8. Bits of a
// partially marked word from first on must be 0.
func markPlain(words []uint64, step int, rows []float64, n, first int) {
	for k := range len(rows) / n {
		for from := first; from < n; {
			end := min(n, from&^63+64)
			var word uint64
			for i, r := range rows[k*n+from : k*n+end] {
				b := math.Float64bits(r) ^ 1<<63
				word |= (b - 1) &^ b >> 63 << ((from + i) & 63) // 1 if b is 0
			}
			at := &words[k*step+from>>6]
			if from&63 == 0 {
				*at = 0
			}
			*at |= word
			from = end
		}
	}
}

// ScanContact sets the bits of values that touch an obstacle: bit i of words is set unless φ < u < ψ at i. The three
// rows have equal lengths. All bits of the words that the row touches are written.
func (k *Kernel) ScanContact(words []uint64, row, phi, psi []float64) {
	if len(row) == 0 {
		return
	}
	clear(words[:(len(row)+63)/64])
	k.loops.touch(words, row, phi[:len(row)], psi[:len(row)])
}

// touchPlain sets the bits of values from index first on.
func touchPlain(words []uint64, row, phi, psi []float64, first int) {
	for i := first; i < len(row); i++ {
		if u := row[i]; !(u > phi[i] && u < psi[i]) {
			words[i>>6] |= 1 << (i & 63)
		}
	}
}
