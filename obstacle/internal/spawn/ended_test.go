//go:build unix

package spawn

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that ends before it has read its line is a started one, and Wait tells how it ended: here it has closed its
// standard input.
func TestProcessThatReadsNothing(t *testing.T) {
	for range 20 {
		p, err := Start("/bin/sh", []string{"-c", "exec 0<&-; exit 7"}, make([]byte, 1<<20), io.Discard)
		require.NoError(t, err)
		require.ErrorContains(t, p.Wait(), "exit status 7")
	}
	_, err := Start("/nowhere", nil, nil, io.Discard)
	require.ErrorIs(t, err, os.ErrNotExist)
}
