package method

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// backwards executes the pieces in descending order.
type backwards struct{}

func (backwards) For(n int, f func(i int)) {
	for i := n - 1; i >= 0; i-- {
		f(i)
	}
}

func TestBitsDoNotDependOnTheExecutor(t *testing.T) {
	for _, n := range []int{31, 34} {
		for _, name := range []string{NameRichardson, NameSOR, NameMultigrid} {
			var out [2][]float64
			for i, e := range []kernel.Executor{nil, backwards{}} {
				s, u, _ := membraneSystem(t, n)
				m, err := New(name, s, Options{Executor: e})
				require.NoError(t, err)
				m.Start(u)
				for range 20 {
					m.Cycle(u)
				}
				out[i] = u
			}
			require.Equal(t, out[0], out[1], name)
		}
	}
}

func TestCyclesAllocateNothing(t *testing.T) {
	for _, name := range []string{NameRichardson, NameSOR, NameMultigrid} {
		s, u, _ := membraneSystem(t, 31)
		m, err := New(name, s, Options{})
		require.NoError(t, err)
		m.Start(u)
		for range 20 { // allocates scratch memory and lists of truncated points
			m.Cycle(u)
		}
		require.Zero(t, testing.AllocsPerRun(20, func() { m.Cycle(u) }), name)
	}
}

// All points in contact, none in contact, and no obstacle; on blocks of one point and of one row too.
func TestExtremesOfContact(t *testing.T) {
	for _, n := range [][3]int{{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {1, 9, 1}, {8, 8, 8}, {15, 4, 1}} {
		dim := 3
		if n[2] == 1 && n[1] == 1 {
			dim = 1
		} else if n[2] == 1 {
			dim = 2
		}
		for _, phi := range []float64{5, -5, math.Inf(-1)} {
			l, err := kernel.NewLayout(dim, n)
			require.NoError(t, err)
			s := System{Layout: l, Operator: kernel.Operator{Diag: 2 * float64(dim), Off: 1},
				Lower: kernel.Field{Value: phi},
				Upper: kernel.NoUpper(), Symmetric: true}
			s = averaged(s)
			for _, name := range []string{NameRichardson, NameSOR, NameMultigrid} {
				u := make([]float64, l.Len())
				for i := range u {
					u[i] = 1
				}
				m, err := New(name, s, Options{})
				require.NoError(t, err)
				m.Start(u)
				for range 400 {
					m.Cycle(u)
				}
				for _, v := range interior(l, u) {
					require.InDelta(t, max(phi, 1), v, 1e-9, "%s %v", name, n)
				}
			}
		}
	}
}

func TestBadSystemsAndOptionsAreRefused(t *testing.T) {
	s, _, _ := membraneSystem(t, 5)
	for _, c := range []struct {
		name string
		o    Options
		says string
	}{
		{"jacobi", Options{}, "the methods are richardson, sor and multigrid"},
		{NameSOR, Options{Omega: 2}, "between 0 and 2"},
		{NameSOR, Options{Omega: math.NaN()}, "between 0 and 2"},
		{NameMultigrid, Options{Cycle: "f"}, "the cycles are v and w"},
	} {
		_, err := New(c.name, s, c.o)
		require.ErrorContains(t, err, c.says)
	}
	_, err := New(NameSOR, System{}, Options{})
	require.ErrorContains(t, err, "layout")
	s.Operator.Diag = 0
	_, err = New(NameSOR, s, Options{})
	require.ErrorContains(t, err, "diagonal")
	s, _, _ = membraneSystem(t, 5)
	s.Lower.Array[3] = math.NaN()
	_, err = New(NameMultigrid, s, Options{})
	require.ErrorContains(t, err, "lower obstacle")
	s, _, _ = membraneSystem(t, 5)
	s.Upper = kernel.Field{Value: -100}
	_, err = New(NameMultigrid, s, Options{})
	require.ErrorContains(t, err, "cross")
}
