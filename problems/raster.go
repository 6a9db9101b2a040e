package problems

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Raster is a function defined by its values at the nodes of a regular grid on the closed box from Lo to
// Hi, with multilinear interpolation between them. Within 1e-9 of a cell from a node the value is bitwise
// that of the node, so an array of the size of a solver's grid with its boundary is not interpolated. Points
// outside the box get the value of the nearest point inside.
type Raster struct {
	Lo, Hi problem.Point
	Size   [3]int            // nodes per axis, x first; 1 on unused axes, at least 2 on used axes
	Flip   [3]bool           // whether the first entry along the axis is at Hi
	Node   func(int) float64 // value of entry (k·Size[1] + j)·Size[0] + i; a pure function
}

// nodeTolerance is the part of a cell within which a point counts as a node. Rounding errors of coordinates
// are far smaller.
const nodeTolerance = 1e-9

// Function returns the interpolating function, or an error for an invalid size or box.
func (r Raster) Function() (problem.Function, error) {
	for a := range 3 {
		if r.Size[a] < 1 || (r.Size[a] > 1) != (r.Hi[a] > r.Lo[a]) {
			return nil, fmt.Errorf("axis %d of a raster has %d nodes from %g to %g; "+
				"a used axis needs at least 2 nodes and an increasing interval, an unused axis 1 node",
				a, r.Size[a], r.Lo[a], r.Hi[a])
		}
	}
	return r.value, nil
}

func (r *Raster) value(p problem.Point) float64 {
	var base [3]int
	var part [3]float64 // weights of the next nodes
	for a := range 3 {
		base[a], part[a] = r.locate(a, p[a])
	}
	return r.interpolate(2, 0, base, part)
}

// locate returns the node at or below coordinate x along an axis, counted in the direction of the
// coordinate, and the distance from it to x as a part of the cell.
func (r *Raster) locate(axis int, x float64) (node int, part float64) {
	last := r.Size[axis] - 1
	if last == 0 {
		return 0, 0
	}
	t := (x - r.Lo[axis]) / (r.Hi[axis] - r.Lo[axis]) * float64(last)
	if !(t > 0) { // also for NaN
		return 0, 0
	}
	if t >= float64(last) {
		return last, 0
	}
	if near := math.Round(t); math.Abs(t-near) <= nodeTolerance {
		return int(near), 0
	}
	node = int(t)
	return node, t - float64(node)
}

// interpolate interpolates along the axes up to axis. offset is the entry chosen on the axes above.
func (r *Raster) interpolate(axis, offset int, base [3]int, part [3]float64) float64 {
	if axis < 0 {
		return r.Node(offset)
	}
	low := r.interpolate(axis-1, r.entry(axis, offset, base[axis]), base, part)
	if part[axis] == 0 {
		return low
	}
	high := r.interpolate(axis-1, r.entry(axis, offset, base[axis]+1), base, part)
	return float64(low*(1-part[axis])) + float64(high*part[axis])
}

func (r *Raster) entry(axis, offset, node int) int {
	if r.Flip[axis] {
		node = r.Size[axis] - 1 - node
	}
	return offset*r.Size[axis] + node
}
