package fas

import (
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// TestGridsThatDoNotHalve checks that the refusal of a grid names the nearest numbers of points that fit, and that they do.
func TestGridsThatDoNotHalve(t *testing.T) {
	check := func(p *problem.Problem) error {
		part, err := problem.Slabs(p.N, 1, nil)
		require.NoError(t, err)
		c := problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous()}
		require.NoError(t, c.Prepare())
		return Method{}.Check(&c)
	}
	for _, c := range []struct {
		n    int
		want string
		fit  []int
	}{
		{64, "64 points an axis cannot be halved: use 63 or 127 points", []int{63, 127}},
		{62, "62 points an axis cannot be halved: use 31 or 63 points", []int{31, 63, 71}},
		{100, "100 points an axis cannot be halved: use 63 or 127 points", []int{95, 103}},
		{2, "2 points an axis cannot be halved: use 3 points", []int{3}},
		{1, "1 points an axis cannot be halved: use 3 points", nil},
	} {
		require.ErrorContains(t, check(hill(c.n)), c.want)
		for _, n := range c.fit {
			require.NoError(t, check(hill(n)))
		}
	}
	p := hill(31)
	p.N[1] = 20
	require.ErrorContains(t, check(p), "20 points an axis cannot be halved: use 15 or 31 points")
}
