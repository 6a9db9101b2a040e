package p2psap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers and ports of sessions follow from the node's incarnation, which a driver draws at random: two runs
// with one seed have different ones. The same incarnation gives the same ones.
func TestSessionNumbersOfEachLife(t *testing.T) {
	type drawn struct {
		id   SessionID
		port uint16
	}
	life := func(incarnation uint64) drawn {
		w := newWorld(t, 3)
		a := w.add("a", func(c *NodeConfig) { c.Seed, c.Incarnation = 1, incarnation })
		w.add("b", nil)
		w.connect()
		require.True(t, w.until(1e9, func() bool { return a.Finding("b").Locality != 0 }))
		id, err := a.Open(w.now, "b", syncOptions("s"))
		require.NoError(t, err)
		return drawn{id, a.session(id).mine.Port}
	}
	seen, ports := map[SessionID]bool{}, map[uint16]bool{}
	for incarnation := range uint64(64) {
		d := life(2*incarnation + 1)
		require.Equal(t, d, life(2*incarnation+1))
		seen[d.id], ports[d.port] = true, true
	}
	require.Greater(t, len(seen), 60)
	require.Greater(t, len(ports), 60)
	require.Equal(t, life(0), life(0), "a simulation has its seed only")
}
