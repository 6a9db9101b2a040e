package output

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// grid is a solution on the closed grid. Indices run from 0 (low boundary) to N+1 along a used axis. An
// unused axis has the index 1 only, as in package solver.
type grid struct {
	p           *problem.Problem
	u           []float64
	force       []float64
	extra       []Extra
	first, last [3]int
}

func newGrid(s Solution) (*grid, error) {
	if len(s.U) != s.Problem.Points() {
		return nil, fmt.Errorf("%d values for a grid of %d points", len(s.U), s.Problem.Points())
	}
	if s.Force != nil && len(s.Force) != len(s.U) {
		return nil, fmt.Errorf("%d values of the contact force for a grid of %d points", len(s.Force), len(s.U))
	}
	g := &grid{
		p: s.Problem, u: s.U, force: s.Force, extra: s.Extra, first: [3]int{1, 1, 1}, last: [3]int{1, 1, 1},
	}
	for a := range g.p.Dimension {
		g.first[a], g.last[a] = 0, g.p.N[a]+1
	}
	if g.p.FixedPoint != nil { // its unknowns have no boundary
		g.first[0], g.last[0] = 1, g.p.N[0]
	}
	return g, nil
}

type node struct {
	idx      [3]int
	at       problem.Point
	u        float64
	boundary bool
}

// node returns a node with the value of the iterate in the interior or of the data on the boundary.
func (g *grid) node(i, j, k int) node {
	n := node{idx: [3]int{i, j, k}, at: g.p.At(i, j, k)}
	for a, v := range n.idx {
		n.boundary = n.boundary || a < g.p.Dimension && (v == 0 || v == g.p.N[a]+1)
	}
	if n.boundary {
		n.u = g.p.Boundary(n.at)
	} else {
		n.u = g.u[g.p.Dense(n.idx)]
	}
	return n
}

// each visits the closed grid in memory order, x fastest, until an error.
func (g *grid) each(visit func(node) error) error {
	for k := g.first[2]; k <= g.last[2]; k++ {
		for j := g.first[1]; j <= g.last[1]; j++ {
			for i := g.first[0]; i <= g.last[0]; i++ {
				if err := visit(g.node(i, j, k)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (g *grid) nodes(axis int) int { return g.last[axis] - g.first[axis] + 1 }

func (g *grid) count() int { return g.nodes(0) * g.nodes(1) * g.nodes(2) }

// shape returns the shape in NumPy's order: slowest axis first, without unused axes.
func (g *grid) shape() []int {
	var s []int
	for a := g.p.Dimension - 1; a >= 0; a-- {
		s = append(s, g.nodes(a))
	}
	return s
}

// The kinds of contact. Boundary points are not unknowns and count as free.
const (
	free = iota
	onObstacle
	onUpper
)

func (g *grid) contact(n node) byte {
	switch {
	case n.boundary:
		return free
	case g.p.Obstacle != nil && n.u <= g.p.Obstacle(n.at):
		return onObstacle
	case g.p.Upper != nil && n.u >= g.p.Upper(n.at):
		return onUpper
	}
	return free
}
