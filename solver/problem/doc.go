// Package problem states obstacle problems on grids and discretizes them. It holds what all methods
// share:
//
// 1. A Problem is a set of functions on a box: find u ≥ φ with A·u ≥ f and complementarity. Its
// functions must be pure. They may be called from several goroutines at once.
// 2. Problem.Validate rejects a problem that cannot be solved as stated. Every such error wraps
// ErrProblem.
// 3. A Partition cuts the grid into boxes, one per peer. Errors about it wrap ErrPartition.
// 4. Discretize evaluates operator, source and obstacles at the points of a box. Its values are
// bitwise independent of the box and of the executor.
// 5. A Config configures one peer of a run. A Method makes the peers.
//
// The package does no input or output, reads no clock and starts no goroutine.
package problem
