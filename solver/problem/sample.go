package problem

import (
	"cmp"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Row writes the values of a Function at the points (x[i], y, z) to dst, bitwise equal to those of the
// Function. dst and x have equal lengths. A Row must be as pure as the Function. It saves one call per point,
// which costs more than most functions.
type Row func(dst, x []float64, y, z float64)

// Rows holds the functions of a Problem by rows. Where one is nil, the Function is called point by point. One
// value of every row is compared with the Function, so that replacing a Function but not its Row is an error.
type Rows struct{ Obstacle, Upper, Source, Exact Row }

// Sampler evaluates a function of a problem on rows of its grid.
type Sampler struct {
	p    *Problem
	name string // for errors
	f    Function
	row  Row
}

// NewSampler returns a Sampler of f at grid points of p. row, which may be nil, evaluates f by rows. name
// appears in errors.
func NewSampler(p *Problem, name string, f Function, row Row) Sampler {
	return Sampler{p, name, f, row}
}

// Coordinates returns the coordinates of grid points lo … hi−1 along an axis, where 0 and N+1 denote the
// boundary. They are 0 on an unused axis.
func (p *Problem) Coordinates(a, lo, hi int) []float64 {
	x := make([]float64, hi-lo)
	if a >= p.Dimension {
		return x
	}
	for i := range x {
		x[i] = p.along(a, lo+i)
	}
	return x
}

// EachPoint calls f for the points of a box in memory order, with their indices and coordinates, and stops when
// f returns false. It computes coordinates once per plane of points instead of once per point. It passes
// scalars because arrays would be passed through memory.
func (p *Problem) EachPoint(b Box, f func(dense, i, j, k int, x, y, z float64) bool) {
	var along [3][]float64
	for a := range along {
		along[a] = p.Coordinates(a, b.Lo[a]+1, b.Hi[a]+1)
	}
	d := 0
	for k, z := range along[2] {
		for j, y := range along[1] {
			for i, x := range along[0] {
				if !f(d, b.Lo[0]+1+i, b.Lo[1]+1+j, b.Lo[2]+1+k, x, y, z) {
					return
				}
				d++
			}
		}
	}
}

// Values writes the values at columns x of the row that begins at grid point first.
func (s *Sampler) Values(dst, x []float64, first [3]int) error {
	q := s.p.At(first[0], first[1], first[2])
	if s.row == nil {
		for i, v := range x {
			q[0] = v
			dst[i] = s.f(q)
		}
		return nil
	}
	s.row(dst, x, q[1], q[2])
	probe := (first[1] + first[2]) % len(x)
	q[0] = x[probe]
	if v := s.f(q); v != dst[probe] && (v == v || kernel.Finite(dst[probe])) {
		return s.p.Errorf(
			"the %s is %v by rows and %v point by point at %v; replace Problem.Rows together with the function",
			s.name, dst[probe], v, q[:s.p.Dimension])
	}
	return nil
}

// fill is Values with the check that all values are finite. The error names the first that is not.
func (s *Sampler) fill(dst, x []float64, first [3]int) error {
	if err := s.Values(dst, x, first); err != nil {
		return err
	}
	if i := firstNotFinite(dst); i >= 0 {
		return s.p.Errorf("the %s is %v at %v", s.name, dst[i], s.p.Location([3]int{first[0] + i, first[1], first[2]}))
	}
	return nil
}

// firstNotFinite returns the index of the first value that is not finite, or −1.
func firstNotFinite(row []float64) int {
	if kernel.Finite(kernel.MaxAbs(row)) {
		return -1
	}
	return slices.IndexFunc(row, func(v float64) bool { return !kernel.Finite(v) })
}

// minSharePoints is the number of points that is worth one share of the work among threads.
const minSharePoints = 1 << 14

// rowShares returns the number of shares into which the block's rows are divided.
func (b *Discretization) rowShares() int {
	return max(1, min(b.Layout.Points()/minSharePoints, MaxChunks, b.Layout.N[1]*b.Layout.N[2]))
}

// forRows calls f for each row of the block, in shares on the executor, with the row's number and its grid
// point of least x. It returns the error of the first row that has one.
func (b *Discretization) forRows(f func(share, row int, first [3]int) error) error {
	shares, rows := b.rowShares(), b.Layout.N[1]*b.Layout.N[2]
	errs := make([]error, shares)
	b.executor().For(shares, func(i int) {
		for r := rows * i / shares; r < rows*(i+1)/shares && errs[i] == nil; r++ {
			y, z := r%b.Layout.N[1], r/b.Layout.N[1]
			errs[i] = f(i, r, [3]int{b.Box.Lo[0] + 1, b.Box.Lo[1] + y + 1, b.Box.Lo[2] + z + 1})
		}
	})
	return cmp.Or(errs...)
}

func (b *Discretization) executor() Executor {
	return cmp.Or[Executor](b.Executor, Sequential{})
}

// array returns an array for the block's points: the given one if it is large enough.
func (b *Discretization) array(given []float64) []float64 {
	n := b.Layout.Points()
	if cap(given) < n && b.Allocate != nil {
		return b.Allocate(n)
	}
	return Resized(given, n)
}

// Resized returns an array of n values: the given one if it is large enough.
func Resized(given []float64, n int) []float64 {
	if cap(given) < n {
		return make([]float64, n)
	}
	return given[:n]
}

// rowSample accumulates the rows of one share of a field: a single value, or varying values.
type rowSample struct {
	value   float64
	row     []float64
	sampled bool
	varies  bool
}

// add processes row r of the field. While all values are equal, they are in s.row, afterwards in the array.
func (s *rowSample) add(array []float64, first, r int) {
	if s.varies {
		return
	}
	if !s.sampled {
		s.value, s.sampled = s.row[0], true
	}
	s.varies = slices.ContainsFunc(s.row, func(v float64) bool { return v != s.value })
	if !s.varies {
		return
	}
	m := len(s.row)
	Fill(array[first*m:r*m], s.value)
	copy(array[r*m:], s.row)
}

// Fill sets all values of dst to v.
func Fill(dst []float64, v float64) {
	for i := range dst {
		dst[i] = v
	}
}

// sample evaluates s at the block's points. It returns a single value if all are equal, else an array, which is
// room if that is long enough.
func (b *Discretization) sample(s Sampler, room []float64) ([]float64, float64, error) {
	m, rows, shares := b.Layout.N[0], b.Layout.N[1]*b.Layout.N[2], b.rowShares()
	array := b.array(room)
	x := b.Problem.Coordinates(0, b.Box.Lo[0]+1, b.Box.Hi[0]+1)
	parts := make([]rowSample, shares)
	err := b.forRows(func(share, r int, first [3]int) error {
		t := &parts[share]
		if t.varies {
			return s.fill(array[r*m:][:m], x, first)
		}
		if t.row == nil {
			t.row = make([]float64, m)
		}
		err := s.fill(t.row, x, first)
		t.add(array, rows*share/shares, r)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	varies := false
	for i := range parts {
		varies = varies || parts[i].varies || parts[i].value != parts[0].value
	}
	if !varies {
		return nil, parts[0].value, nil
	}
	b.executor().For(shares, func(i int) {
		if !parts[i].varies {
			Fill(array[rows*i/shares*m:rows*(i+1)/shares*m], parts[i].value)
		}
	})
	return array, 0, nil
}
