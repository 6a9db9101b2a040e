package solver

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// localName is the method of a peer on its own region.
func (m *MethodConfig) localName() string {
	if m.Local == "" {
		return Multigrid
	}
	return m.Local
}

// newLocal makes the solver of the region, for the problem that the block holds.
func newLocal(w *schwarz) (method.Solver, error) {
	m := &w.config.Method
	return method.New(m.localName(), w.block.system(), method.Options{Executor: w.exec, Omega: w.pace.omega(), Cycle: m.Cycle})
}

// system is the problem on a block whose ghosts are Dirichlet data.
func (b *block) system() method.System {
	p := b.problem
	s := method.System{
		Layout: b.layout, Operator: b.operator, Source: b.source, Lower: b.lower, Upper: b.upper,
		Symmetric: p.symmetric(),
	}
	for a := range 3 {
		s.Parity = (s.Parity + b.box.Lo[a]) & 1
	}
	s.Coarse = b.rediscretised
	return s
}

// symmetric tells whether the matrix is.
func (p *Problem) symmetric() bool {
	for a := range p.Dimension {
		if b := p.Velocity[a]; !b.Constant() || b.Value != 0 {
			return false
		}
	}
	return true
}

// rediscretised is the operator of the block's region, from ghost to ghost, on a grid of
// n points.
func (b *block) rediscretised(n [3]int) (kernel.Operator, error) {
	q := *b.problem
	q.N, q.Upwind = n, true
	for a := range q.Dimension {
		h := b.problem.Spacing(a)
		q.Lo[a] = b.problem.Lo[a] + float64(b.box.Lo[a])*h
		q.Hi[a] = b.problem.Lo[a] + float64(b.box.Hi[a]+1)*h
	}
	l, err := kernel.NewLayout(q.Dimension, n)
	if err != nil {
		return kernel.Operator{}, err
	}
	op, _, err := newStencil(&q).operator(Box{Hi: n}, l, [kernel.Directions][]float64{})
	return op, err
}

// bestOmega is the factor of SOR that is best for a free membrane of n points an axis.
func bestOmega(n int) float64 { return 2 / (1 + math.Sin(math.Pi/float64(n+1))) }
