package method

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
)

// maxCoarsest is the largest number of points of a coarsest grid: two per axis (see NewHierarchy).
const maxCoarsest = 8

// Solve executes the stage Solve of the coarsest level, which must lie in this block alone. With constant coefficients
// the sweeps of the stage suffice. Where the diffusion varies, points that are coupled strongly with each other and
// weakly with the boundary would need as many sweeps as the contrast: a direct solution replaces the sweeps.
func (l *Level) Solve(s Stage, e kernel.Executor) {
	if n := l.Part.Layout.Points(); l.operator.Form != kernel.Variable || n == 1 || n > maxCoarsest || !l.solveDirectly() {
		l.Smooth(s.Sweeps, s.Omega, e, nil)
	}
}

// solveDirectly sets the values to the solution and reports whether it was found. If not, the values are
// between the obstacles.
func (l *Level) solveDirectly() bool {
	var p coarsestProblem
	p.read(l)
	solved := p.solve()
	layout := l.Part.Layout
	eachPoint([3]int{}, layout.N, func(at [3]int) {
		v := p.u[layout.Dense(at[0], at[1], at[2])]
		if kernel.Finite(v) {
			l.Values[layout.Index(at[0], at[1], at[2])] = v
		} else {
			solved = false
		}
	})
	return solved
}

// coarsestProblem is the problem of a coarsest grid with a dense matrix. The ghosts are part of the source.
type coarsestProblem struct {
	n                       int
	matrix                  [maxCoarsest][maxCoarsest]float64
	source, lower, upper, u [maxCoarsest]float64
}

func (p *coarsestProblem) read(l *Level) {
	layout := l.Part.Layout
	p.n = layout.Points()
	eachPoint([3]int{}, layout.N, func(at [3]int) {
		i, d := layout.Index(at[0], at[1], at[2]), layout.Dense(at[0], at[1], at[2])
		codes := 0.0
		if l.Truncation != nil {
			codes = l.Truncation[i]
		}
		row := l.stencilAt(at, i, d, codes)
		p.matrix[d][d] = row.center
		p.u[d], p.source[d] = l.Values[i], l.Source.At(d)
		p.lower[d], p.upper[d] = l.Lower.At(d), l.Upper.At(d)
		for k, off := range row.off[:2*layout.Dim] {
			q := at
			q[k/2] += 2*(k%2) - 1
			if layout.Interior().Contains(q) {
				p.matrix[d][layout.Dense(q[0], q[1], q[2])] = -off
			} else {
				p.source[d] += float64(off * l.Values[layout.Index(q[0], q[1], q[2])])
			}
		}
	})
}

// contactSide is the obstacle on which a point of coarsestProblem is held.
type contactSide int8

const (
	noContact contactSide = iota
	lowerContact
	upperContact
)

// maxContactSets bounds the sets of contact points that solve tries.
const maxContactSets = 3 * maxCoarsest

// solve sets u to the solution and reports whether it was found. It is the primal-dual active set method
// (Hintermüller, Ito and Kunisch, SIAM J. Optim. 13, 2003), which needs few steps for an M-matrix.
func (p *coarsestProblem) solve() bool {
	held := p.contact()
	for range maxContactSets {
		p.solveFree(&held)
		before := held
		if held = p.contact(); held == before {
			return true
		}
	}
	for i := range p.n {
		p.u[i] = min(max(p.u[i], p.lower[i]), p.upper[i])
	}
	return false
}

// contact returns the contact that u and its residual predict.
func (p *coarsestProblem) contact() (held [maxCoarsest]contactSide) {
	for i := range p.n {
		r := -p.source[i]
		for j := range p.n {
			r += float64(p.matrix[i][j] * p.u[j])
		}
		switch v := p.u[i] - r/p.matrix[i][i]; {
		case v <= p.lower[i]:
			held[i] = lowerContact
		case v >= p.upper[i]:
			held[i] = upperContact
		}
	}
	return held
}

// solveFree sets u to the obstacle at points in contact and solves the equations of the others by elimination, which
// needs no pivoting for an M-matrix.
func (p *coarsestProblem) solveFree(held *[maxCoarsest]contactSide) {
	a, f := p.matrix, p.source
	for i := range p.n {
		if held[i] == noContact {
			continue
		}
		if f[i] = p.lower[i]; held[i] == upperContact {
			f[i] = p.upper[i]
		}
		a[i] = [maxCoarsest]float64{}
		a[i][i] = 1
	}
	for i := range p.n {
		for k := i + 1; k < p.n; k++ {
			part := a[k][i] / a[i][i]
			if part == 0 {
				continue
			}
			for j := i; j < p.n; j++ {
				a[k][j] -= float64(part * a[i][j])
			}
			f[k] -= float64(part * f[i])
		}
	}
	for i := p.n - 1; i >= 0; i-- {
		for j := i + 1; j < p.n; j++ {
			f[i] -= float64(a[i][j] * f[j])
		}
		f[i] /= a[i][i]
	}
	p.u = f
}
