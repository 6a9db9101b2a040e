package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
)

// The user's seed determines the random numbers of the micro-protocols, and nothing that has to differ from
// run to run.
func TestSeedLeavesTheIncarnationAtRandom(t *testing.T) {
	c := Config{Name: "a", Plain: true, Rails: []Rail{{Link: &closedLink{}}}, Catalog: ctp.Catalog(),
		Policy: p2psap.TablePolicy{}, Seed: 1}
	a, err := c.core()
	require.NoError(t, err)
	b, err := c.core()
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Seed)
	require.EqualValues(t, 1, b.Seed)
	require.NotZero(t, a.Incarnation)
	require.NotEqual(t, a.Incarnation, b.Incarnation)
	c.Seed = 0
	b, err = c.core()
	require.NoError(t, err)
	require.NotZero(t, b.Seed)
}
