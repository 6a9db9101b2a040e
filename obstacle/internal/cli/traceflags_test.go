//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/peer"
	"github.com/p2pdc/p2pdc/trace"
)

// recordedNode is a node with a ring of the trace.
type recordedNode struct {
	mu   sync.Mutex
	ring *trace.Ring
}

func (n *recordedNode) Snapshot() *trace.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ring.Snapshot(1, trace.Node{Name: "n"})
}

func (n *recordedNode) add(at int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ring.Add(at, trace.Send)
}

// recordsIn returns the number of records in a file.
func recordsIn(t *testing.T, file string) (records int) {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	nodes, err := trace.Parse(b)
	require.NoError(t, err)
	for _, n := range nodes {
		records += len(n.Records)
	}
	return records
}

// The trace is written at SIGUSR1, and after a failed run.
func TestTraceIsWrittenAtSignalsAndAfterAFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t")
	f := traceFlags{file: file, mib: 1, children: &traced{}}
	failure := errors.New("the run failed")
	var o peer.Options
	err := f.recorded(file, &o, zerolog.Nop(), func() error {
		require.Zero(t, recordsIn(t, file), "the file is made before the run")
		n := &recordedNode{ring: o.Trace.Ring()}
		o.Trace.Add(n)
		n.add(1)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
		await.Until(t, func() bool { return recordsIn(t, file) == 1 }, "a trace with one record")
		n.add(2)
		return failure
	})
	require.ErrorIs(t, err, failure)
	require.Equal(t, 2, recordsIn(t, file))
}

// Without --trace a run has no trace.
func TestNoTraceIsTheDefault(t *testing.T) {
	var f traceFlags
	var o peer.Options
	require.NoError(t, f.recorded("", &o, zerolog.Nop(), func() error {
		require.Nil(t, o.Trace)
		require.Nil(t, o.Trace.Ring())
		return nil
	}))
}

// What is no trace is refused by its first bytes, or by its length: neither holds much memory, nor takes long.
func TestTracesOfAnyLengthAreRefused(t *testing.T) {
	for size, want := range map[int64]string{
		maxTrace: "not a trace file of obstacle", // none of its zeros is on the disk
		20 << 30: "its 21474836480 bytes are more than the 4294967296 allowed",
	} {
		name := filepath.Join(t.TempDir(), "zeros")
		f, err := os.Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(size))
		require.NoError(t, f.Close())
		for _, command := range []string{"stats", "export"} {
			code, out, errs := call("trace", command, name)
			require.Equal(t, ExitUsage, code)
			require.Empty(t, out)
			require.Contains(t, errs, want)
		}
	}
}

// Every peer writes a trace of its own. One that cannot be written is refused before the run, and is named after it if its
// pipe has no reader.
func TestTracesOfEveryPeer(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("folder.1", 0o700))
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	solve := []string{"solve", "ball2d", "--n", "7", "--peers", "2", "--method", "sor", "--trace"}
	simulate := []string{"simulate", "ball2d", "--n", "7", "--machines", "2", "--model", "graphene-eth", "--trace"}
	for name, want := range map[string]string{
		"folder":      "folder.1, the file of peer 1, is a directory",
		"pipe":        "--trace pipe is a pipe or a device, and every peer writes a file of its own: make pipe.0 and so on of pipes",
		"/dev/stdout": "--trace /dev/stdout is a pipe or a device",
	} {
		for _, args := range [][]string{append(solve, name), append(solve, name, "--in-process"), append(simulate, name)} {
			code, out, errs := call(args...)
			require.Equal(t, ExitUsage, code, "%q: %s", args, errs)
			require.Empty(t, out)
			require.Contains(t, errs, want)
		}
	}
	require.NoError(t, syscall.Mkfifo("t.1", 0o600))
	code, _, errs := call(append(solve, "t", "--in-process")...)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "t.1: it is a pipe that no process reads")
	require.NotContains(t, errs, "t.0")
	require.Positive(t, recordsIn(t, "t.0"))
}
