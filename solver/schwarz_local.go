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

// newLocal makes the solver of the region, for the problem that the block holds; in later
// time steps that of the step before is renewed where it can be.
func newLocal(w *schwarz) (method.Solver, error) {
	m := &w.config.Method
	return renewed(w.local, m.localName(), w.block.system(),
		method.Options{Executor: w.exec, Omega: w.pace.omega(), Cycle: m.Cycle})
}

// renewed is old, of the same name and made with the same options, for another system, or
// a new solver where there is no old one or it has nothing that is worth keeping.
func renewed(old method.Solver, name string, s method.System, o method.Options) (method.Solver, error) {
	if m, ok := old.(*method.Multigrid); ok {
		return m, m.Renew(s)
	}
	return method.New(name, s, o)
}

// bestOmega is the factor of SOR that is best for a free membrane of n points an axis.
func bestOmega(n int) float64 { return 2 / (1 + math.Sin(math.Pi/float64(n+1))) }
