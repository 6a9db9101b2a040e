package kernel

import "math"

// Held marks the points of rows whose residual is −0, those in contact that stay (see
// Sweep.Defect): of the rows of n values each that in is made of, value i of row k is bit i
// of words[k·step:]. All of the words that n bits touch are written.
func (k *Kernel) MarkHeld(words []uint64, step int, in []float64, n int) {
	if n < 1 || len(in) < n {
		return
	}
	for row := range len(in) / n {
		words[row*step+(n-1)/64] = 0
	}
	k.loops.mark(words, step, in[:len(in)/n*n], n)
}

// markPlain sets the bits from value first on, a multiple of 8, of rows whose last words'
// bits from there on are 0.
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

// Touching marks the values of a row that are not between an obstacle below and one above,
// all three equally long: bit i of words is set unless φ < u < ψ at i. All of the words that
// its bits touch are written.
func (k *Kernel) ScanContact(words []uint64, row, phi, psi []float64) {
	if len(row) == 0 {
		return
	}
	clear(words[:(len(row)+63)/64])
	k.loops.touch(words, row, phi[:len(row)], psi[:len(row)])
}

// touchPlain sets the bits from value first on.
func touchPlain(words []uint64, row, phi, psi []float64, first int) {
	for i := first; i < len(row); i++ {
		if u := row[i]; !(u > phi[i] && u < psi[i]) {
			words[i>>6] |= 1 << (i & 63)
		}
	}
}
