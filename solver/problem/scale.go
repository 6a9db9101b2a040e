package problem

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Residuals are squared, summed and compared, and energies are products of values and residuals. float64
// holds the squares of numbers between about 1e-154 and 1e154 only. A problem with data far from 1 is therefore
// solved for 2^k·u: source, obstacles, boundary data and starting values are multiplied by 2^k and the answer
// by 2^−k. Both products are exact, and every operation of a method on scaled values yields the same bits times
// 2^k. k depends on the problem alone, so all peers compute the same. It is 0 for all but extreme data.

const (
	// Residuals from 2^−300 to 2^300 are squared without scaling. A factor 2^200 is left on either side for the
	// decrease of the residual, and 2^24 for the number of points.
	maxResidualExponent = 300
	// maxEnergyExponent bounds the exponent of a value times a residual likewise.
	maxEnergyExponent = 700
	// maxOperatorExponent bounds the exponent of A's diagonal.
	maxOperatorExponent = 600
	// maxDataExponent bounds the exponent of a residual and of the corresponding values. 64 bits are left for the
	// growth from data to solution. There is no lower bound: a subnormal solution is rounded and evaluated as
	// rounded.
	maxDataExponent = 950
	// UnderflowBound bounds the effect on the scaled solution of data that underflow to 0 when they are scaled.
	UnderflowBound = 0x1p-900
	// maxStartValue bounds the starting values of a scaled problem.
	maxStartValue = 0x1p400
)

// Units describes the scaling of a solved problem.
type Units struct {
	Scale
	// Power of 2 of the size of the residuals; 1 where all data are 0. It replaces ‖r(u⁰)‖ where that is 0.
	residual float64
	largest  float64 // bound of the magnitude of iterates: far beyond any that data of this size have
}

// largestOf returns Units.largest for values of size 2^e. They may be 2^64 times as large as the solution shows at first, and
// the square of a residual of values 2^150 times as large does not overflow.
func largestOf(e int) float64 { return max(math.Ldexp(1, max(0, e)+150), leastLargest) }

// leastLargest is the least bound: samples of the data may miss their largest value, and squares up to it can be added.
const leastLargest = 1e140

// Reference returns the norm that residuals are relative to: ‖r(u⁰)‖, or the size of the residuals if u⁰ solves
// the problem.
func (u Units) Reference(norm float64) float64 {
	if norm == 0 {
		return u.residual
	}
	return norm
}

// Scale is the exponent k of a scaling of all values by 2^k.
type Scale int

// Times returns v·2^k. A finite v that would overflow becomes the largest float64, so that an obstacle of
// −1e300 remains one.
func (k Scale) Times(v float64) float64 {
	w := math.Ldexp(v, int(k))
	if math.IsInf(w, 0) && !math.IsInf(v, 0) {
		return math.Copysign(math.MaxFloat64, v)
	}
	return w
}

// Outward returns v·2^k. If the product is not exact, it is rounded towards the infinity with the sign of
// toward.
func (k Scale) Outward(v, toward float64) float64 {
	w := k.Times(v)
	if (-k).Times(w) != v {
		w = math.Nextafter(w, math.Inf(int(toward)))
	}
	return w
}

// Apply multiplies values by 2^k in place.
func (k Scale) Apply(values []float64) {
	if k == 0 {
		return
	}
	for i, v := range values {
		values[i] = k.Times(v)
	}
}

// Scaled returns a copy of values times 2^k, or values itself if k is 0.
func (k Scale) Scaled(values []float64) []float64 {
	if k == 0 || values == nil {
		return values
	}
	out := slices.Clone(values)
	k.Apply(out)
	return out
}

// InRange returns the problem for 2^k·u, and its units. It returns an error for data whose solution exceeds the
// range of float64.
func (p *Problem) InRange() (*Problem, Units, error) {
	none := Units{residual: 1}
	if err := p.ValidateStatement(); err != nil {
		return nil, none, err
	}
	if p.FixedPoint != nil {
		return p, none, nil // the values of an iteration are not scaled
	}
	m := p.magnitude(samplesPerAxis[p.Dimension])
	if !m.inRange() {
		m = p.magnitude(p.scanPointsPerAxis())
	}
	switch {
	case !m.any:
		return p, Units{residual: 1, largest: largestOf(0)}, nil
	case m.inRange():
		return p, Units{residual: math.Ldexp(1, m.residual), largest: largestOf(m.residual - m.operator)}, nil
	case max(m.operator, -m.operator) > maxOperatorExponent:
		return nil, none, p.Errorf(
			"the operator's diagonal is about %s; it must lie between %s and %s: choose other units of length or time",
			powerOfTen(m.operator), powerOfTen(-maxOperatorExponent), powerOfTen(maxOperatorExponent))
	case max(m.residual, m.residual-m.operator) > maxDataExponent:
		return nil, none, p.Errorf(
			"source, obstacles and boundary data are about %s, and values %s; both must be at most %s: choose other units",
			powerOfTen(m.residual),
			powerOfTen(m.residual-m.operator),
			powerOfTen(maxDataExponent),
		)
	}
	k := Scale(m.operator/2 - m.residual)
	return p.scaled(k), Units{k, math.Ldexp(1, m.operator/2), largestOf(-m.operator / 2)}, nil
}

// powerOfTen formats a power of 2 as a power of 10.
func powerOfTen(exponent int) string {
	return fmt.Sprintf("1e%+d", int(math.Round(float64(exponent)*math.Log10(2))))
}

// magnitude holds binary exponents of the sizes of a problem's numbers.
type magnitude struct {
	any      bool // something is not 0
	residual int  // the largest of A·u⁰ and f
	operator int  // the largest of A's diagonal
}

// inRange reports whether squares and energies are far from the limits of float64.
func (m *magnitude) inRange() bool {
	energy := 2*m.residual - m.operator
	return m.any && max(m.residual, -m.residual) <= maxResidualExponent && max(energy, -energy) <= maxEnergyExponent
}

// samplesPerAxis is the number of sampled points per axis, by dimension.
var samplesPerAxis = [4]int{1: 65, 2: 17, 3: 9}

// maxScanPoints is about the number of points sampled where the first samples are all 0 or out of range.
const maxScanPoints = 1 << 22

// scanPointsPerAxis returns the number of points per axis for maxScanPoints in total.
func (p *Problem) scanPointsPerAxis() int {
	n := int(math.Round(math.Pow(maxScanPoints, 1/float64(p.Dimension))))
	for a := range p.Dimension {
		if p.N[a]+2 > n {
			return n
		}
	}
	return math.MaxInt32
}

// magnitude samples the given number of points per axis, boundary included. It samples a nonstationary problem
// at the start and at the first and last steps.
func (p *Problem) magnitude(perAxis int) magnitude {
	var m magnitude
	if p.Evolution == nil {
		q := *p
		q.Initial = nil
		m.add(&q, perAxis)
		return m
	}
	for _, step := range []int{0, 1, p.Evolution.Steps} {
		if q := p.AtStep(step); q.ValidateStatement() == nil { // otherwise refused where the step begins
			m.add(q, perAxis)
		}
	}
	return m
}

// add includes a stationary problem. Its Initial counts as data.
func (m *magnitude) add(p *Problem, perAxis int) {
	values, source, diagonal := 0.0, 0.0, 0.0
	st := NewStencil(p)
	count := [3]int{1, 1, 1}
	for a := range p.Dimension {
		count[a] = min(p.N[a]+2, perAxis)
	}
	for _, idx := range (Box{Hi: count}).Each {
		for a := range p.Dimension {
			idx[a] = (idx[a] - 1) * (p.N[a] + 1) / max(1, count[a]-1)
		}
		values = MaxOrNaN(values, math.Abs(p.ReferenceAt(idx)))
		if p.onBoundary(idx) {
			continue
		}
		q := p.At(idx[0], idx[1], idx[2])
		if p.Initial != nil {
			values = MaxOrNaN(values, math.Abs(p.Initial(q)))
		}
		source = MaxOrNaN(source, math.Abs(p.Source.At(q)))
		diagonal = MaxOrNaN(diagonal, st.At(idx)[kernel.Center])
	}
	if !(diagonal > 0) || !kernel.Finite(diagonal) || !kernel.Finite(values) || !kernel.Finite(source) {
		return // refused where the functions are evaluated
	}
	if values == 0 && source == 0 {
		return
	}
	if !m.any {
		*m = magnitude{true, math.MinInt32, math.MinInt32}
	}
	operator := exponent(diagonal)
	m.operator = max(m.operator, operator)
	if values > 0 {
		m.residual = max(m.residual, exponent(values)+operator)
	}
	if source > 0 {
		m.residual = max(m.residual, exponent(source))
	}
}

// exponent returns e for v = m·2^e, ½ ≤ m < 1.
func exponent(v float64) int {
	_, e := math.Frexp(v)
	return e
}

// scaled returns the problem for 2^k·u.
func (p *Problem) scaled(k Scale) *Problem {
	q := *p
	q.Name = fmt.Sprintf("%s, values times 2^%d", p.Name, k)
	q.Source = Coefficient{Value: k.Times(p.Source.Value), Of: k.function(p.Source.Of)}
	q.Obstacle = k.function(p.Obstacle)
	q.Upper = k.function(p.Upper)
	q.Boundary = k.function(p.Boundary)
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

// CheckReference returns an error if the squared residual of the reference vector overflows. InRange may not
// have sampled the points that cause it.
func (p *Problem) CheckReference(squares *kernel.Sum) error {
	if kernel.Finite(squares.Float64()) {
		return nil
	}
	return p.MagnitudeError()
}

// MagnitudeError returns the error for data whose residual cannot be squared in float64.
func (p *Problem) MagnitudeError() error {
	return p.Errorf(
		"the residual of max(φ, 0) is too large to be squared: source, obstacles or boundary data are "+
			"more than 1e+%d times larger in some places than elsewhere",
		int(maxResidualExponent*math.Log10(2)),
	)
}
