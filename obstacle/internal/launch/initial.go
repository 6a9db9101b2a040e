package launch

import "github.com/p2pdc/p2pdc/solver/problem"

// Start returns the starting iterate of a stationary problem, [z][y][x]: initial, or that of the problem if initial
// is nil.
func Start(p *problem.Problem, initial []float64) []float64 {
	u := make([]float64, p.Points())
	p.Start(u, initial, problem.Box{Hi: p.N})
	return u
}
