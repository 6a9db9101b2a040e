package method

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Renew replaces the problem on the same grid, for example for a time step: the operator and, on level 0, the fields,
// which are ignored on other levels. All arrays and the results of Connect remain valid.
func (l *Level) Renew(op kernel.Operator, source, lower, upper kernel.Field) error {
	l.ClearTruncation()
	if l.below {
		clear(l.Values) // the initial iterate of the coarsest grid
		if sameOperator(l.operator, op) {
			return nil
		}
		source, lower, upper = l.Source, l.Lower, l.Upper
	}
	l.operator, l.Source = op, source
	l.Lower, l.Upper = lower, upper
	return l.makeSweep()
}

func (l *Level) makeSweep() error {
	var err error
	l.Sweep, err = kernel.New(kernel.Config{
		Layout: l.Part.Layout, Operator: l.operator, Source: l.Source, Lower: l.Lower, Upper: l.Upper,
		Step: 1, Parity: l.parity,
	})
	return err
}

// Operator returns the operator of the level.
func (l *Level) Operator() kernel.Operator { return l.operator }

// Renew replaces the system on the same block, for example for a time step. Layout and Parity must be unchanged. The
// observed convergence is discarded; the results are bitwise those of a new Multigrid. The arrays of the grids are
// reused unless the couplings require other grids. After an error only Renew may be called.
func (m *Multigrid) Renew(s System) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.Layout != m.system.Layout || s.Parity != m.system.Parity {
		return fmt.Errorf("method: multigrid of %v points cannot be renewed for %v points; make a new one",
			m.system.Layout.N, s.Layout.N)
	}
	old := &m.system
	if h := s.hierarchy(); !slices.Equal(h.Grids, m.hierarchy.Grids) || hasUpper(s.Upper) != hasUpper(old.Upper) ||
		(s.Operator.Form == kernel.Variable) != (old.Operator.Form == kernel.Variable) ||
		(s.Edges == nil) != (old.Edges == nil) {
		return m.init(s, h)
	}
	m.system = s
	edges := m.edges()
	for i, l := range m.levels {
		op, err := s.Operator, error(nil)
		if i > 0 {
			op, err = m.levelOperator(i, edges)
		}
		if err == nil {
			err = l.Renew(op, s.Source, s.Lower, s.Upper)
		}
		if err != nil {
			return err
		}
	}
	for i, l := range m.levels {
		l.SetEdges(edges[i])
	}
	m.safeguard = NewSafeguard(s.Symmetric, s.WeakFlow)
	return nil
}

// hasUpper reports whether the upper obstacle is an array or finite.
func hasUpper(upper kernel.Field) bool { return upper.Array != nil || !math.IsInf(upper.Value, 1) }

// sameOperator reports whether two operators have equal constants and the same arrays, so that
// results derived from one are valid for the other.
func sameOperator(a, b kernel.Operator) bool {
	if a.Form != b.Form || a.Diag != b.Diag || a.Off != b.Off || a.Values != b.Values {
		return false
	}
	for d := range a.Arrays {
		if len(a.Arrays[d]) != len(b.Arrays[d]) || len(a.Arrays[d]) > 0 && &a.Arrays[d][0] != &b.Arrays[d][0] {
			return false
		}
	}
	return true
}
