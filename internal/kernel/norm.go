package kernel

import "math"

// Norm accumulates a residual: the exact sum of its squares and its largest absolute value. The
// zero value is empty. The result depends neither on the order of additions nor on how they are
// split over merged Norms. A Norm must not be used by several goroutines at once.
type Norm struct {
	Squares Sum
	Max     float64 // NaN after a NaN was added

	row []float64 // scratch memory of the row kernels
}

// Add adds one residual value.
func (n *Norm) Add(r float64) {
	n.Squares.Add(float64(r * r))
	if a := math.Abs(r); a > n.Max || a != a {
		n.Max = a
	}
}

// Merge adds the contents of o.
func (n *Norm) Merge(o *Norm) {
	n.Squares.Merge(&o.Squares)
	if o.Max > n.Max || o.Max != o.Max {
		n.Max = o.Max
	}
}

// Reset empties the norm and keeps its scratch memory.
func (n *Norm) Reset() {
	n.Squares = Sum{}
	n.Max = 0
}

// L2 returns the square root of the sum of squares.
func (n *Norm) L2() float64 { return math.Sqrt(n.Squares.Float64()) }

// addRow adds a row of residual values.
func (n *Norm) addRow(r []float64) {
	n.Squares.AddSquares(r)
	largest := math.Float64bits(largestOf(r))
	n.Max = math.Float64frombits(max(math.Float64bits(n.Max), largest))
}

// AddValues adds the values of a row to s exactly. It is equivalent to s.Add for each of them, and
// uses vector instructions where the variant has them.
func (k *Kernel) AddValues(s *Sum, row []float64) { k.loops.addValues(s, row) }

// MaxAbs returns the largest absolute value of a row: 0 for an empty row, NaN if any value is NaN.
func MaxAbs(row []float64) float64 { return bestInstructions().largestRow(row) }

func (isa instructionSet) largestRow(row []float64) float64 {
	top := 0.0
	for len(row) > 0 {
		m := min(len(row), residualBatch)
		if largest := isa.largestOf(row[:m]); largest > top || math.IsNaN(largest) {
			top = largest
		}
		if row = row[m:]; math.IsNaN(top) {
			return top
		}
	}
	return top
}

// largestOf is MaxAbs in plain Go.
func largestOf(row []float64) float64 {
	var largest uint64
	for _, v := range row {
		// Without the sign bit, the bits of float64s have the order of the values, with NaN last.
		largest = max(largest, math.Float64bits(v)&^(1<<63))
	}
	return math.Float64frombits(largest)
}

// scratch returns scratch memory of m values.
func (n *Norm) scratch(m int) []float64 {
	if cap(n.row) < m {
		n.row = make([]float64, m)
	}
	return n.row[:m]
}

// Finite reports whether v is neither infinite nor NaN.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// UnitRoundoff is the unit round-off of float64 rounded to nearest, 2⁻⁵³.
const UnitRoundoff = 0x1p-53
