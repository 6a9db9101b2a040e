package main

import "github.com/p2pdc/p2pdc/solver"

// dome is a membrane on a square, fixed at height 0 along the edge and held up by a paraboloid in the middle.
func dome(p *solver.Problem, _ []float64) error {
	p.Lo, p.Hi = solver.Point{-1, -1}, solver.Point{1, 1}
	p.Obstacle = func(q solver.Point) float64 { return 0.5 - 2*(q[0]*q[0]+q[1]*q[1]) }
	p.Boundary = func(solver.Point) float64 { return 0 }
	return nil
}
