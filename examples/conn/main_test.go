package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(await.Context(t), &out))
	require.Equal(t, "net/rpc: the average of 100000 values is 49999.5\n"+
		"TLS: HTTP/2.0 for /first\nTLS: HTTP/2.0 for /second\n", out.String())
}
