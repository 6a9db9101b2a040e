package verify

import (
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// barrier is a function w ≥ 0 on the closed grid with A·w ≥ least > 0 at every point. If the off-diagonal
// entries of A are not positive, A is then an M-matrix and ‖A⁻¹‖∞ ≤ top/least, where top is the largest value
// of w: A·w ≥ least and A⁻¹ ≥ 0 imply A⁻¹·1 ≤ w/least (Berman and Plemmons, Nonnegative Matrices in the
// Mathematical Sciences, chapter 6, M35 and N38). The proof does not depend on how w was found: least and top
// are computed from w itself and rounded against the claim.
type barrier struct {
	by         string
	least, top float64
	shape      shape
}

// shape provides the values of w.
type shape interface {
	// fill writes w, rounded up, from grid point first along a row of the grid.
	fill(row []float64, first [3]int)
}

// inverse returns a bound of ‖A⁻¹‖∞, or NaN if the barrier proves nothing.
func (b barrier) inverse() float64 {
	if !(b.least > 0) || math.IsInf(b.top, 0) || math.IsNaN(b.top) {
		return math.NaN()
	}
	return b.top / b.least * (1 + 4*kernel.UnitRoundoff)
}

// separable is a barrier Σ_m Π_a v(m, a)(x_a) for constant coefficients. A·w then needs differences along
// single axes only, and no array of the grid's size.
type separable struct {
	by     string
	row    [kernel.Directions]float64
	excess float64 // lower bound of the sum of a row's entries: Center − Σ off-diagonal
	n      [3]int
	terms  []separableTerm
}

// separableTerm is one product. value holds v at 0 (boundary), 1 … N, N+1 of each axis, defect the differences
// low·(v_i − v_i−1) + high·(v_i − v_i+1).
type separableTerm struct {
	value, defect [3][]float64
	size          [3]float64 // largest |low·(v_i − v_i−1)| + |high·(v_i − v_i+1)|
	weight        float64    // the product's factor
	highest       float64    // weight times the product of the largest values
}

func newSeparable(p *problem.Problem, by string) *separable {
	s := &separable{by: by, n: p.N, row: problem.NewStencil(p).At([3]int{1, 1, 1})}
	sum := s.row[kernel.Center]
	for d := kernel.West; d <= 2*p.Dimension; d++ {
		sum -= s.row[d]
	}
	// Seven terms whose magnitudes add up to about twice the diagonal's.
	s.excess = sum - 16*kernel.UnitRoundoff*s.row[kernel.Center]
	return s
}

// add adds weight times a product. values are given at 1 … N; rim is the value at either end.
func (s *separable) add(weight float64, values [3][]float64, rim [3]float64) {
	t := separableTerm{weight: weight, highest: weight}
	for a := range 3 {
		n := s.n[a]
		v, d := make([]float64, n+2), make([]float64, n+2)
		copy(v[1:], values[a])
		v[0], v[n+1] = rim[a], rim[a]
		low, high := s.row[kernel.West+2*a], s.row[kernel.East+2*a]
		top := 0.0
		for i := 1; i <= n; i++ {
			x, y := low*(v[i]-v[i-1]), high*(v[i]-v[i+1])
			d[i] = x + y
			t.size[a] = max(t.size[a], math.Abs(x)+math.Abs(y))
			top = max(top, v[i])
		}
		t.value[a], t.defect[a] = v, d
		t.highest *= top
	}
	s.terms = append(s.terms, t)
}

// symmetric reports whether every table along an axis equals its reverse.
func (s *separable) symmetric(a int) bool {
	for _, t := range s.terms {
		reverse := slices.Clone(t.value[a])
		slices.Reverse(reverse)
		if !slices.Equal(t.value[a], reverse) {
			return false
		}
	}
	return s.row[kernel.West+2*a] == s.row[kernel.East+2*a]
}

// interchangeable reports whether all tables along two axes are equal.
func (s *separable) interchangeable(a, b int) bool {
	same := s.row[kernel.West+2*a] == s.row[kernel.West+2*b] && s.row[kernel.East+2*a] == s.row[kernel.East+2*b]
	for _, t := range s.terms {
		same = same && slices.Equal(t.value[a], t.value[b])
	}
	return same
}

// uniform reports whether all tables are constant along an axis.
func (s *separable) uniform(a int) bool {
	for _, t := range s.terms {
		v, d := t.value[a], t.defect[a]
		for i := 2; i < len(v)-1; i++ {
			if v[i] != v[1] || d[i] != d[1] {
				return false
			}
		}
	}
	return true
}

// check finds least and top over the grid. It visits one point along an axis with constant tables, half of an
// axis with symmetric tables, half of that where y and z are interchangeable, and a sixth where all axes are.
// The rounding bound covers the points left out.
func (s *separable) check(e problem.Executor) barrier {
	var n [3]int
	for a := range 3 {
		if n[a] = s.n[a]; s.symmetric(a) {
			n[a] = (s.n[a] + 1) / 2
		}
		if s.uniform(a) {
			n[a] = 1
		}
	}
	rows := n[1] * n[2]
	chunk := max(1, 1<<14/n[0])
	found := make([]barrier, (rows+chunk-1)/chunk)
	half := s.interchangeable(1, 2)
	sixth := half && s.interchangeable(0, 1)
	e.For(len(found), func(c int) {
		w, aw := make([]float64, n[0]), make([]float64, n[0])
		least, top := math.Inf(1), 0.0
		for r := c * chunk; r < min((c+1)*chunk, rows); r++ {
			y, z := r%n[1], r/n[1]
			if half && y > z {
				continue
			}
			m := n[0]
			if sixth {
				m = y + 1
			}
			s.rowAt(aw[:m], w[:m], [3]int{1, 1 + y, 1 + z})
			for x, v := range aw[:m] {
				if !(v >= least) { // a NaN stays
					least = v
				}
				if w[x] > top {
					top = w[x]
				}
			}
		}
		found[c].least, found[c].top = least, top
	})
	out := barrier{by: s.by, least: math.Inf(1), shape: s}
	for _, f := range found {
		if !(f.least >= out.least) {
			out.least = f.least
		}
		out.top = max(out.top, f.top)
	}
	out.least -= s.rounding()
	out.top *= s.up()
	return out
}

// fill implements shape.
func (s *separable) fill(row []float64, first [3]int) {
	s.rowAt(make([]float64, len(row)), row, first)
	for i := range row {
		row[i] *= s.up()
	}
}

// up returns the factor that covers the rounding of a value of w, whose terms are all positive.
func (s *separable) up() float64 { return 1 + float64(2*len(s.terms)+16)*kernel.UnitRoundoff }

// rowAt writes A·w and w from point first along a row.
func (s *separable) rowAt(aw, w []float64, first [3]int) {
	clear(aw)
	clear(w)
	i, m := 0, len(w)
	aw = aw[:m]
	for ; i+1 < len(s.terms); i += 2 { // two at a time, added one after the other
		a, b := s.terms[i].along(s.excess, first, m), s.terms[i+1].along(s.excess, first, m)
		av, ad, bv, bd := a.value[:m], a.defect[:m], b.value[:m], b.defect[:m]
		for x := range w {
			v, u := av[x], bv[x]
			w[x] = w[x] + a.alpha*v + b.alpha*u
			aw[x] = aw[x] + (a.alpha*ad[x] + a.beta*v) + (b.alpha*bd[x] + b.beta*u)
		}
	}
	for ; i < len(s.terms); i++ {
		a := s.terms[i].along(s.excess, first, len(w))
		for x, v := range a.value {
			w[x] += a.alpha * v
			aw[x] += a.alpha*a.defect[x] + a.beta*v
		}
	}
}

// termRow is a term along a row: α·value in w and α·defect + β·value in A·w.
type termRow struct {
	value, defect []float64
	alpha, beta   float64
}

func (t *separableTerm) along(excess float64, first [3]int, m int) termRow {
	x0, y, z := first[0], first[1], first[2]
	vy, vz := t.value[1][y], t.value[2][z]
	alpha := t.weight * (vy * vz)
	return termRow{
		t.value[0][x0:][:m:m], t.defect[0][x0:][:m:m],
		alpha, t.weight*(t.defect[1][y]*vz+vy*t.defect[2][z]) + excess*alpha,
	}
}

// rounding bounds the error of rowAt's A·w. A term has 3 roundings in the table of defects, at most 9 in α, β
// and the products, and one per term in the sum.
func (s *separable) rounding() float64 {
	total := 0.0
	for _, t := range s.terms {
		m := math.Abs(s.excess)
		for a := range 3 {
			if top := slices.Max(t.value[a]); top > 0 {
				m += t.size[a] / top
			}
		}
		total += m * t.highest
	}
	return float64(len(s.terms)+16) * kernel.UnitRoundoff * total
}
