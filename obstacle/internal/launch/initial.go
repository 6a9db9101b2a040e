package launch

import "github.com/p2pdc/p2pdc/solver/problem"

// Start returns the starting iterate of a stationary problem, [z][y][x]: initial, or that of the problem if initial
// is nil.
func Start(p *problem.Problem, initial []float64) []float64 {
	u := make([]float64, p.Points())
	startingValues(p, initial, problem.Box{Hi: p.N}, u)
	return u
}

// startingValues fills a box of u with the starting iterate.
func startingValues(p *problem.Problem, initial []float64, b problem.Box, u []float64) {
	for _, idx := range b.Each {
		at := p.Dense(idx)
		if initial != nil {
			u[at] = initial[at]
			continue
		}
		q, v := p.At(idx[0], idx[1], idx[2]), 0.0
		if p.Initial != nil {
			v = p.Initial(q)
		}
		phi, psi := p.Obstacles(q)
		u[at] = problem.Clamp(v, phi, psi)
	}
}
