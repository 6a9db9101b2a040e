package problem

import "github.com/p2pdc/p2pdc/internal/kernel"

// Row writes the values of a Function at the points (x[i], y, z) to dst, with the same
// bits; dst and x are equally long. It is as pure as the Function, and there because a
// call for every point costs more than most functions do.
type Row func(dst, x []float64, y, z float64)

// Rows are the functions of a Problem by rows; nil where there is none, and then the
// function is called point by point. One value of every row is compared with the
// function's, so that a function replaced without its row is an error, not another problem.
type Rows struct{ Obstacle, Upper, Source, Exact Row }

// Sampler evaluates a function of a problem on rows of its grid.
type Sampler struct {
	p    *Problem
	name string // for errors
	f    Function
	row  Row
}

// NewSampler returns what evaluates f at grid points of p; row does the same for rows and may be nil. The
// name is for errors.
func NewSampler(p *Problem, name string, f Function, row Row) Sampler {
	return Sampler{p, name, f, row}
}

// Coordinates are those of grid points lo, lo+1, … hi−1 along an axis, 0 and N+1 being the
// boundary; 0 on an unused axis.
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

// EachPlace visits the points of a box as Box.each does, with their places: what At says,
// found once for every plane of points instead of once for every point. It hands over
// numbers, as arrays would go through memory, which costs more than most functions.
func (p *Problem) EachPlace(b Box, f func(dense, i, j, k int, x, y, z float64) bool) {
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

// Values writes the values at columns x of the row that begins with grid point first.
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
		return s.p.Refuse("the %s is %v by rows and %v point by point at %v; Problem.Rows has to be replaced with the function",
			s.name, dst[probe], v, q[:s.p.Dimension])
	}
	return nil
}

// fill is values, all of which have to be finite: the error names the first that is not.
func (s *Sampler) fill(dst, x []float64, first [3]int) error {
	if err := s.Values(dst, x, first); err != nil {
		return err
	}
	if i := firstNotFinite(dst); i >= 0 {
		return s.p.Refuse("the %s is %v at %v", s.name, dst[i], s.p.Place([3]int{first[0] + i, first[1], first[2]}))
	}
	return nil
}

// firstNotFinite is −1 if all are finite.
func firstNotFinite(row []float64) int {
	if kernel.Finite(LargestMagnitude(row)) {
		return -1
	}
	for i, v := range row {
		if !kernel.Finite(v) {
			return i
		}
	}
	return -1
}

// samplePoints is how many points are worth a share of their own among threads.
const samplePoints = 1 << 14

// rowShares is how many shares rows of a block are cut into.
func (b *Discretization) rowShares() int {
	return max(1, min(b.Layout.Points()/samplePoints, MaxChunks, b.Layout.N[1]*b.Layout.N[2]))
}

// forRows calls f for each row of the block, in shares on the executor: its number, and
// its grid point of least x. It gives the error of the first row that has one.
func (b *Discretization) forRows(f func(share, row int, first [3]int) error) error {
	shares, rows := b.rowShares(), b.Layout.N[1]*b.Layout.N[2]
	errs := make([]error, shares)
	b.executor().For(shares, func(i int) {
		for r := rows * i / shares; r < rows*(i+1)/shares && errs[i] == nil; r++ {
			y, z := r%b.Layout.N[1], r/b.Layout.N[1]
			errs[i] = f(i, r, [3]int{b.Box.Lo[0] + 1, b.Box.Lo[1] + y + 1, b.Box.Lo[2] + z + 1})
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Discretization) executor() Executor {
	if b.Exec == nil {
		return Sequential{}
	}
	return b.Exec
}

// room is an array for the block's points: the one given if that is large enough.
func (b *Discretization) room(given []float64) []float64 {
	n := b.Layout.Points()
	if cap(given) < n && b.Allocate != nil {
		return b.Allocate(n)
	}
	return Fit(given, n)
}

// Fit is an array of n values: the one given if that is large enough.
func Fit(given []float64, n int) []float64 {
	if cap(given) < n {
		return make([]float64, n)
	}
	return given[:n]
}

// stretch is what a share of the rows of a field has shown: one value, or that it varies.
type stretch struct {
	value  float64
	line   []float64
	begun  bool
	varies bool
}

// take looks at row r of the field, whose values are in s.line while they have all been
// the same and then in the array.
func (s *stretch) take(array []float64, first, r int) {
	if s.varies {
		return
	}
	if !s.begun {
		s.value, s.begun = s.line[0], true
	}
	for _, v := range s.line {
		if v != s.value {
			s.varies = true
		}
	}
	if !s.varies {
		return
	}
	m := len(s.line)
	FillValue(array[first*m:r*m], s.value)
	copy(array[r*m:], s.line)
}

// FillValue sets all values of dst to v.
func FillValue(dst []float64, v float64) {
	for i := range dst {
		dst[i] = v
	}
}

// sample evaluates s at the block's points: one value where it is the same everywhere,
// else an array, which is room if that is long enough.
func (b *Discretization) sample(s Sampler, room []float64) ([]float64, float64, error) {
	m, rows, shares := b.Layout.N[0], b.Layout.N[1]*b.Layout.N[2], b.rowShares()
	array := b.room(room)
	x := b.Problem.Coordinates(0, b.Box.Lo[0]+1, b.Box.Hi[0]+1)
	parts := make([]stretch, shares)
	err := b.forRows(func(share, r int, first [3]int) error {
		t := &parts[share]
		if t.varies {
			return s.fill(array[r*m:][:m], x, first)
		}
		if t.line == nil {
			t.line = make([]float64, m)
		}
		err := s.fill(t.line, x, first)
		t.take(array, rows*share/shares, r)
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
			FillValue(array[rows*i/shares*m:rows*(i+1)/shares*m], parts[i].value)
		}
	})
	return array, 0, nil
}
