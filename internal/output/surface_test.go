package output

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/xml"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// polyData is a .vtp file read back.
type polyData struct {
	points  []problem.Point
	u       []float64
	cells   [][]int
	contact []byte
	kind    string
}

// readVTP reads appended raw arrays by the offsets in the XML, as VTK does.
func readVTP(t *testing.T, content []byte) polyData {
	type array struct {
		Type       string `xml:"type,attr"`
		Name       string `xml:"Name,attr"`
		Components int    `xml:"NumberOfComponents,attr"`
		Format     string `xml:"format,attr"`
		Offset     int    `xml:"offset,attr"`
	}
	type list struct {
		Arrays []array `xml:"DataArray"`
	}
	var f struct {
		Type   string `xml:"type,attr"`
		Header string `xml:"header_type,attr"`
		Piece  struct {
			Points              int `xml:"NumberOfPoints,attr"`
			NVerts              int `xml:"NumberOfVerts,attr"`
			NLines              int `xml:"NumberOfLines,attr"`
			NPolys              int `xml:"NumberOfPolys,attr"`
			PointData, CellData list
			Coordinates         list `xml:"Points"`
			Verts, Lines, Polys list
		} `xml:"PolyData>Piece"`
	}
	mark := bytes.Index(content, []byte("\n_")) + 1
	require.NoError(t, xml.Unmarshal([]byte(string(content[:mark])+"</AppendedData></VTKFile>"), &f))
	require.Equal(t, "PolyData", f.Type)
	require.Equal(t, "UInt64", f.Header)
	raw := func(a array, kind string) []byte {
		require.Equal(t, kind, a.Type)
		require.Equal(t, "appended", a.Format)
		data := content[mark+1+a.Offset:]
		return data[8:][:binary.LittleEndian.Uint64(data)]
	}
	numbers := func(a array, kind string) (out []uint64) {
		for b := raw(a, kind); len(b) > 0; b = b[8:] {
			out = append(out, binary.LittleEndian.Uint64(b))
		}
		return out
	}
	p := polyData{}
	require.Equal(t, 3, f.Piece.Coordinates.Arrays[0].Components)
	xyz := numbers(f.Piece.Coordinates.Arrays[0], "Float64")
	require.Len(t, xyz, 3*f.Piece.Points)
	for i := 0; i < len(xyz); i += 3 {
		p.points = append(p.points, problem.Point{math.Float64frombits(xyz[i]), math.Float64frombits(xyz[i+1]),
			math.Float64frombits(xyz[i+2])})
	}
	for _, b := range numbers(f.Piece.PointData.Arrays[0], "Float64") {
		p.u = append(p.u, math.Float64frombits(b))
	}
	require.Len(t, p.u, f.Piece.Points)
	p.contact = raw(f.Piece.CellData.Arrays[0], "UInt8")
	count := f.Piece.NVerts + f.Piece.NLines + f.Piece.NPolys
	for kind, l := range map[string]list{"Verts": f.Piece.Verts, "Lines": f.Piece.Lines, "Polys": f.Piece.Polys} {
		if len(l.Arrays) == 0 {
			continue
		}
		p.kind = kind
		require.Equal(t, "connectivity", l.Arrays[0].Name)
		require.Equal(t, "offsets", l.Arrays[1].Name)
		corners, from := numbers(l.Arrays[0], "Int64"), 0
		for _, end := range numbers(l.Arrays[1], "Int64") {
			var c []int
			for _, i := range corners[from:end] {
				require.Less(t, int(i), f.Piece.Points)
				c = append(c, int(i))
			}
			from = int(end)
			p.cells = append(p.cells, c)
		}
		require.Len(t, corners, from)
	}
	require.Len(t, p.cells, count)
	require.Len(t, p.contact, count)
	return p
}

// exact returns a built-in problem with its exact solution on a grid.
func exact(t *testing.T, name string, n [3]int) Solution {
	b, err := problems.Lookup(name)
	require.NoError(t, err)
	p, err := b.Make(n)
	require.NoError(t, err)
	s := Solution{Problem: p}
	for k := 1; k <= n[2]; k++ {
		for j := 1; j <= n[1]; j++ {
			for i := 1; i <= n[0]; i++ {
				s.U = append(s.U, p.Exact(p.At(i, j, k)))
			}
		}
	}
	return s
}

// requireClosed requires that every edge of a triangle also belongs to one other triangle in the opposite
// direction. It returns the number of edges.
func requireClosed(t require.TestingT, cells [][]int) int {
	edges := map[[2]int]int{}
	for _, c := range cells {
		for i := range c {
			edges[[2]int{c[i], c[(i+1)%3]}]++
		}
	}
	for e, n := range edges {
		require.Equal(t, 1, n, "edge %v", e)
		require.Equal(t, 1, edges[[2]int{e[1], e[0]}], "edge %v in the opposite direction", e)
	}
	return len(edges) / 2
}

// measure returns the area of triangles and the volume that they enclose.
func measure(points []problem.Point, cells [][]int) (area, volume float64) {
	for _, c := range cells {
		a, b, d := points[c[0]], points[c[1]], points[c[2]]
		u, v := minus(b, a), minus(d, a)
		n := [3]float64{u[1]*v[2] - u[2]*v[1], u[2]*v[0] - u[0]*v[2], u[0]*v[1] - u[1]*v[0]}
		area += math.Sqrt(n[0]*n[0]+n[1]*n[1]+n[2]*n[2]) / 2
		volume += (a[0]*n[0] + a[1]*n[1] + a[2]*n[2]) / 6
	}
	return area, volume
}

// The contact set of the ball problem is a ball of radius 1/√2. The surface has its area and volume, and its
// normals point outwards.
func TestFreeBoundaryOfTheBall(t *testing.T) {
	for _, c := range []struct {
		n          int
		area, deep float64
	}{{31, 0.05, 0.03}, {63, 0.02, 0.01}} {
		s := exact(t, "ball3d", [3]int{c.n, c.n, c.n})
		_, content := write(t, "surface.vtp", s)
		p := readVTP(t, content)
		require.Equal(t, "Polys", p.kind)
		edges := requireClosed(t, p.cells)
		require.Equal(t, 2, len(p.points)-edges+len(p.cells), "Euler characteristic of a sphere")
		area, volume := measure(p.points, p.cells)
		t.Logf("n = %d: area %.5f of %.5f, volume %.5f of %.5f", c.n, area, 2*math.Pi, volume, math.Pi*math.Sqrt2/3)
		require.InEpsilon(t, 2*math.Pi, area, c.area)
		require.InEpsilon(t, math.Pi*math.Sqrt2/3, volume, c.deep)
		for i, q := range p.points {
			r := math.Sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2])
			require.InDelta(t, math.Sqrt(0.5), r, 0.4*4/float64(c.n+1))
			require.Equal(t, s.Problem.Obstacle(q), p.u[i])
		}
		for _, side := range p.contact {
			require.EqualValues(t, onObstacle, side)
		}
	}
}

// In 2-D the free boundary is one closed curve, the circle of radius 0.698, with the contact set on its left.
func TestFreeBoundaryOfTheDisc(t *testing.T) {
	s := exact(t, "ball2d", [3]int{63, 63, 1})
	_, content := write(t, "curve.vtp", s)
	p := readVTP(t, content)
	require.Equal(t, "Lines", p.kind)
	require.Len(t, p.cells, 1)
	c := p.cells[0]
	require.Equal(t, c[0], c[len(c)-1])
	require.Len(t, p.points, len(c)-1)
	length, area := 0.0, 0.0
	for i := 1; i < len(c); i++ {
		a, b := p.points[c[i-1]], p.points[c[i]]
		length += math.Hypot(b[0]-a[0], b[1]-a[1])
		area += (a[0]*b[1] - a[1]*b[0]) / 2
	}
	require.InEpsilon(t, 2*math.Pi*0.697965, length, 0.01)
	require.InEpsilon(t, math.Pi*0.697965*0.697965, area, 0.006)

	_, content = write(t, "disc.Contour.csv", s)
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"contour", "contact", "x", "y", "u"}, rows[0])
	require.Len(t, rows, 1+len(c))
	for i, r := range rows[1:] {
		want := p.points[c[i]]
		for col, v := range map[int]float64{0: 0, 1: onObstacle, 2: want[0], 3: want[1], 4: p.u[c[i]]} {
			got, err := strconv.ParseFloat(r[col], 64)
			require.NoError(t, err)
			require.Equal(t, v, got)
		}
	}
}

// For arbitrary contact sets on both obstacles the surfaces are closed and their normals point away from the
// contact sets, so each encloses a positive volume.
func TestFreeBoundaryIsClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 3).Draw(t, "dimension")
		s := sample(d)
		s.Problem.Obstacle = func(problem.Point) float64 { return 0 }
		s.Problem.Upper = func(problem.Point) float64 { return 100 }
		contacts := [3]int{}
		for i := range s.U {
			which := rapid.SampledFrom([]int{free, free, onObstacle, onUpper}).Draw(t, "contact")
			s.U[i] = []float64{rapid.Float64Range(0.1, 99).Draw(t, "u"), 0, 100}[which]
			contacts[which]++
		}
		g, err := newGrid(s)
		require.NoError(t, err)
		m := freeBoundary(g)
		for _, side := range []byte{onObstacle, onUpper} {
			var cells [][]int
			for i, c := range m.cells {
				if m.side[i] == side {
					cells = append(cells, c[:d])
				}
			}
			require.Equal(t, contacts[side] > 0, len(cells) > 0)
			if len(cells) == 0 {
				continue
			}
			switch d {
			case 1:
				require.Zero(t, len(cells)%2)
			case 2:
				ends := map[int]int{}
				area := 0.0
				for _, c := range cells {
					ends[c[0]]++
					ends[c[1]]--
					a, b := m.points[c[0]], m.points[c[1]]
					area += (a[0]*b[1] - a[1]*b[0]) / 2
				}
				for p, n := range ends {
					require.Zero(t, n, "point %d", p)
				}
				require.Positive(t, area)
			default:
				requireClosed(t, cells)
				_, volume := measure(m.points, cells)
				require.Positive(t, volume)
			}
		}
		if d == 2 {
			curves, sides := m.loops()
			require.Len(t, sides, len(curves))
			total := 0
			for _, c := range curves {
				require.Equal(t, c[0], c[len(c)-1])
				total += len(c) - 1
			}
			require.Equal(t, len(m.points), total)
		}
	})
}

func TestFreeBoundaryRefused(t *testing.T) {
	s := sample(3)
	require.ErrorContains(t, CheckProblem("a.contour.csv", s.Problem), "2 dimensions, this one has 3")
	require.ErrorContains(t, Write("a.contour.csv", s), "2 dimensions")
	require.NoError(t, CheckProblem("a.csv", s.Problem))
	require.NoError(t, CheckProblem("a.vtp", s.Problem))
	s.Problem.Obstacle = nil
	require.ErrorContains(t, CheckProblem("a.VTP", s.Problem), "no free boundary")
	require.NoError(t, CheckProblem("a.vti", s.Problem))
}
