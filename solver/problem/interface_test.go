package problem_test

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/integrate/quad"
)

// logistic returns κ from 1 to k across an interface of the given width at a place on the first axis.
func logistic(at, width, k float64) func(problem.Point) float64 {
	return func(q problem.Point) float64 { return 1 + (k-1)/(1+math.Exp(-(q[0]-at)/width)) }
}

// logisticResistance returns ∫1/κ from 0, as a function of x.
func logisticResistance(at, width, k float64) func(float64) float64 {
	integral := func(x float64) float64 {
		e := (at - x) / width
		log := max(e, math.Log(k)) + math.Log1p(math.Exp(-math.Abs(e-math.Log(k)))) // log(k + exp(e))
		return x/k - width*(1-1/k)*log
	}
	return func(x float64) float64 { return integral(x) - integral(0) }
}

// interfaceError returns the largest error of −(κu′)′ = 10, u(0) = u(1) = 0, on n points.
func interfaceError(t *testing.T, n int, at, width, k float64) float64 {
	p := &problem.Problem{
		Name: "interface", Dimension: 1, Hi: problem.Point{1}, N: [3]int{n, 1, 1},
		Diffusion: problem.Coefficient{Of: logistic(at, width, k)}, Source: problem.Coefficient{Value: 10},
		Boundary: func(problem.Point) float64 { return 0 },
	}
	b, err := problem.Discretize(p, problem.Box{Hi: p.N})
	require.NoError(t, err)
	// elimination
	a := &b.Operator.Arrays
	u, upper := make([]float64, n), make([]float64, n)
	for i := range n {
		pivot, right := a[kernel.Center][i], 10.0
		if i > 0 {
			pivot -= a[kernel.West][i] * upper[i-1]
			right += a[kernel.West][i] * u[i-1]
		}
		upper[i], u[i] = a[kernel.East][i]/pivot, right/pivot
	}
	for i := n - 2; i >= 0; i-- {
		u[i] += upper[i] * u[i+1]
	}
	// u = q·R − 10·∫x/κ with R = ∫1/κ
	cuts := []float64{0, 1}
	for i := range n {
		cuts = append(cuts, float64(i+1)/float64(n+1))
	}
	for m := 1.0; m < 1e9; m *= 1.6 {
		cuts = append(cuts, at-m*width/4, at+m*width/4)
	}
	cuts = slices.DeleteFunc(append(cuts, at), func(x float64) bool { return x < 0 || x > 1 })
	slices.Sort(cuts)
	moment, of := map[float64]float64{0: 0}, p.Diffusion.Of
	for i, x := range cuts[1:] {
		moment[x] = moment[cuts[i]]
		if x > cuts[i] {
			moment[x] += quad.Fixed(func(x float64) float64 { return x / of(problem.Point{x}) }, cuts[i], x, 12, nil, 0)
		}
	}
	r := logisticResistance(at, width, k)
	q, worst := 10*moment[1]/r(1), 0.0
	for i := range n {
		x := float64(i+1) / float64(n+1)
		worst = max(worst, math.Abs(u[i]-(q*r(x)-10*moment[x])))
	}
	return worst
}

// TestErrorAtInterfacesOfAnyWidthIsSecondOrder checks the order in 1-D for interfaces from much thinner than the
// spacing to the size of the domain. The error at a thin interface depends on its place in the edge, so the root mean
// square over 16 places is compared.
func TestErrorAtInterfacesOfAnyWidthIsSecondOrder(t *testing.T) {
	sizes := []int{31, 63, 127, 255, 511}
	for _, k := range []float64{1e-4, 1e-2, 1e2, 1e4} {
		for _, width := range []float64{1e-7, 1e-5, 1e-3, 1e-1, 1} {
			line, last := fmt.Sprintf("contrast %-6g width %-6g", k, width), 0.0
			for _, n := range sizes {
				sum := 0.0
				for i := range 16 {
					e := interfaceError(t, n, 0.6+0.3*math.Mod(float64(i)*(math.Sqrt(5)-1)/2, 1), width, k)
					sum += e * e / 16
				}
				e := math.Sqrt(sum)
				if line += fmt.Sprintf("  %.2e", e); last > 0 {
					line += fmt.Sprintf(" (%.2f)", last/e)
					require.Greater(t, last/e, 3.5, line)
				}
				last = e
			}
			t.Log(line)
		}
	}
}

// TestErrorAtRoundInterfacesIsSecondOrder checks interfaces around a disk and a ball, where −div(κ∇u) = d.
func TestErrorAtRoundInterfacesIsSecondOrder(t *testing.T) {
	for _, c := range []struct{ dimension, coarse, fine int }{{2, 31, 127}, {3, 15, 31}} {
		if c.dimension == 3 && testing.Short() {
			continue
		}
		for _, k := range []float64{1e-2, 1e2} {
			for _, width := range []float64{1e-6, 1e-3, 1e-1} {
				var e [2]float64
				for i, n := range []int{c.coarse, c.fine} {
					e[i] = errorOf(t, roundInterface(n, c.dimension, width, k))
				}
				ratio := math.Pow(e[0]/e[1], 1/math.Log2(float64(c.fine+1)/float64(c.coarse+1)))
				t.Logf("%d-D contrast %-5g width %-5g  %.2e %.2e  ratio per halving %.2f", c.dimension, k, width, e[0], e[1], ratio)
				require.Greater(t, ratio, 2.8) // of the largest error, which depends on the places of few points
			}
		}
	}
}

// roundInterface returns a problem whose κ goes from 1 to k at a distance of 0.31 from a point near the centre. u is
// the integral of r/κ(r) from r to 1.
func roundInterface(n, dimension int, width, k float64) *problem.Problem {
	profile := logistic(0.31, width, k)
	far := func(q problem.Point) float64 {
		sum := 0.0
		for a, centre := range []float64{0.47, 0.53, 0.51}[:dimension] {
			sum += (q[a] - centre) * (q[a] - centre)
		}
		return math.Sqrt(sum)
	}
	cuts := []float64{0, 0.31, 1}
	for m := 1.0; m < 1e9; m *= 1.6 {
		cuts = append(cuts, 0.31-m*width/4, 0.31+m*width/4)
	}
	cuts = slices.DeleteFunc(cuts, func(x float64) bool { return x < 0 || x > 1 })
	slices.Sort(cuts)
	between := func(from, to float64) float64 {
		if to <= from {
			return 0
		}
		return quad.Fixed(func(r float64) float64 { return r / profile(problem.Point{r}) }, from, to, 8, nil, 0)
	}
	beyond := make([]float64, len(cuts)) // the integral from each of them
	for i := len(cuts) - 2; i >= 0; i-- {
		beyond[i] = beyond[i+1] + between(cuts[i], cuts[i+1])
	}
	exact := func(q problem.Point) float64 {
		r := far(q)
		i, _ := slices.BinarySearch(cuts, r)
		return between(r, cuts[i]) + beyond[i]
	}
	p := &problem.Problem{
		Name: "round interface", Dimension: dimension, N: [3]int{1, 1, 1},
		Source: problem.Coefficient{Value: float64(dimension)}, Exact: exact, Boundary: exact,
		Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 { return profile(problem.Point{far(q)}) }},
	}
	for a := range dimension {
		p.N[a], p.Hi[a] = n, 1
	}
	return p
}

// TestEvaluationsOfDiffusion checks how often κ is evaluated for an edge.
func TestEvaluationsOfDiffusion(t *testing.T) {
	count := func(of problem.Function, n, dimension int) float64 {
		var calls atomic.Int64
		p := &problem.Problem{
			Name: "count", Dimension: dimension, Hi: problem.Point{1, 1, 1}, N: [3]int{n, 1, 1},
			Boundary:  func(problem.Point) float64 { return 0 },
			Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 { calls.Add(1); return of(q) }},
		}
		for a := range dimension {
			p.N[a] = n
		}
		_, err := problem.Discretize(p, problem.Box{Hi: p.N})
		require.NoError(t, err)
		return float64(calls.Load()) / float64(p.Points())
	}
	for _, c := range []struct {
		name         string
		of           problem.Function
		n, dimension int
		most         float64 // evaluations per point
	}{
		{"smooth", func(q problem.Point) float64 { return math.Exp(math.Sin(3 * q[0])) }, 99, 1, 2.1},
		{"smooth, 2-D", func(q problem.Point) float64 { return 1 + q[0]*q[1] }, 49, 2, 3.2},
		{"a jump", func(q problem.Point) float64 { return 1 + 1e4*math.Floor(2*q[0]+0.3) }, 99, 1, 2.1 + 220./99},
		{"an interface", logistic(0.77, 1e-5, 100), 99, 1, 2.1 + 160./99},
		{"steep everywhere", func(q problem.Point) float64 { return math.Exp(20 * q[0]) }, 99, 1, 6},
		{"hostile", func(q problem.Point) float64 { return 1 + math.Abs(math.Sin(1e9*q[0])) }, 99, 1, 350},
	} {
		got := count(c.of, c.n, c.dimension)
		t.Logf("%-18s %.1f evaluations per point", c.name, got)
		require.LessOrEqual(t, got, c.most, c.name)
	}
}
