package method

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// membraneSystem returns the reference case on n³ points: its system, initial values and their residual.
func membraneSystem(t testing.TB, n int) (System, []float64, float64) {
	l, err := kernel.NewLayout(3, [3]int{n, n, n})
	require.NoError(t, err)
	laplacian := func(n [3]int, _ *Edges) (kernel.Operator, error) {
		h := 1 / float64(n[0]+1)
		return kernel.Operator{Diag: 6 / (h * h), Off: 1 / (h * h)}, nil
	}
	h := 1 / float64(n+1)
	phi, u := make([]float64, l.Points()), make([]float64, l.Len())
	for z := range n {
		for y := range n {
			for x := range n {
				p := 0.5
				for _, i := range []int{x, y, z} {
					q := float64(i+1)*h - 0.5
					p -= 4 * q * q
				}
				phi[l.Dense(x, y, z)] = p
				u[l.Index(x, y, z)] = max(p, 0)
			}
		}
	}
	s := System{Layout: l, Lower: kernel.Field{Array: phi}, Upper: kernel.NoUpper(), Symmetric: true, Coarse: laplacian}
	s.Operator, _ = laplacian(l.N, nil)
	return s, u, residualOf(t, s, u)
}

// referenceSweep returns the sweep of a system by the reference loops.
func referenceSweep(t require.TestingT, s System) *kernel.Sweep {
	sweep, err := kernel.New(kernel.Config{
		Layout: s.Layout, Operator: s.Operator, Source: s.Source, Lower: s.Lower, Upper: s.Upper,
		Step: 1, Parity: s.Parity, Kernel: kernel.All()[0],
	})
	require.NoError(t, err)
	return sweep
}

// residualOf returns the VI residual computed by the reference loops.
func residualOf(t testing.TB, s System, u []float64) float64 {
	var n kernel.Norm
	referenceSweep(t, s).Residual(&n, u, s.Layout.Interior())
	return n.L2()
}

// interior returns the dense array of own values.
func interior(l kernel.Layout, u []float64) []float64 {
	out := make([]float64, l.Points())
	for z := range l.N[2] {
		for y := range l.N[1] {
			copy(out[l.Dense(0, y, z):][:l.N[0]], u[l.Index(0, y, z):])
		}
	}
	return out
}

// solve executes cycles until the residual is at most tol times r0.
func solve(t testing.TB, m Solver, s System, u []float64, r0, tol float64, most int) (cycles int, work float64) {
	for residualOf(t, s, u) > tol*r0 {
		require.Less(t, cycles, most, "%s does not reach %g", m.Name(), tol)
		work += m.Cycle(u)
		cycles++
	}
	return cycles, work
}

func TestMultigridSolvesTheMembrane(t *testing.T) {
	for _, n := range []int{15, 16, 31} {
		s, u, r0 := membraneSystem(t, n)
		sor, v, _ := membraneSystem(t, n)
		m, err := New(NameMultigrid, s, Options{})
		require.NoError(t, err)
		work := m.Start(u)
		_, more := solve(t, m, s, u, r0, 1e-9, 12)
		t.Logf("%d³: %s, %.1f sweeps", n, m.Describe(), work+more)
		r, err := New(NameSOR, sor, Options{Omega: 1.7})
		require.NoError(t, err)
		solve(t, r, sor, v, r0, 1e-9, 400)
		require.InDeltaSlice(t, interior(s.Layout, v), interior(s.Layout, u), 1e-7)
	}
}
