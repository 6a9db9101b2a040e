package method

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Renew takes another problem on the same grid, a time step's say: the operator and, on
// level 0, the fields; below it they are ignored. All arrays and all that Over made stay.
func (l *Level) Renew(op kernel.Operator, source, lower, upper kernel.Field) error {
	l.ClearTruncation()
	if l.below {
		clear(l.Values) // from which the start solves the coarsest grid
		if sameOperator(l.operator, op) {
			return nil
		}
		source, lower, upper = l.Source, l.Lower, l.Upper
	}
	l.operator, l.Source, l.Lower, l.Upper = op, source, lower, upper
	var err error
	l.Sweep, err = kernel.New(kernel.Config{
		Layout: l.Part.Layout, Operator: op, Source: source, Lower: lower, Upper: upper,
		Step: 1, Parity: l.parity, Kernel: l.kernel,
	})
	return err
}

// Operator is the level's.
func (l *Level) Operator() kernel.Operator { return l.operator }

// Renew takes another system on the same block, a time step's say, with the same Layout
// and Parity, and forgets what was observed: what follows has the bits of a new Multigrid,
// but the arrays of the grids are not made anew, unless the couplings ask for other grids.
// After an error it can only be renewed again.
func (m *Multigrid) Renew(s System) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.Layout != m.system.Layout || s.Parity != m.system.Parity {
		return fmt.Errorf("method: the multigrid of a block of %v points cannot be renewed for one of %v: make another", m.system.Layout.N, s.Layout.N)
	}
	m.failure = nil
	if h := s.hierarchy(); !slices.Equal(h.Grids, m.hierarchy.Grids) || hasUpper(s.Upper) != hasUpper(m.system.Upper) ||
		(s.Operator.Form == kernel.Variable) != (m.system.Operator.Form == kernel.Variable) || (s.Edges == nil) != (m.system.Edges == nil) {
		return m.init(s, h)
	}
	m.system = s
	edges := m.edges()
	for i, l := range m.levels {
		op, err := s.Operator, error(nil)
		if i > 0 {
			op, err = m.levelOperator(i, l.Part.Layout, edges)
		}
		if err == nil {
			err = l.Renew(op, s.Source, s.Lower, s.Upper)
		}
		if err != nil {
			return err
		}
		if i > 0 {
			m.levels[i-1].SetEdges(l, edges[i-1], edges[i])
		}
	}
	m.safeguard = Safeguard{Symmetric: s.Symmetric}
	m.safeguard.Reset()
	return nil
}

// bounded tells whether an upper obstacle is one.
func hasUpper(upper kernel.Field) bool { return upper.Array != nil || !math.IsInf(upper.Value, 1) }

// same tells whether nothing that is made of one operator need be made anew for the other:
// they have the same numbers, or the same arrays.
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
