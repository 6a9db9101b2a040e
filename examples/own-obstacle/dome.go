package main

import "github.com/p2pdc/p2pdc/solver/problem"

// dome is a membrane on a square, fixed at height 0 along the edge and held up by a paraboloid in the middle.
func dome(p *problem.Problem, _ []float64) error {
	p.Lo, p.Hi = problem.Point{-1, -1}, problem.Point{1, 1}
	p.Obstacle = func(q problem.Point) float64 { return 0.5 - 2*(q[0]*q[0]+q[1]*q[1]) }
	p.Boundary = func(problem.Point) float64 { return 0 }
	return nil
}
