package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A second record at the same commit does not take the place of the first.
func TestRecordsStay(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		require.NoError(t, (&report{Commit: "abc"}).write(dir))
	}
	for _, suffix := range []string{"", "-2", "-3"} {
		require.FileExists(t, filepath.Join(dir, "0001-01-01-abc"+suffix+".json"))
		require.FileExists(t, filepath.Join(dir, "0001-01-01-abc"+suffix+".md"))
	}
}
