package solver

import (
	"math"

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

// bestOmega is the factor of SOR that is best for a free membrane of n points an axis.
func bestOmega(n int) float64 { return 2 / (1 + math.Sin(math.Pi/float64(n+1))) }
