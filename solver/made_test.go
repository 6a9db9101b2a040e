package solver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// newNetwork builds the peers of a run by the methods of this module.
func newNetwork(seed uint64, configs []Config) (*network, error) {
	return newNetworkOf(seed, New, configs)
}

// workersOf returns the peers of a run of the Richardson method.
func workersOf(n *network) []*Worker {
	out := make([]*Worker, len(n.peers))
	for i, p := range n.peers {
		out[i] = p.(*Worker)
	}
	return out
}

func newSingle(t require.TestingT, c Config) *single { return newSingleOf(t, New, c) }

func together(t testing.TB, configs []Config) []Block { return togetherOf(t, New, configs) }
