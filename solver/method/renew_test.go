package method

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// A renewed multigrid has the bits of a new one, whatever it solved before.
func TestRenewedMultigridHasTheBitsOfANewOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawSystem(t), drawSystem(t)
		second.dim, second.n, second.parity = first.dim, first.n, first.parity
		before, u := first.system(t, rapid.Uint64().Draw(t, "seed"))
		old, err := NewMultigrid(before, Options{})
		require.NoError(t, err)
		old.Start(u)
		for range 3 {
			old.Cycle(u)
		}
		after, u := second.system(t, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, old.Renew(after))
		fresh, err := NewMultigrid(after, Options{})
		require.NoError(t, err)
		v := append([]float64(nil), u...)
		if rapid.Bool().Draw(t, "start") {
			require.Equal(t, fresh.Start(v), old.Start(u))
		}
		for range 4 {
			require.Equal(t, fresh.Cycle(v), old.Cycle(u))
			for i := range v {
				require.Equal(t, math.Float64bits(v[i]), math.Float64bits(u[i]))
			}
		}
		require.Equal(t, fresh.Residual(), old.Residual())
		require.Equal(t, fresh.Rejections(), old.Rejections())
	})
}

func TestRenewRefuses(t *testing.T) {
	system := func(n int) System {
		l, err := kernel.NewLayout(1, [3]int{n, 1, 1})
		require.NoError(t, err)
		return averaged(System{Layout: l, Operator: kernel.Operator{Diag: 2, Off: 1}, Lower: kernel.NoLower(),
			Upper: kernel.NoUpper()})
	}
	m, err := NewMultigrid(system(15), Options{})
	require.NoError(t, err)
	require.ErrorContains(t, m.Renew(system(16)), "15 1 1")
	bad := system(15)
	bad.Source.Value = math.NaN()
	require.ErrorContains(t, m.Renew(bad), "the source is NaN")
	require.NoError(t, m.Renew(system(15)))
}
