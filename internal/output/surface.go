package output

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// surface is the free boundary, that is, the border between points in contact with an obstacle and free
// points. It is computed by marching through the simplices of each cell (Freudenthal's triangulation: the
// paths from one corner to the opposite one; Doi and Koide 1991 for tetrahedra).
//
// Boundary points of the domain count as free, so surfaces are closed: every edge of a triangle belongs to
// two triangles, in opposite directions. Normals point away from the contact set. In 2-D the cells are
// segments with the contact set on their left, in 1-D points.
type surface struct {
	points []problem.Point
	value  []float64 // values of the obstacle at the points, which u equals
	cells  [][3]int  // indices of points, as many as axes
	side   []byte    // obstacle of each cell: onObstacle or onUpper
}

// marcher computes the surface of one obstacle.
type marcher struct {
	g        *grid
	out      *surface
	in       *layers
	side     byte
	vertices map[int]int // vertices by edge: 8·node + direction
}

// freeBoundary returns the surfaces of both obstacles.
func freeBoundary(g *grid) *surface {
	out := &surface{}
	if g.p.Obstacle != nil {
		march(g, out, onObstacle)
	}
	if g.p.Upper != nil {
		march(g, out, onUpper)
	}
	return out
}

// simplices returns the paths along the axes from corner 0 of a cell to the opposite corner. Bit a of a
// corner is its offset along axis a.
func simplices(dimension int) [][]int {
	switch dimension {
	case 1:
		return [][]int{{0, 1}}
	case 2:
		return [][]int{{0, 1, 3}, {0, 2, 3}}
	}
	return [][]int{{0, 1, 3, 7}, {0, 1, 5, 7}, {0, 2, 3, 7}, {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 4, 6, 7}}
}

// march adds the surface of one obstacle.
func march(g *grid, out *surface, side byte) {
	m := marcher{g: g, out: out, in: newLayers(g), side: side, vertices: map[int]int{}}
	tuples := simplices(g.p.Dimension)
	_ = g.eachCell(func(_ int, base [3]int) error { // never returns an error
		if m.mixed(base) {
			for _, s := range tuples {
				m.simplex(base, s)
			}
		}
		return nil
	})
}

// corner returns a corner of the cell at base, as node indices from 0 along each axis.
func corner(base [3]int, bits int) [3]int {
	for a := range base {
		base[a] += bits >> a & 1
	}
	return base
}

func (m *marcher) inside(n [3]int) bool { return m.in.at(n) == m.side }

// mixed reports whether the surface passes through a cell.
func (m *marcher) mixed(base [3]int) bool {
	first := m.inside(base)
	for bits := 1; bits < 1<<m.g.p.Dimension; bits++ {
		if m.inside(corner(base, bits)) != first {
			return true
		}
	}
	return false
}

func (m *marcher) simplex(base [3]int, bits []int) {
	var in, out [][3]int
	for _, b := range bits {
		if n := corner(base, b); m.inside(n) {
			in = append(in, n)
		} else {
			out = append(out, n)
		}
	}
	switch {
	case len(in) == 0 || len(out) == 0:
	case len(in) == 2 && len(out) == 2:
		m.cell(in, out, [][2]int{{0, 0}, {0, 1}, {1, 1}})
		m.cell(in, out, [][2]int{{0, 0}, {1, 1}, {1, 0}})
	case len(in) == 1:
		m.cell(in, out, [][2]int{{0, 0}, {0, 1}, {0, 2}}[:len(out)])
	default:
		m.cell(in, out, [][2]int{{0, 0}, {1, 0}, {2, 0}}[:len(in)])
	}
}

// cell adds a point, segment or triangle. Each vertex lies between a pair of nodes, one of in and one of
// out. The orientation follows from the midpoints of these edges, which never coincide.
func (m *marcher) cell(in, out [][3]int, pairs [][2]int) {
	var c [3]int
	var middle [3][3]float64
	for i, p := range pairs {
		a, b := in[p[0]], out[p[1]]
		c[i] = m.vertex(a, b)
		for x := range middle[i] {
			middle[i][x] = float64(a[x]+b[x]) / 2
		}
	}
	var away [3]float64 // from a point in contact to a free point
	for x := range away {
		away[x] = float64(out[0][x] - in[0][x])
	}
	u, v := minus(middle[1], middle[0]), minus(middle[2], middle[0])
	swap := false
	switch len(pairs) {
	case 2:
		swap = u[0]*away[1]-u[1]*away[0] > 0
	case 3:
		swap = away[0]*(u[1]*v[2]-u[2]*v[1])+away[1]*(u[2]*v[0]-u[0]*v[2])+away[2]*(u[0]*v[1]-u[1]*v[0]) < 0
	}
	if swap {
		c[0], c[1] = c[1], c[0]
	}
	m.out.cells = append(m.out.cells, c)
	m.out.side = append(m.out.side, m.side)
}

func minus(a, b [3]float64) [3]float64 { return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

// vertex returns the index of the surface point between a, in contact, and b, free. It makes each point once.
func (m *marcher) vertex(a, b [3]int) int {
	low, direction := a, 0
	for x := range a {
		low[x] = min(a[x], b[x])
		if a[x] != b[x] {
			direction |= 1 << x
		}
	}
	key := 8*m.g.index(low) + direction
	if v, ok := m.vertices[key]; ok {
		return v
	}
	t := m.crossing(a, b)
	p, q := m.node(a), m.node(b)
	var at problem.Point
	for x := range at {
		at[x] = p.at[x] + t*(q.at[x]-p.at[x])
	}
	m.vertices[key] = len(m.out.points)
	m.out.points = append(m.out.points, at)
	m.out.value = append(m.out.value, m.obstacle(at))
	return m.vertices[key]
}

func (m *marcher) node(n [3]int) node {
	return m.g.node(n[0]+m.g.first[0], n[1]+m.g.first[1], n[2]+m.g.first[2])
}

func (m *marcher) obstacle(at problem.Point) float64 {
	if m.side == onUpper {
		return m.g.p.Upper(at)
	}
	return m.g.p.Obstacle(at)
}

// minFraction is the smallest distance of a vertex from a node, as a part of the edge.
const minFraction = 0.01

// crossing returns the position of the surface on the edge from a, in contact, to b, free. Near a regular
// free boundary u − φ grows with the square of the distance (Caffarelli 1977), so its root is extrapolated
// linearly from b and the node behind it. If that is not possible, the crossing is the midpoint.
func (m *marcher) crossing(a, b [3]int) float64 {
	behind := b
	for x := range b {
		behind[x] += b[x] - a[x]
		if behind[x] < 0 || behind[x] >= m.g.nodes(x) {
			return 0.5
		}
	}
	near, far := m.rootDistance(b), m.rootDistance(behind)
	if !(far > near) {
		return 0.5
	}
	t := 1 - near/(far-near)
	return min(max(t, minFraction), 1-minFraction)
}

func (m *marcher) rootDistance(n [3]int) float64 {
	v := m.node(n)
	return math.Sqrt(math.Abs(v.u - m.obstacle(v.at)))
}

// loops returns the closed curves of a 2-D surface, each as the indices of its points in order, and the
// obstacle of each curve.
func (s *surface) loops() (curves [][]int, sides []byte) {
	next := make([]int, len(s.points))
	side := make([]byte, len(s.points))
	for i, c := range s.cells {
		next[c[0]], side[c[0]] = c[1], s.side[i]
	}
	done := make([]bool, len(s.points))
	for start := range s.points {
		if done[start] {
			continue
		}
		var curve []int
		for i := start; !done[i]; i = next[i] {
			done[i] = true
			curve = append(curve, i)
		}
		curves, sides = append(curves, append(curve, start)), append(sides, side[start])
	}
	return curves, sides
}
