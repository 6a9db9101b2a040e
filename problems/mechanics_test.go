package problems

import (
	"math"
	"strings"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// solve returns the discrete solution up to rounding.
func solve(t *testing.T, p *problem.Problem) []float64 {
	t.Helper()
	s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-11, 0, 0, 400000)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, s.Reason)
	return s.U
}

// The error against an exact solution decreases with h², for upwind differences with h. It also depends on
// the position of the free boundary between grid points, so two halvings are compared together.
func TestMechanicsConverge(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		coarse   int
		order    float64
	}{
		"torsion1d":    {[]string{"c=7"}, 15, 1.8},
		"bearing1d":    {[]string{"eccentricity=0.6"}, 15, 1.8},
		"convection1d": {nil, 15, 1.8},
		"convection2d": {nil, 7, 1.7},
		"varying2d":    {nil, 7, 1.7},
	} {
		coarse, fine := exampleProblem(t, name, c.coarse, c.settings...), exampleProblem(t, name, 4*c.coarse+3,
			c.settings...)
		a, b := verify.MaxError(coarse, solve(t, coarse)), verify.MaxError(fine, solve(t, fine))
		require.Greater(t, math.Log2(a/b)/2, c.order, "%s: %g, %g", name, a, b)
	}
	rough := func(n int) float64 {
		p := exampleProblem(t, "convection1d", n, "eta=0.002", "speed=-1")
		require.NotEmpty(t, p.Warnings())
		return verify.MaxError(p, solve(t, p))
	}
	require.Greater(t, math.Log2(rough(31)/rough(63)), 0.7, "upwind")
}

// A bar twisted in the opposite direction has the opposite stress. An elastic bar has no plastic points, and
// the number of plastic points increases with the twist.
func TestTorsion(t *testing.T) {
	at := func(c string) (u []float64, plastic int) {
		p := exampleProblem(t, "torsion", 15, "c="+c)
		u = solve(t, p)
		i := 0
		for y := 1; y <= 15; y++ {
			for x := 1; x <= 15; x++ {
				if q := p.At(x, y, 1); u[i] == p.Upper(q) || u[i] == p.Obstacle(q) {
					plastic++
				}
				i++
			}
		}
		return u, plastic
	}
	there, few := at("5")
	back, _ := at("-5")
	for i, v := range there {
		require.InDelta(t, v, -back[i], 1e-10)
	}
	_, none := at("1")
	_, many := at("15")
	require.Zero(t, none)
	require.Positive(t, few)
	require.Greater(t, many, 2*few)
}

// With equal levels there is no flow and w is quadratic, so the differences are exact. Otherwise the wet part
// descends to a seepage face above the lower level, and the pressure is between 0 and the hydrostatic one.
func TestDam(t *testing.T) {
	still := exampleProblem(t, "dam", 11, "h2=3.22")
	u := solve(t, still)
	for j := 1; j <= 11; j++ {
		want := still.Boundary(problem.Point{0, still.At(1, j, 1)[1]})
		require.InDelta(t, want, u[11*(j-1)+5], 1e-9)
	}
	const n = 31
	p := exampleProblem(t, "dam", n)
	u = solve(t, p)
	last := math.Inf(1)
	for i := range n {
		height := 0.0
		for j := range n {
			if u[i+n*j] > 0 {
				height = p.At(i+1, j+1, 1)[1]
			}
			if j > 0 {
				fall := (u[i+n*(j-1)] - u[i+n*j]) / p.Spacing(1) // pressure between the two points
				require.GreaterOrEqual(t, fall, -1e-9)
				require.LessOrEqual(t, fall, 3.22-p.At(i+1, j, 1)[1]+1e-9)
			}
		}
		require.LessOrEqual(t, height, last, "the free surface falls downstream")
		require.Greater(t, height, 0.84, "a seepage face")
		last = height
	}
}

// The boundary data on the base of the block are a harmonic function.
func TestDam3DBase(t *testing.T) {
	p := exampleProblem(t, "dam3d", 5)
	base := func(x, y float64) float64 { return p.Boundary(problem.Point{x, y, 0}) }
	const h = 0.125
	for _, q := range [][2]float64{{0.5, 0.5}, {1, 1.5}, {1.75, 0.25}} {
		laplace := base(q[0]+h, q[1]) + base(q[0]-h, q[1]) + base(q[0], q[1]+h) + base(q[0], q[1]-h) - 4*base(q[0],
			q[1])
		require.InDelta(t, 0, laplace, 1e-12)
	}
	require.InDelta(t, 2.0, base(0, 0), 1e-12)
	require.InDelta(t, 0.25*0.25/2, base(2, 2), 1e-12)
	require.Zero(t, p.Boundary(problem.Point{1, 1, 2}))
	require.InDelta(t, 0.5*0.5*0.5, p.Boundary(problem.Point{0, 2, 0.5}), 1e-12)
}

func TestMechanicsRefuse(t *testing.T) {
	for setting, why := range map[string]string{
		"bearing/eccentricity=1": "between 0 and 1", "bearing/b=0": "positive", "dam/h2=4": "0 to 3.22",
		"dam/a=-1":    "positive",
		"dam3d/h11=3": "0 to 2", "convection/eta=0": "positive", "convection/eta=1e-4": "too large",
		"convection/at=-1": "negative",
		"varying/k=-1":     "negative", "varying/r0=1": "between 0 and 1",
	} {
		name, set, _ := strings.Cut(setting, "/")
		b, err := Lookup(name)
		require.NoError(t, err)
		b, err = b.With([]string{set})
		require.NoError(t, err)
		_, err = b.Make(cube(b.Dimension, 5))
		require.ErrorContains(t, err, why, setting)
	}
}
