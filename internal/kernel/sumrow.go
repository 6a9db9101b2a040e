package kernel

import "math"

// sumChunk bounds the values of one vector sum. It is 256 values a lane at most, which splitConstants relies on.
const sumChunk = 1024

// addRow adds a row of residual values.
func (isa instructionSet) addRow(n *Norm, r []float64) {
	for len(r) > 0 {
		m := min(len(r), sumChunk)
		if isa < avx2 || m < 8 {
			n.addRow(r[:m])
		} else if most := isa.largest(r[:m]); !isa.sum(&n.Squares, r[:m], most, true) {
			n.addRow(r[:m])
		} else {
			n.Max = max(n.Max, most) // finite: splitConstants refuses NaN
		}
		r = r[m:]
	}
}

// addValues adds a row of values exactly.
func (isa instructionSet) addValues(s *Sum, row []float64) {
	for len(row) > 0 {
		m := min(len(row), sumChunk)
		if isa < avx2 || m < 8 || !isa.sum(s, row[:m], isa.largest(row[:m]), false) {
			for _, v := range row[:m] {
				s.Add(v)
			}
		}
		row = row[m:]
	}
}

// largestOf returns the largest absolute value of a row of any length, in any variant.
func (isa instructionSet) largestOf(row []float64) float64 {
	if isa < avx2 || len(row) < 8 {
		return largestOf(row)
	}
	return isa.largest(row)
}

// largest returns the largest absolute value of a row; NaN compares larger than all other values.
func (isa instructionSet) largest(row []float64) float64 {
	var lanes [8]float64
	t := tile{out: &lanes[0], c: &row[0], count: len(row), rows: 1}
	isa.run(largest, &t)
	var bits uint64
	for _, v := range lanes {
		bits = max(bits, math.Float64bits(v))
	}
	return math.Float64frombits(bits)
}

// splitConstants returns the constants that split values, or their squares, of magnitude at most
// most into three parts. ok is false where the parts would leave the range of normal numbers.
func splitConstants(most float64, squares bool) (k [3]float64, ok bool) {
	e := int(math.Float64bits(most) >> 52) // biased
	if e == 0 || e == 0x7ff {
		return k, false
	}
	e -= 1023
	if squares {
		e = 2*e + 1
	}
	if e < -800 || e > 1000 {
		return k, false
	}
	// Values are below 2^(e+1), and sums of 256 of them below 2^(e+9): a part that holds the multiples of
	// 2^(e−43) is summed exactly and leaves a remainder of at most 2^(e−44).
	for i, p := range []int{e + 9, e - 36, e - 81} {
		k[i] = math.Float64frombits(uint64(p+1023)<<52 | 1<<51)
	}
	return k, true
}

// sum adds the values of a row, or their squares, to s. most is the largest magnitude of the row.
// It returns false, and adds nothing, where the three parts cannot hold the values exactly.
func (isa instructionSet) sum(s *Sum, row []float64, most float64, squares bool) bool {
	if most == 0 {
		return true
	}
	k, ok := splitConstants(most, squares)
	if !ok {
		return false
	}
	var lanes [4 * 8]float64
	t := tile{out: &lanes[0], c: &row[0], count: len(row), rows: 1}
	copy(t.k[:], k[:])
	width := 8
	if isa == avx2 {
		width = 4
	}
	l := sumRow
	if squares {
		l = sumSquares
	}
	isa.run(l, &t)
	for _, rest := range lanes[3*width : 4*width] {
		if math.Float64bits(rest)<<1 != 0 {
			return false // a value far smaller than the largest one
		}
	}
	for _, v := range lanes[:3*width] {
		if v != 0 {
			s.Add(v)
		}
	}
	return true
}
