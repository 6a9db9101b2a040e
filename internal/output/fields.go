package output

import (
	"encoding/binary"
	"io"
	"math"
)

// field is an array over the nodes of the closed grid, computed as it is written.
type field struct {
	name  string
	bytes int // of a value: 8 for float64, 1 for uint8
	put   func(n node, b []byte)
}

// fields returns u, contact (0 free, 1 on the obstacle, 2 on the upper obstacle) and, where they exist, obstacle,
// upper, force and the extra fields.
func fields(g *grid) []field {
	all := []field{
		floats("u", func(n node) float64 { return n.u }),
		{"contact", 1, func(n node, b []byte) { b[0] = g.contact(n) }},
	}
	if g.p.Obstacle != nil {
		all = append(all, floats("obstacle", func(n node) float64 { return g.p.Obstacle(n.at) }))
	}
	if g.p.Upper != nil {
		all = append(all, floats("upper", func(n node) float64 { return g.p.Upper(n.at) }))
	}
	if g.force != nil {
		all = append(all, floats("force", g.forceAt))
	}
	for _, e := range g.extra {
		all = append(all, floats(e.Name, func(n node) float64 { return e.Of(n.at) }))
	}
	return all
}

func floats(name string, value func(node) float64) field {
	return field{name, 8, func(n node, b []byte) { binary.LittleEndian.PutUint64(b, math.Float64bits(value(n))) }}
}

// write writes the little-endian values in memory order.
func (f field) write(w io.Writer, g *grid) error {
	b := make([]byte, f.bytes)
	return g.each(func(n node) error {
		f.put(n, b)
		_, err := w.Write(b)
		return err
	})
}

// forceAt returns the contact force, which is 0 on the boundary.
func (g *grid) forceAt(n node) float64 {
	if n.boundary {
		return 0
	}
	return g.force[g.p.Dense(n.idx)]
}

// layers holds the contact of the nodes in two neighbouring planes.
type layers struct {
	g     *grid
	plane [2][]byte
	held  [2]int // index of each plane, from 0; -1: none
}

func newLayers(g *grid) *layers {
	l := &layers{g: g, held: [2]int{-1, -1}}
	for i := range l.plane {
		l.plane[i] = make([]byte, g.nodes(0)*g.nodes(1))
	}
	return l
}

// at returns the contact of a node, given by indices from 0 along each axis. It computes the whole plane of the
// node if that is not held.
func (l *layers) at(n [3]int) byte {
	p := n[2] % 2
	if l.held[p] != n[2] {
		l.fill(p, n[2])
	}
	return l.plane[p][n[1]*l.g.nodes(0)+n[0]]
}

func (l *layers) fill(p, k int) {
	g, next := l.g, 0
	for j := g.first[1]; j <= g.last[1]; j++ {
		for i := g.first[0]; i <= g.last[0]; i++ {
			l.plane[p][next] = g.contact(g.node(i, j, k+g.first[2]))
			next++
		}
	}
	l.held[p] = k
}
