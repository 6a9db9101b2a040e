package tracefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/trace"
)

type named string

func (n named) Snapshot() *trace.Node { return &trace.Node{Name: string(n)} }

// A file holds the newest nodes of a process, in their order.
func TestAFileHoldsTheNewestNodes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "t")
	f, err := Create(name, trace.Options{})
	require.NoError(t, err)
	for i := range maxNodes + 3 {
		f.Add(named(fmt.Sprint(i)))
	}
	require.NoError(t, f.Write())
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	nodes, err := trace.Parse(b)
	require.NoError(t, err)
	require.Len(t, nodes, maxNodes)
	for i, n := range nodes {
		require.Equal(t, fmt.Sprint(i+3), n.Name)
	}
	_, err = Create(filepath.Join(t.TempDir(), "nowhere", "t"), trace.Options{})
	require.ErrorContains(t, err, "trace: ")
}
