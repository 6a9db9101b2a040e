package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
)

func TestEverySchemeFindsTheDirectSolution(t *testing.T) {
	for _, scheme := range []string{"sync", "async", "hybrid", "delay:2"} {
		for _, words := range [][]string{{scheme}, {scheme, "simulate"}} {
			var out bytes.Buffer
			require.NoError(t, show(t.Context(), &out, words))
			require.Contains(t, out.String(), "converged")
			require.Regexp(t, `largest difference from LU: \d\.\de-1[0-9]`, out.String(), words)
		}
	}
}

func TestBlocks(t *testing.T) {
	a, b := system()
	require.NoError(t, iteratetest.Suite{Blocks: blocks(a, b), Tolerance: 1e-6}.Check())
}

func TestNoWordsAreSync(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show(t.Context(), &out, nil))
	require.Contains(t, out.String(), "sync over sockets: converged")
}

func TestOtherWordsAreRefused(t *testing.T) {
	for _, words := range [][]string{{"fast"}, {"sync", "quickly"}, {"sync", "simulate", "again"}} {
		require.Error(t, show(t.Context(), &bytes.Buffer{}, words))
	}
}
