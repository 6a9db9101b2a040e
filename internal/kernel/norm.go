package kernel

import "math"

// Norm gathers a residual: the exact sum of its squares and its largest absolute
// value. Its zero value is empty. It is one goroutine's; parts are merged, and
// the result depends neither on the parts nor on the order.
type Norm struct {
	Squares Sum
	Max     float64 // NaN once a NaN was added

	row []float64 // scratch of the row kernels
}

// Add adds one value of the residual.
func (n *Norm) Add(r float64) {
	n.Squares.Add(float64(r * r))
	if a := math.Abs(r); a > n.Max || a != a {
		n.Max = a
	}
}

// Merge adds what o holds.
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

// L2 is the square root of the sum of squares.
func (n *Norm) L2() float64 { return math.Sqrt(n.Squares.Float64()) }

// addRow adds a row of values.
func (n *Norm) addRow(r []float64) {
	n.Squares.AddSquares(r)
	// Without the sign bit, float64s are ordered as their bits are, NaN last.
	largest := math.Float64bits(n.Max)
	for _, v := range r {
		largest = max(largest, math.Float64bits(v)&^(1<<63))
	}
	n.Max = math.Float64frombits(largest)
}

// AddValues adds a row of values to s, each exactly: s.Add for all of them, by vectors
// where the variant has some.
func (k *Kernel) AddValues(s *Sum, row []float64) { k.loops.addValues(s, row) }

// Largest is the largest magnitude of a row of values, 0 if there are none; NaN if one is.
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

// largestOf is Largest in plain Go.
func largestOf(row []float64) float64 {
	var largest uint64
	for _, v := range row {
		// Without the sign bit, float64s are ordered as their bits are, NaN last.
		largest = max(largest, math.Float64bits(v)&^(1<<63))
	}
	return math.Float64frombits(largest)
}

// scratch is a row of at least m values.
func (n *Norm) scratch(m int) []float64 {
	if cap(n.row) < m {
		n.row = make([]float64, m)
	}
	return n.row[:m]
}
