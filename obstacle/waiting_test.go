//go:build linux

package obstacle_test

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/trace"
)

// One signal ends the wait for standard input or a pipe that nobody writes to, whatever the program would read there.
// A line has said what it waits for.
func TestWaitsEndBySignals(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, c := range []struct {
		args []string
		what string
	}{
		{[]string{"solve", "membrane", "--rendezvous", "127.0.0.1:0", "--secret-file", "-"}, "standard input"},
		{[]string{"solve", "membrane", "--rendezvous", "127.0.0.1:0", "--secret-file", pipe}, "--secret-file " + pipe},
		{[]string{"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", "-"}, "standard input"},
		{[]string{"peer", "--rendezvous", "127.0.0.1:1", "--secret-file", pipe}, "--secret-file " + pipe},
		{[]string{"attach", "127.0.0.1:1", "--secret-file", "-"}, "standard input"},
		{[]string{"solve", "membrane", "--hosts", pipe}, "--hosts " + pipe},
		{[]string{"stack", "--of", "-"}, "standard input"},
		{[]string{"stack", "--of", pipe}, "--of " + pipe},
		{[]string{"trace", "stats", pipe}, "the trace " + pipe},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(c.args[0]+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				in, out, err := os.Pipe()
				require.NoError(t, err)
				defer in.Close()
				defer out.Close() // the program's standard input never ends
				r := startWith(t, in, c.args...)
				r.said("waiting for " + c.what)
				r.signal(signal)
				require.Equal(t, 3, r.wait(patience), c.args)
				r.said("interrupted while it waited for " + c.what + ".*; nothing was run")
				require.Empty(t, r.stdout.String())
			})
		}
	}
}

// A pipe that no process reads does not block an output.
func TestCalibrateToAPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	r := start(t, "calibrate", "--n", "16", "--out", "pipe")
	require.Equal(t, 1, r.wait(patience))
	r.said("it is a pipe that no process reads")
}

// The answer is printed while the report or a trace hangs, in a pipe that its reader does not empty.
func TestTheAnswerComesBeforeFilesThatHang(t *testing.T) {
	t.Chdir(t.TempDir())
	for flag, args := range map[string][]string{
		"--report": {"solve", "membrane", "--n", "8", "--in-process", "--format", "json", "--report", "pipe.0"},
		"--trace": {"simulate", "membrane", "--n", "16", "--model", "graphene-eth", "--machines", "2", "--format", "json",
			"--trace", "pipe"},
	} {
		require.NoError(t, syscall.Mkfifo("pipe.0", 0o600))
		pipe, err := os.OpenFile("pipe.0", os.O_RDWR, 0)
		require.NoError(t, err)
		program := exec.Command(os.Args[0], args...)
		program.Env = append(os.Environ(), asProgram+"="+asItIs)
		stdout, err := program.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, program.Start())
		defer time.AfterFunc(patience, func() { _ = program.Process.Kill() }).Stop()
		var answer report.Solution
		require.NoError(t, json.NewDecoder(stdout).Decode(&answer), flag)
		require.Equal(t, "converged", answer.Reason, flag)
		var read atomic.Int64
		go func() {
			piece := make([]byte, 1<<16)
			for n, err := pipe.Read(piece); err == nil; n, err = pipe.Read(piece) {
				read.Add(int64(n))
			}
		}()
		require.NoError(t, program.Wait(), flag)
		await.Until(t, func() bool { return read.Load() > 1<<16 }, "more than a pipe holds: it was blocked before")
		require.NoError(t, pipe.Close())
		require.NoError(t, os.Remove("pipe.0"))
	}
}

// A pipe in place of the report that no process reads is an error after the answer.
func TestReportToAPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	r := start(t, "solve", "membrane", "--n", "8", "--in-process", "--format", "json", "--report", "pipe")
	require.Equal(t, 1, r.wait(patience))
	require.True(t, r.solution().Converged)
	r.said("--report pipe: .*it is a pipe that no process reads")

	// A link is replaced, as by --out; what it names is left alone.
	require.NoError(t, os.WriteFile("mine", []byte("mine"), 0o600))
	require.NoError(t, os.Symlink("mine", "link.html"))
	r = start(t, "solve", "membrane", "--n", "8", "--in-process", "--report", "link.html")
	require.Equal(t, 0, r.wait(patience))
	text, err := os.ReadFile("mine")
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	text, err = os.ReadFile("link.html")
	require.NoError(t, err)
	require.Greater(t, len(text), 1<<16)
}

// A trace is written into a pipe that stands for its file, and does not replace it.
func TestTraceToAPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, syscall.Mkfifo("pipe.0", 0o600))
	reader, err := os.OpenFile("pipe.0", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	_, err = unix.FcntlInt(reader.Fd(), unix.F_SETPIPE_SZ, 1<<20) // the trace fits
	require.NoError(t, err)
	r := start(t, "solve", "membrane", "--n", "8", "--peers", "1", "--trace", "pipe")
	require.Equal(t, 0, r.wait(patience))
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	_, err = trace.Parse(text)
	require.NoError(t, err)
	info, err := os.Lstat("pipe.0")
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
	r = start(t, "solve", "membrane", "--n", "8", "--peers", "1", "--trace", "pipe")
	require.Equal(t, 0, r.wait(patience), "the answer does not depend on the trace of a peer")
	r.said("pipe.0: it is a pipe that no process reads")
}

// Files that must be regular are refused at once if they are pipes.
func TestPipesAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	require.NoError(t, syscall.Mkfifo("p.yaml", 0o600))
	require.NoError(t, os.Mkdir("c", 0o700))
	require.NoError(t, syscall.Mkfifo("c/manifest-1.json", 0o600))
	require.NoError(t, os.WriteFile("a.yaml",
		[]byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: {npy: pipe}\n"), 0o600))
	for _, args := range [][]string{
		{"solve", "p.yaml"}, {"check", "p.yaml"}, {"check", "a.yaml"}, {"solve", "membrane", "--initial", "pipe"},
		{"solve", "membrane", "--clusters", "0", "--topology", "p.yaml"}, {"resume", "c"},
		{"simulate", "membrane", "--model", "p.yaml"}, {"clusters", "p.yaml"},
		{"solve", "membrane", "--http", "0", "--http-token-file", "pipe"},
	} {
		r := start(t, args...)
		require.Equal(t, 2, r.wait(patience), args)
		r.said("not a regular file|want a regular file")
	}
}

// A run without a terminal says on stderr how far it is, and that a faster method is there as soon as the estimate is
// longer than 10 s. --log-level error silences both, and stdout is the answer alone.
func TestSignOfLife(t *testing.T) {
	t.Parallel()
	closeGate(t, gate.Gate{Every: 100 * time.Millisecond}) // minutes to the tolerance
	run := []string{"solve", "torsion", "--n", "48", "--peers", "2", "--method", "richardson", "--format", "json"}
	r := start(t, run...)
	r.said(`"message":"torsion: (nothing is relaxed yet after|residual )`)
	r.said(`"message":"torsion: residual [^"]* of 1e-06  sweep [0-9]+  [^"]*, (time )?left `)
	r.said(`at least .* left: richardson is the slowest method; without --method, [a-z]+ is chosen`)
	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))
	require.Equal(t, "interrupted", r.solution().Reason)
	r = start(t, append(run, "--log-level", "error", "--max-sweeps", "2")...)
	require.Equal(t, 3, r.wait(patience))
	r.neverSaid("torsion: ")
}

// One signal ends the wait for a server that does not answer.
func TestASilentServerIsLeft(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	r := start(t, "stack", "--live", silent.Addr().String())
	conn, err := silent.Accept()
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1)) // of the request: the program waits for the answer
	require.NoError(t, err)
	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))
}
