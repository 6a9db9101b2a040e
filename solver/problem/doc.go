// Package problem holds obstacle problems on grids: the problem with its functions, the partition of
// the grid into boxes, the values of operator, source and obstacles at the points of a box
// (Discretization), and the configuration that the peers of a run have in common.
package problem
