package problem

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Residuals are squared, summed and compared, and energies are products of values and
// residuals. float64 holds the squares of numbers from about 1e-154 to 1e154 only. So a
// problem whose data lie far from 1 is solved for 2^k·u instead of u: source, obstacles,
// boundary data and starting values are multiplied by 2^k, and the answer by 2^−k. Both
// products are exact, and every operation of a method on values multiplied by 2^k gives
// 2^k times the same bits. k follows from the problem alone, so all peers find the same.
// It is 0 for all but extraordinary data.

const (
	// ordinaryExponent: residuals from 2^−300 to 2^300 are squared as they are. 2^200 is
	// left on either side for the residual's fall, 2^24 for the number of points.
	ordinaryExponent = 300
	// ordinaryEnergy bounds the exponent of a value times a residual likewise.
	ordinaryEnergy = 700
	// widestOperator bounds the exponent of A's diagonal.
	widestOperator = 600
	// widestData bounds the exponent of a residual, and of the values that cause it: 64 bits
	// are left for the growth from data to answer. There is no bound below: an answer of
	// the least numbers that float64 has is rounded to these, and judged as it is then.
	widestData = 950
	// LostData is more than what data that become 0 when they are scaled contribute to an
	// answer of the scaled problem.
	LostData = 0x1p-900
	// largestStart bounds starting values of a problem that is in range.
	largestStart = 0x1p400
)

// Units are what values of the solved problem are in.
type Units struct {
	Scale
	// residual is the size of its residuals, a power of 2; 1 where all data are 0. What
	// ‖r(u⁰)‖ is measured by where that is 0.
	residual float64
}

// Reference is what residuals are relative to: ‖r(u⁰)‖ unless u⁰ solves the problem, which
// began elsewhere.
func (u Units) Reference(norm float64) float64 {
	if norm == 0 {
		return u.residual
	}
	return norm
}

// Scale is k.
type Scale int

// Times is v·2^k. What only a float64 of larger range would hold becomes the largest
// float64: an obstacle at −1e300 ("none here") stays one.
func (k Scale) Times(v float64) float64 {
	w := math.Ldexp(v, int(k))
	if math.IsInf(w, 0) && !math.IsInf(v, 0) {
		return math.Copysign(math.MaxFloat64, v)
	}
	return w
}

// Outward is v·2^k, rounded away from −toward where it is not exact.
func (k Scale) Outward(v, toward float64) float64 {
	w := k.Times(v)
	if (-k).Times(w) == v {
		return w
	}
	return math.Nextafter(w, math.Inf(int(toward)))
}

// Apply multiplies values in place.
func (k Scale) Apply(values []float64) {
	if k == 0 {
		return
	}
	for i, v := range values {
		values[i] = k.Times(v)
	}
}

// Copied are values times 2^k; the given ones where k is 0.
func (k Scale) Copied(values []float64) []float64 {
	if k == 0 || values == nil {
		return values
	}
	out := append([]float64(nil), values...)
	k.Apply(out)
	return out
}

// InRange returns the problem for 2^k·u, and k. It refuses data whose solution float64
// cannot hold.
func (p *Problem) InRange() (*Problem, Units, error) {
	none := Units{residual: 1}
	if err := p.ValidateHead(); err != nil {
		return nil, none, err
	}
	m := p.magnitude(samplesPerAxis[p.Dimension])
	if !m.ordinary() {
		m = p.magnitude(p.finest())
	}
	switch {
	case !m.any:
		return p, none, nil
	case m.ordinary():
		return p, Units{residual: math.Ldexp(1, m.residual)}, nil
	case max(m.operator, -m.operator) > widestOperator:
		return nil, none, p.Refuse("the operator's diagonal is about %s; it must lie between %s and %s: choose other units of length or time",
			power(m.operator), power(-widestOperator), power(widestOperator))
	case max(m.residual, m.residual-m.operator) > widestData:
		return nil, none, p.Refuse("source, obstacles and boundary data are about %s, and values %s; both must be at most %s: choose other units",
			power(m.residual), power(m.residual-m.operator), power(widestData))
	}
	k := Scale(m.operator/2 - m.residual)
	return p.scaled(k), Units{k, math.Ldexp(1, m.operator/2)}, nil
}

// power is a power of 2 for people.
func power(exponent int) string {
	return fmt.Sprintf("1e%+d", int(math.Round(float64(exponent)*math.Log10(2))))
}

// magnitude is how large the numbers of a problem are: binary exponents.
type magnitude struct {
	any      bool // something is not 0
	residual int  // of A·u⁰ and f, the largest
	operator int  // of A's diagonal, the largest
}

// ordinary tells whether squares and energies are far from the ends of float64's range.
func (m *magnitude) ordinary() bool {
	energy := 2*m.residual - m.operator
	return m.any && max(m.residual, -m.residual) <= ordinaryExponent && max(energy, -energy) <= ordinaryEnergy
}

// samplesPerAxis is how many points an axis are looked at by dimension.
var samplesPerAxis = [4]int{1: 65, 2: 17, 3: 9}

// scanPoints is about how many points are looked at where the first ones show nothing or
// something extraordinary.
const scanPoints = 1 << 22

// finest is how many points an axis make scanPoints.
func (p *Problem) finest() int {
	n := int(math.Round(math.Pow(scanPoints, 1/float64(p.Dimension))))
	for a := range p.Dimension {
		if p.N[a]+2 > n {
			return n
		}
	}
	return math.MaxInt32
}

// magnitude looks at so many points an axis, those of the boundary among them; of a
// nonstationary problem at the start and at the first and the last step.
func (p *Problem) magnitude(perAxis int) magnitude {
	var m magnitude
	if p.Evolution == nil {
		q := *p
		q.Initial = nil
		m.add(&q, perAxis)
		return m
	}
	for _, step := range []int{0, 1, p.Evolution.Steps} {
		q := p.AtStep(step)
		if q.ValidateHead() != nil {
			continue // refused where the step begins
		}
		if step > 0 {
			q.Initial = nil
		}
		m.add(q, perAxis)
	}
	return m
}

// add takes in a stationary problem; its Initial counts as data.
func (m *magnitude) add(p *Problem, perAxis int) {
	values, source, diagonal := 0.0, 0.0, 0.0
	st := NewStencil(p)
	var count [3]int
	for a := range count {
		count[a] = 1
		if a < p.Dimension {
			count[a] = min(p.N[a]+2, perAxis)
		}
	}
	Box{Hi: count}.Each(func(_ int, idx [3]int) bool {
		inside := true
		for a := range idx {
			if a >= p.Dimension {
				continue
			}
			idx[a] = (idx[a] - 1) * (p.N[a] + 1) / max(1, count[a]-1)
			inside = inside && idx[a] > 0 && idx[a] <= p.N[a]
		}
		values = Larger(values, math.Abs(p.ReferenceAt(idx)))
		if inside && p.Initial != nil {
			values = Larger(values, math.Abs(p.Initial(p.At(idx[0], idx[1], idx[2]))))
		}
		if inside {
			source = Larger(source, math.Abs(p.Source.At(p.At(idx[0], idx[1], idx[2]))))
			diagonal = Larger(diagonal, st.At(idx)[kernel.Center])
		}
		return true
	})
	if !(diagonal > 0) || !kernel.Finite(diagonal) || !kernel.Finite(values) || !kernel.Finite(source) {
		return // refused where the functions are evaluated
	}
	operator := exponent(diagonal)
	if values == 0 && source == 0 {
		return
	}
	residual := math.MinInt32
	if values > 0 {
		residual = exponent(values) + operator
	}
	if source > 0 {
		residual = max(residual, exponent(source))
	}
	if !m.any || operator > m.operator {
		m.operator = operator
	}
	if !m.any || residual > m.residual {
		m.residual = residual
	}
	m.any = true
}

// exponent is e of v = m·2^e, ½ ≤ m < 1.
func exponent(v float64) int {
	_, e := math.Frexp(v)
	return e
}

// scaled is the problem for 2^k·u.
func (p *Problem) scaled(k Scale) *Problem {
	q := *p
	q.Name = fmt.Sprintf("%s, values times 2^%d", p.Name, k)
	q.Source = Coefficient{Value: k.Times(p.Source.Value), Of: k.function(p.Source.Of)}
	q.Obstacle, q.Upper, q.Boundary = k.function(p.Obstacle), k.function(p.Upper), k.function(p.Boundary)
	q.Initial, q.Exact = k.function(p.Initial), k.function(p.Exact)
	q.Rows = Rows{k.row(p.Rows.Obstacle), k.row(p.Rows.Upper), k.row(p.Rows.Source), k.row(p.Rows.Exact)}
	if e := p.Evolution; e != nil {
		evolution := *e
		evolution.Initial = k.function(e.Initial)
		evolution.At = func(t float64) *Problem { return e.At(t).scaled(k) }
		q.Evolution = &evolution
	}
	return &q
}

func (k Scale) function(f Function) Function {
	if f == nil {
		return nil
	}
	return func(q Point) float64 { return k.Times(f(q)) }
}

func (k Scale) row(f Row) Row {
	if f == nil {
		return nil
	}
	return func(dst, x []float64, y, z float64) {
		f(dst, x, y, z)
		k.Apply(dst)
	}
}

// CheckReference refuses a problem with data between the points that inRange looked at
// that are too large for the squares of their residual.
func (p *Problem) CheckReference(squares *kernel.Sum) error {
	if kernel.Finite(squares.Float64()) {
		return nil
	}
	return p.RefuseMagnitude()
}

// RefuseMagnitude returns the error of data whose residual cannot be squared in float64.
func (p *Problem) RefuseMagnitude() error {
	return p.Refuse("the residual of max(φ, 0) is too large to be squared: source, obstacles or boundary data are more than 1e+%d times as large in places as elsewhere",
		int(ordinaryExponent*math.Log10(2)))
}
