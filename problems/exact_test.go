package problems

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var long = flag.Bool("long", false, "also check the errors on the finest grids")

// solveDirectly solves a problem independently of package solver's methods: lexicographic projected SOR on the
// grid with its boundary, until no value changes by more than 1e-12.
func solveDirectly(t *testing.T, p *problem.Problem) (u []float64, size [3]int) {
	t.Helper()
	stride := [3]int{}
	for a, s := 0, 1; a < 3; a++ {
		size[a] = p.N[a]
		if a < p.Dimension {
			size[a] += 2
		}
		stride[a] = s
		s *= size[a]
	}
	points := size[0] * size[1] * size[2]
	u = make([]float64, points)
	phi, f := make([]float64, points), make([]float64, points)
	inside := make([]int, 0, points)
	var weight [3]float64
	diagonal, longest := 0.0, 0
	for a := range p.Dimension {
		h := p.Spacing(a)
		weight[a] = 1 / (h * h)
		diagonal += 2 / (h * h)
		longest = max(longest, p.N[a])
	}
	eachNode(p, func(at int, q problem.Point, boundary bool) {
		if boundary {
			u[at] = p.Boundary(q)
			return
		}
		phi[at], f[at] = p.Obstacle(q), p.Source.At(q)
		u[at] = max(phi[at], 0)
		inside = append(inside, at)
	})
	omega := 2 / (1 + math.Sin(math.Pi/float64(longest+1)))
	for sweep := 0; sweep < 20*longest+200; sweep++ {
		moved := 0.0
		for _, at := range inside {
			sum := f[at]
			for a := range p.Dimension {
				sum += weight[a] * (u[at-stride[a]] + u[at+stride[a]])
			}
			next := max(phi[at], u[at]+omega*(sum/diagonal-u[at]))
			moved = max(moved, math.Abs(next-u[at]))
			u[at] = next
		}
		if moved < 1e-12 {
			return u, size
		}
	}
	require.Fail(t, "projected SOR does not converge")
	return nil, size
}

// eachNode visits the closed grid in memory order.
func eachNode(p *problem.Problem, visit func(at int, q problem.Point, boundary bool)) {
	lo, hi := [3]int{1, 1, 1}, [3]int{1, 1, 1}
	for a := range p.Dimension {
		lo[a], hi[a] = 0, p.N[a]+1
	}
	at := 0
	for k := lo[2]; k <= hi[2]; k++ {
		for j := lo[1]; j <= hi[1]; j++ {
			for i := lo[0]; i <= hi[0]; i++ {
				edge := false
				for a, v := range [3]int{i, j, k} {
					edge = edge || a < p.Dimension && (v == lo[a] || v == hi[a])
				}
				visit(at, p.At(i, j, k), edge)
				at++
			}
		}
	}
}

func cube(d, n int) [3]int {
	g := [3]int{1, 1, 1}
	for a := range d {
		g[a] = n
	}
	return g
}

func exampleProblem(t require.TestingT, name string, n int, settings ...string) *problem.Problem {
	b, err := Lookup(name)
	require.NoError(t, err)
	b, err = b.With(settings)
	require.NoError(t, err)
	p, err := b.Make(cube(b.Dimension, n))
	require.NoError(t, err)
	return p
}

// The expected errors of the discrete solutions were computed by an independent program.
func TestDiscretisationErrors(t *testing.T) {
	cases := []struct {
		problem string
		n       int
		want    float64
		digits  float64 // half a unit of the last digit given; the check allows one unit
		long    bool
	}{
		{"ball3d", 31, 5.2288e-3, 5e-8, false},
		{"ball3d", 63, 1.0283e-3, 5e-8, true},
		{"ball3d", 127, 4.7826e-4, 5e-9, true},
		{"paraboloid", 15, 3.131e-3, 5e-7, false},
		{"paraboloid", 31, 1.158e-3, 5e-7, false},
		{"paraboloid", 63, 3.054e-4, 5e-8, true},
		{"quartic", 15, 3.798e-3, 5e-7, false},
		{"quartic", 31, 9.631e-4, 5e-8, false},
		{"quartic", 63, 2.392e-4, 5e-8, true},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s/%d", c.problem, c.n), func(t *testing.T) {
			if c.long && !*long {
				t.Skip("a fine grid: run with -args -long")
			}
			require.InDelta(t, c.want, maxError(t, exampleProblem(t, c.problem, c.n)), 2*c.digits)
		})
	}
}

func maxError(t *testing.T, p *problem.Problem) float64 {
	u, _ := solveDirectly(t, p)
	worst := 0.0
	eachNode(p, func(at int, q problem.Point, _ bool) {
		worst = max(worst, math.Abs(u[at]-p.Exact(q)))
	})
	return worst
}

// Without reference values in 2-D, the error must decrease with h².
func TestPlaneProblemsConverge(t *testing.T) {
	for _, name := range []string{"quartic2d", "ball2d"} {
		coarse, fine := maxError(t, exampleProblem(t, name, 15)), maxError(t, exampleProblem(t, name, 63))
		require.Less(t, fine, coarse/5, "%s: %g at n = 15, %g at 63", name, coarse, fine)
	}
}

// The contact set and the mean of the membrane have known values.
func TestMembraneContact(t *testing.T) {
	p := exampleProblem(t, "membrane", 31)
	u, _ := solveDirectly(t, p)
	contact, sum := 0, 0.0
	eachNode(p, func(at int, q problem.Point, boundary bool) {
		if !boundary && u[at] == p.Obstacle(q) {
			contact++
		}
		sum += u[at]
	})
	require.InDelta(t, 0.065, float64(contact)/(31*31*31), 0.01)
	require.InDelta(t, 0.0705, sum/(32*32*32), 0.0005)
}

// Every exact solution solves the complementarity problem φ ≤ u ≤ ψ with A·u = f where φ < u < ψ, A·φ ≥ f
// where u = φ, and A·ψ ≤ f where u = ψ. This is checked by fourth-order differences away from the free
// boundary. Across the free boundary the solution is C¹.
func TestExactSolutionsSolveTheirProblems(t *testing.T) {
	const h = 2e-3
	for _, b := range All() {
		if !b.Exact {
			continue
		}
		t.Run(b.Name, func(t *testing.T) {
			p, err := b.Make(cube(b.Dimension, 31))
			require.NoError(t, err)
			require.NotNil(t, p.Exact)
			rapid.Check(t, func(t *rapid.T) {
				var q problem.Point
				for a := range p.Dimension {
					q[a] = rapid.Float64Range(p.Lo[a]+3*h, p.Hi[a]-3*h).Draw(t, "coordinate")
				}
				gap := func(q problem.Point) float64 { return p.Exact(q) - p.Obstacle(q) }
				room := func(q problem.Point) float64 {
					if p.Upper == nil {
						return math.Inf(1)
					}
					return p.Upper(q) - p.Exact(q)
				}
				require.GreaterOrEqual(t, min(gap(q), room(q)), -1e-12)
				touching, above, apart := 0, 0, 0
				applied, jump := float64(p.Reaction.At(q)*p.Exact(q)), 0.0
				for a := range p.Dimension {
					var v [5]float64
					for i := range v {
						at := q
						at[a] += float64(i-2) * h
						v[i] = p.Exact(at)
						switch {
						case gap(at) <= 1e-12:
							touching++
						case room(at) <= 1e-12:
							above++
						default:
							apart++
						}
					}
					slope := (v[0] - 8*v[1] + 8*v[3] - v[4]) / (12 * h)
					applied += p.Diffusion.At(q) * (v[0] - 16*v[1] + 30*v[2] - 16*v[3] + v[4]) / (12 * h * h)
					applied += (p.Velocity[a].At(q) - slopeOf(p.Diffusion, q, a, h)) * slope
					jump = max(jump, math.Abs(v[3]-2*v[2]+v[1]))
				}
				if e := p.Evolution; e != nil { // the term u_t
					applied += (e.At(e.End+h).Exact(q) - e.At(e.End-h).Exact(q)) / (2 * h)
				}
				f := p.Source.At(q)
				scale := 1 + math.Abs(f)
				switch {
				case touching+above == 0:
					require.InDelta(t, f, applied, 1e-4*scale, "at %v", q)
				case apart+above == 0:
					require.GreaterOrEqual(t, applied, f-1e-4*scale, "at %v", q)
				case apart+touching == 0:
					require.LessOrEqual(t, applied, f+1e-4*scale, "at %v", q)
				default: // a kink at the free boundary would cause a jump of order h
					require.Less(t, jump, 40*h*h*scale, "at %v", q)
				}
			})
		})
	}
}

// slopeOf returns the derivative of a coefficient along an axis.
func slopeOf(c problem.Coefficient, q problem.Point, axis int, h float64) float64 {
	var v [5]float64
	for i := range v {
		at := q
		at[axis] += float64(i-2) * h
		v[i] = c.At(at)
	}
	return (v[0] - 8*v[1] + 8*v[3] - v[4]) / (12 * h)
}

// The solution does not depend on the source inside the contact set, so it is checked directly.
func TestQuarticSource(t *testing.T) {
	for _, name := range []string{"quartic", "quartic2d"} {
		p := exampleProblem(t, name, 3)
		for r2, want := range map[float64]float64{0: -8 * 0.49 * 1.49, 0.45: -8 * 0.49 * 1.04} {
			require.InDelta(t, want, p.Source.At(problem.Point{math.Sqrt(r2)}), 1e-12, name)
		}
		require.InDelta(t, -4*2, p.Source.At(problem.Point{1})+4*float64(p.Dimension)*0.51, 1e-12, name)
	}
}

// With the constants of ball2d, value and slope match at the contact radius, and the solution vanishes at r = 2.
func TestBall2DConstants(t *testing.T) {
	a, height := ball2DContact, math.Sqrt(1-ball2DContact*ball2DContact)
	require.InDelta(t, height, -ball2DA*math.Log(a)+ball2DB, 1e-14)
	require.InDelta(t, a/height, ball2DA/a, 1e-14)
	require.InDelta(t, 0, -ball2DA*math.Ln2+ball2DB, 1e-14)
}
