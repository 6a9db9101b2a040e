package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

func TestPeersOfTheAllocationCountRun(t *testing.T) {
	if testing.Short() {
		t.Skip("opens sockets")
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		n, err := countAllocations(context.Background(), s, 50)
		require.NoError(t, err)
		require.Positive(t, n)
	}
}
