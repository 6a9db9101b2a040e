package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// bestIterate keeps a copy of the values with the smallest residual in a run that may diverge. They are the answer if it
// does. Values are copied only after the residual has halved, which costs little. The decisions use the verdicts on
// checks, so all peers keep the same iterate.
type bestIterate struct {
	values    []float64 // nil: the run is sure to converge
	candidate []float64 // values at the open check
	taken     bool      // candidate holds them
	residual  float64   // relative, of values; +Inf: there are none
	at        iterate.Iteration
}

// mayDiverge reports whether a run by this method has no guarantee of convergence: A may be no M-matrix, or the user has
// set ω.
func mayDiverge(p *problem.Problem, m *problem.MethodConfig) bool {
	return !p.Symmetric() && (!p.Upwind || m.Name == problem.SOR && m.Omega > 0)
}

// begin prepares for a stationary run.
func (b *bestIterate) begin(c *problem.Config, u []float64) {
	b.taken, b.residual = false, math.Inf(1)
	if b.values == nil && c.Problem.Evolution == nil && mayDiverge(c.Problem, &c.Method) {
		b.values, b.candidate = c.NewArray(len(u)), c.NewArray(len(u))
	}
}

// offer copies the values of a check, unless the residual of the check before rules out that they are much better.
func (b *bestIterate) offer(u []float64, before float64) {
	if b.taken = b.values != nil && !(before > b.residual/2); b.taken {
		copy(b.candidate, u)
	}
}

// measured keeps the offered values of iterate k if their residual is the smallest.
func (b *bestIterate) measured(k iterate.Iteration, residual float64) {
	if b.taken && residual < b.residual {
		b.values, b.candidate = b.candidate, b.values
		b.residual, b.at = residual, k
	}
	b.taken = false
}

// better reports whether the kept values are much better than those with a residual.
func (b *bestIterate) better(residual float64) bool {
	return b.values != nil && b.residual < math.Inf(1) && !(residual <= 2*b.residual)
}
