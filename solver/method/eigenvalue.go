package method

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// powerSteps is the number of steps of the power iteration. On small grids it separates the eigenvector
// of the smallest eigenvalue well enough.
const powerSteps = 200

// SmallestEigenvalue estimates the smallest eigenvalue of A on the points of u that touch no
// obstacle, by the Rayleigh quotient of a power iteration with I − 0.9·A/d, where d is the largest
// diagonal entry. It is +Inf if all points are in contact. For a nonsymmetric A it is a rough
// estimate only. The function allocates memory and is meant for coarse grids.
func SmallestEigenvalue(s System, u []float64) (float64, error) {
	l := s.Layout
	sweep, err := s.sweep(1)
	if err != nil {
		return 0, err
	}
	x, y := make([]float64, l.Len()), make([]float64, l.Len())
	var free []int
	for d := range l.Points() {
		i := l.Index(d%l.N[0], d/l.N[0]%l.N[1], d/(l.N[0]*l.N[1]))
		if s.Lower.At(d) < u[i] && u[i] < s.Upper.At(d) {
			free = append(free, i)
			x[i] = 1
		}
	}
	_, diagonal := diagonalRange(s.Operator)
	step := 0.9 / diagonal
	lowest := math.Inf(1)
	for range powerSteps {
		sweep.Apply(y, x, l.Interior())
		xx, xy := 0.0, 0.0
		for _, i := range free {
			xx += float64(x[i] * x[i])
			xy += float64(x[i] * y[i])
		}
		if !(xx > 0) {
			break
		}
		lowest = xy / xx
		scale := 1 / math.Sqrt(xx)
		for _, i := range free {
			x[i] = scale * (x[i] - float64(step*y[i]))
		}
	}
	return lowest, nil
}

// InitialOmega returns the first relaxation factor for a matrix with this largest diagonal entry
// and this smallest eigenvalue off contact.
func InitialOmega(diagonal, lowest float64) float64 { return OptimalOmega(max(0, 1-lowest/diagonal)) }

// UnconstrainedEigenvalue estimates the smallest eigenvalue of A without contact. It is exact for
// constant coefficients and an estimate otherwise.
func UnconstrainedEigenvalue(l kernel.Layout, op kernel.Operator) float64 {
	var row [kernel.Directions]float64
	n := 0
	every := max(1, l.Points()/4096)
	for d := 0; d < l.Points(); d += every {
		for k := range 1 + 2*l.Dim {
			switch op.Form {
			case kernel.Isotropic:
				row[k] += op.Off
				if k == kernel.Center {
					row[k] += op.Diag - op.Off
				}
			case kernel.Constant:
				row[k] += op.Values[k]
			default:
				row[k] += op.Arrays[k][d]
			}
		}
		n++
	}
	lowest := row[kernel.Center]
	for a := range l.Dim {
		// Convection makes the two coefficients unequal; their geometric mean determines the eigenvalue.
		off := geometricMean(row[kernel.West+2*a], row[kernel.East+2*a])
		lowest -= 2 * off * math.Cos(math.Pi/float64(l.N[a]+1))
	}
	return max(0, lowest/float64(n))
}

// geometricMean returns √(a·b), or 0 if a·b is negative.
func geometricMean(a, b float64) float64 {
	v := a * b
	if v > 0x1p-1000 && v < 0x1p1000 || a == 0 || b == 0 || math.Signbit(a) != math.Signbit(b) {
		return math.Sqrt(max(0, v))
	}
	return math.Sqrt(math.Abs(a)) * math.Sqrt(math.Abs(b)) // the product overflows or underflows
}

// StableOmega returns the largest factor with which SOR is expected to converge for a matrix that is not symmetric, and
// whether some diagonal scaling makes A symmetric. It reads the rows at the grid indices 1, 1 + stride, … ≤ n.
//
// If A can be scaled, the eigenvalues of the Jacobi iteration are real, and SOR converges for 0 < ω < 2. Otherwise they
// are in an ellipse whose imaginary half axis is τ, and SOR converges for 0 < ω < 2/(1 + τ) (Young, 1971, chapter 6).
// Locally, τ is Σ|a_ij − a_ji|/a_ii over the next neighbours j along the axes; the largest of the rows is used. For constant
// coefficients, no factor above that bound is optimal either. Where the diffusion varies, the entries of a row
// differ without any flow. τ counts as 1 at most where no entry
// beside the diagonal is positive: for an M-matrix SOR converges with ω = 1, however strong the flow.
func StableOmega(
	dim int, n, stride [3]int, row func(idx [3]int) [kernel.Directions]float64,
) (omega float64, scalable bool) {
	largest, same, monotone := 0.0, true, true
	first := row([3]int{1, 1, 1})
	scalable = true
	for z := 1; z <= n[2]; z += stride[2] {
		for y := 1; y <= n[1]; y += stride[1] {
			for x := 1; x <= n[0]; x += stride[0] {
				at := [3]int{x, y, z}
				v := row(at)
				largest = max(largest, skewAt(dim, n, at, v, row))
				same = same && v == first
				for _, off := range v[kernel.West : kernel.West+2*dim] {
					monotone = monotone && off >= 0 // −a_ij
				}
				scalable = scalable && scalableAt(dim, n, at, v, row)
			}
		}
	}
	if scalable && !same {
		return 2, true
	}
	if monotone {
		largest = min(1, largest)
	}
	return 2 / (1 + largest), scalable
}

// skewAt returns τ of a row v at a point.
func skewAt(dim int, n, at [3]int, v [kernel.Directions]float64, row func(idx [3]int) [kernel.Directions]float64) float64 {
	sum := 0.0
	for a := range dim {
		if at[a] == n[a] {
			continue
		}
		next := at
		next[a]++
		sum += math.Abs(v[kernel.East+2*a] - row(next)[kernel.West+2*a])
	}
	return sum / v[kernel.Center]
}

// scalableAt reports whether the rows at the corners of the cells above a point allow a diagonal scaling that makes A
// symmetric: around a cell, the product of the coefficients is the same in both directions.
func scalableAt(dim int, n, at [3]int, v [kernel.Directions]float64,
	row func(idx [3]int) [kernel.Directions]float64) bool {
	for a := range dim {
		if at[a] == n[a] {
			continue
		}
		right := at
		right[a]++
		w := row(right)
		if product(v[kernel.Center], v[kernel.East+2*a], w[kernel.West+2*a]) < 0 {
			return false
		}
		for b := a + 1; b < dim; b++ {
			if at[b] == n[b] {
				continue
			}
			up, far := at, right
			up[b]++
			far[b]++
			x, y := row(far), row(up)
			there := product(v[kernel.Center], v[kernel.East+2*a], w[kernel.East+2*b], x[kernel.West+2*a], y[kernel.West+2*b])
			back := product(v[kernel.Center], v[kernel.East+2*b], y[kernel.East+2*a], x[kernel.West+2*b], w[kernel.West+2*a])
			if !(math.Abs(there-back) <= 1e-9*max(math.Abs(there), math.Abs(back))) {
				return false
			}
		}
	}
	return true
}

// product returns the product of coefficients in units of a diagonal entry, which prevents overflow and underflow.
func product(diagonal float64, coefficients ...float64) float64 {
	v := 1.0
	for _, c := range coefficients {
		v *= c / diagonal
	}
	return v
}
