package problems

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAllIsOrderedAndComplete(t *testing.T) {
	var names []string
	for _, b := range All() {
		names = append(names, b.Name)
		require.NotEmpty(t, b.Summary, b.Name)
		require.NotEmpty(t, b.Reference, b.Name)
		p, err := b.Make(cube(b.Dimension, 9))
		require.NoError(t, err)
		require.Equal(t, b.Name, p.Name)
		require.Equal(t, b.Exact, p.Exact != nil, b.Name)
		require.NotNil(t, p.Obstacle)
		require.NotNil(t, p.Boundary)
	}
	require.Equal(t, []string{"membrane", "ball3d", "ball2d", "paraboloid", "quartic", "quartic2d", "jacksboro",
		"front", "front2d", "front1d",
		"torsion", "torsion1d", "bearing", "bearing1d", "dam", "dam3d", "convection", "convection2d", "convection1d",
		"varying", "varying2d",
		"american-put", "american-call", "american-basket2d", "american-basket", "perpetual-put", "perpetual-call",
		"perpetual-geometric"}, names)
}

// No built-in has its obstacle above its boundary data.
func TestObstaclesLieBelowTheData(t *testing.T) {
	for _, b := range All() {
		p, err := b.Make(cube(b.Dimension, 21))
		require.NoError(t, err)
		eachNode(p, func(_ int, q problem.Point, boundary bool) {
			phi, data := p.Obstacle(q), p.Boundary(q)
			require.False(t, math.IsNaN(phi+p.Source.At(q)) || math.IsInf(phi, 0), "%s at %v", b.Name, q)
			if boundary {
				require.LessOrEqual(t, phi, data, "%s at %v", b.Name, q)
			}
		})
	}
}

func TestLookupSuggests(t *testing.T) {
	var names []string
	for _, b := range All() {
		names = append(names, b.Name)
	}
	for wrong, suggestion := range map[string]string{
		"membran": ` (did you mean "membrane"?)`,
		"Ball3D":  ` (did you mean "ball3d"?)`,
		"zzzzzzz": "",
	} {
		_, err := Lookup(wrong)
		want := fmt.Sprintf("no built-in problem %q%s; there are %s", wrong, suggestion, strings.Join(names, ", "))
		require.EqualError(t, err, want)
	}
	b, err := Lookup("quartic2d")
	require.NoError(t, err)
	require.Equal(t, 2, b.Dimension)
}

func TestParameters(t *testing.T) {
	b, err := Lookup("membrane")
	require.NoError(t, err)
	changed, err := b.With([]string{"c0=0.25", " k = 2 "})
	require.NoError(t, err)
	require.Equal(t, 0.5, b.Parameters[0].Value, "With must not change the receiver")
	p, err := changed.Make(cube(3, 3))
	require.NoError(t, err)
	require.Equal(t, 0.25, p.Obstacle(problem.Point{0.5, 0.5, 0.5}))
	require.Equal(t, 0.25-2*0.25, p.Obstacle(problem.Point{0, 0.5, 0.5}))

	for setting, want := range map[string]string{
		"c0":     `problem membrane: parameter "c0" is not of the form name=value`,
		"c1=1":   `problem membrane has no parameter "c1" (did you mean "c0"?); it has c0, k`,
		"k=four": `problem membrane: parameter k="four" is not a finite number`,
		"k=NaN":  `problem membrane: parameter k="NaN" is not a finite number`,
	} {
		_, err := b.With([]string{setting})
		require.EqualError(t, err, want)
	}
	_, err = b.With([]string{"k=4", "k=5"})
	require.EqualError(t, err, `problem membrane: parameter "k" is set twice`)
	terrain, err := Lookup("jacksboro")
	require.NoError(t, err)
	_, err = terrain.With([]string{"k=4"})
	require.EqualError(t, err, `problem jacksboro has no parameter "k"; it has none`)
}

func TestParametersOutOfRange(t *testing.T) {
	for _, c := range []struct{ name, setting string }{
		{"membrane", "c0=1.1"}, {"membrane", "k=-1"}, {"paraboloid", "c0=3"}, {"paraboloid", "c0=0"},
		{"quartic", "r0=1"}, {"quartic2d", "r0=-0.1"},
	} {
		b, err := Lookup(c.name)
		require.NoError(t, err)
		b, err = b.With([]string{c.setting})
		require.NoError(t, err)
		_, err = b.Make(cube(b.Dimension, 9))
		require.ErrorContains(t, err, "problem "+c.name+": ", c.setting)
	}
}

func TestGrid(t *testing.T) {
	for _, c := range []struct {
		dimension int
		n         []int
		want      [3]int
		err       string
	}{
		{3, []int{64}, [3]int{64, 64, 64}, ""},
		{2, []int{401, 342}, [3]int{401, 342, 1}, ""},
		{1, []int{1}, [3]int{1, 1, 1}, ""},
		{4, []int{3}, [3]int{}, "dimension 4: it must be 1, 2 or 3"},
		{2, []int{3, 4, 5}, [3]int{}, "3 numbers of grid points for a 2-D problem: give one for all axes, or 2"},
		{2, nil, [3]int{}, "0 numbers of grid points for a 2-D problem: give one for all axes, or 2"},
		{3, []int{8, 0, 8}, [3]int{}, "0 grid points along y: there must be at least 1"},
		{1, []int{MaxAxis + 1}, [3]int{}, "16777217 grid points along x: there may be at most 16777216"},
		{3, []int{4096}, [3]int{}, "a grid of [4096 4096 4096] has more than 8589934592 points"},
	} {
		got, err := Grid(c.dimension, c.n)
		if c.err != "" {
			require.EqualError(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	require.EqualError(t, CheckGrid(2, [3]int{4, 4, 4}), "4 grid points along z, but the problem is 2-D")
}

// On the grid of the data the obstacle equals the data, south first.
func TestJacksboroIsNotInterpolated(t *testing.T) {
	b, err := Lookup("jacksboro")
	require.NoError(t, err)
	p, err := b.Make([3]int{terrainColumns - 2, terrainRows - 2, 1})
	require.NoError(t, err)
	raw := terrain[terrainHeaderBytes:]
	eachNode(p, func(at int, q problem.Point, _ bool) {
		row, column := terrainRows-1-at/terrainColumns, at%terrainColumns
		i := 2 * (row*terrainColumns + column)
		metres := int16(uint16(raw[i]) | uint16(raw[i+1])<<8)
		require.Equal(t, 0.001*float64(metres), p.Obstacle(q))
	})
	require.InDelta(t, 0.3, p.Obstacle(problem.Point{15, 15}), 0.7, "heights are kilometres")
}

// A raster reproduces multilinear functions and stays within the range of its nodes.
func TestRasterIsMultilinear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Raster{Lo: problem.Point{-1, 2, 0}, Hi: problem.Point{3, 2.5, 7}}
		for a := range 3 {
			r.Size[a] = rapid.IntRange(2, 6).Draw(t, "size")
			r.Flip[a] = rapid.Bool().Draw(t, "flip")
		}
		c := rapid.SliceOfN(rapid.Float64Range(-5, 5), 8, 8).Draw(t, "coefficients")
		f := func(q problem.Point) float64 {
			x, y, z := q[0], q[1], q[2]
			return c[0] + c[1]*x + c[2]*y + c[3]*z + c[4]*x*y + c[5]*y*z + c[6]*x*z + c[7]*x*y*z
		}
		lo, hi := math.Inf(1), math.Inf(-1)
		r.Node = func(i int) float64 {
			idx := [3]int{i % r.Size[0], i / r.Size[0] % r.Size[1], i / r.Size[0] / r.Size[1]}
			var q problem.Point
			for a := range 3 {
				if r.Flip[a] {
					idx[a] = r.Size[a] - 1 - idx[a]
				}
				q[a] = r.Lo[a] + (r.Hi[a]-r.Lo[a])*float64(idx[a])/float64(r.Size[a]-1)
			}
			lo, hi = min(lo, f(q)), max(hi, f(q))
			return f(q)
		}
		g, err := r.Function()
		require.NoError(t, err)
		for i := range r.Size[0] * r.Size[1] * r.Size[2] {
			r.Node(i)
		}
		var q, beyond problem.Point
		for a := range 3 {
			q[a] = rapid.Float64Range(r.Lo[a], r.Hi[a]).Draw(t, "x")
			beyond[a] = rapid.Float64Range(-100, 100).Draw(t, "beyond")
		}
		require.InDelta(t, f(q), g(q), 1e-6)
		require.True(t, g(beyond) >= lo-1e-9 && g(beyond) <= hi+1e-9)
		require.False(t, math.IsNaN(g(problem.Point{math.NaN(), math.Inf(1), math.Inf(-1)})))
	})
}

func TestRasterRefusesEmptyBoxes(t *testing.T) {
	node := func(int) float64 { return 0 }
	for _, r := range []Raster{
		{Size: [3]int{0, 1, 1}, Node: node},
		{Size: [3]int{2, 1, 1}, Node: node},
		{Size: [3]int{1, 1, 1}, Hi: problem.Point{1}, Node: node},
	} {
		_, err := r.Function()
		require.Error(t, err)
	}
}

func BenchmarkMembraneObstacle(b *testing.B) {
	p := exampleProblem(b, "membrane", 63)
	for b.Loop() {
		eachNode(p, func(_ int, q problem.Point, _ bool) { p.Obstacle(q) })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(65*65*65), "ns/point")
}
