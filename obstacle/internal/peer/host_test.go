package peer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that waits for the peers that it hosts hosts no further one.
func TestNoPeerIsHostedAfterTheEnd(t *testing.T) {
	var h hosted
	ran := 0
	h.run(func() { ran++ })
	h.wait()
	h.run(func() { ran++ })
	h.wait()
	require.Equal(t, 1, ran)
}
