package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every loop of the table runs; tiled sweeps by three threads are five single ones.
func TestLoopsOfTheTableRun(t *testing.T) {
	const n = 15 // coarsens
	dir := t.TempDir()
	plain, tiled := filepath.Join(dir, "plain"), filepath.Join(dir, "tiled")
	var out bytes.Buffer
	require.NoError(t, work(n, strings.NewReader("check "+plain+"\n"), &out))
	require.NoError(t, workKernels(n, strings.NewReader("check:tiled "+tiled+"\n"), &out))
	_, same, err := largestDifference(plain, tiled)
	require.NoError(t, err)
	require.True(t, same)

	var lines strings.Builder
	asked := 0
	for _, l := range kernelLines() {
		if l.ours {
			lines.WriteString(l.word + " 3\n" + l.word + ":2 3\n")
			asked += 2
		}
	}
	out.Reset()
	require.NoError(t, workKernels(n, strings.NewReader(lines.String()), &out))
	require.Len(t, strings.Fields(out.String()), asked)
	require.ErrorContains(t, workKernels(n, strings.NewReader("jump 1\n"), &out), "jump")
	require.Error(t, workKernels(n, strings.NewReader("relax fast\n"), &out))
}
