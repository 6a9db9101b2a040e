package problems

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Raster is a function given by its values at the nodes of a regular grid that
// spans the closed box from Lo to Hi, and multilinear between them. At a node
// (to within 1e-9 of a cell) the value is the node's own, bit for bit, so an
// array of the size of a solver's grid with its boundary is read, not
// interpolated. Points outside the box get the nearest value inside.
type Raster struct {
	Lo, Hi problem.Point
	Size   [3]int            // nodes per axis, x first; 1 on unused axes, at least 2 on used ones
	Flip   [3]bool           // the first entry along this axis is at Hi
	Node   func(int) float64 // value of entry (k·Size[1] + j)·Size[0] + i; pure
}

// snap is the part of a cell within which a point counts as a node: coordinates
// of grid points carry rounding errors far below it.
const snap = 1e-9

// Function returns the interpolation. It refuses a size or a box that is none.
func (r Raster) Function() (problem.Function, error) {
	for a := range 3 {
		if r.Size[a] < 1 || (r.Size[a] > 1) != (r.Hi[a] > r.Lo[a]) {
			return nil, fmt.Errorf("a raster with %d nodes from %g to %g along axis %d", r.Size[a], r.Lo[a], r.Hi[a], a)
		}
	}
	return r.at, nil
}

func (r *Raster) at(p problem.Point) float64 {
	var base [3]int
	var part [3]float64 // weight of the next node
	for a := range 3 {
		base[a], part[a] = r.locate(a, p[a])
	}
	return r.blend(2, 0, base, part)
}

// locate finds the node at or below coordinate x along an axis, counted in the
// direction of the coordinate, and the part of the cell that x lies beyond it.
func (r *Raster) locate(axis int, x float64) (node int, part float64) {
	last := r.Size[axis] - 1
	if last == 0 {
		return 0, 0
	}
	t := (x - r.Lo[axis]) / (r.Hi[axis] - r.Lo[axis]) * float64(last)
	if !(t > 0) { // also not a number
		return 0, 0
	}
	if t >= float64(last) {
		return last, 0
	}
	if near := math.Round(t); math.Abs(t-near) <= snap {
		return int(near), 0
	}
	node = int(t)
	return node, t - float64(node)
}

// blend interpolates along the axes up to axis; offset holds the entries chosen
// on the axes above.
func (r *Raster) blend(axis, offset int, base [3]int, part [3]float64) float64 {
	if axis < 0 {
		return r.Node(offset)
	}
	low := r.blend(axis-1, r.step(axis, offset, base[axis]), base, part)
	if part[axis] == 0 {
		return low
	}
	high := r.blend(axis-1, r.step(axis, offset, base[axis]+1), base, part)
	return float64(low*(1-part[axis])) + float64(high*part[axis])
}

func (r *Raster) step(axis, offset, node int) int {
	if r.Flip[axis] {
		node = r.Size[axis] - 1 - node
	}
	return offset*r.Size[axis] + node
}
