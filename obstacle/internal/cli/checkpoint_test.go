package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/checkpoint"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// saving returns a saver of the problem front1d on four points, with a checkpoint a minute.
func saving(t *testing.T) (*saver, string) {
	t.Helper()
	q := requestOf(t, []string{"--n", "4", "--peers", "1"})
	w, err := q.resolve("front1d")
	require.NoError(t, err)
	directory := filepath.Join(t.TempDir(), "c")
	s, err := (&app{}).newSaver(q, w, &checkpointFlags{directory: directory, every: time.Minute})
	require.NoError(t, err)
	return s, directory
}

// stepOf returns the step of the newest checkpoint, −1 if there is none.
func stepOf(t *testing.T, directory string) int {
	t.Helper()
	f, err := checkpoint.Open(directory, nil)
	if err != nil {
		return -1
	}
	require.InDelta(t, f.Step, f.U[3], 0)
	return f.Step
}

// The checkpoint of a run that stopped early holds its last iterate, and the starting iterate where that is the answer.
func TestLastCheckpointGoesOn(t *testing.T) {
	for _, o := range []*launch.Outcome{
		{U: []float64{1, 2, 3, 4}},
		{U: make([]float64, 4), AtStart: true, Ended: []float64{1, 2, 3, 4}},
	} {
		s, directory := saving(t)
		o.Reason, o.Peers = launch.Sweeps, []rendezvous.Result{{}, {State: []byte("state")}}
		require.NoError(t, s.writeLast(o, false, 1))
		f, err := checkpoint.Open(directory, nil)
		require.NoError(t, err)
		require.Equal(t, []float64{1, 2, 3, 4}, f.U)
		require.Equal(t, o.AtStart, f.Best != nil)
		require.Equal(t, "state", string((&request{from: f}).earlierState()))
	}
}

// A checkpoint of a time step is written once a minute, of a vector that may change meanwhile, but none of the start or
// of the end of the run.
func TestSaverOfTimeSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, directory := saving(t)
		u := make([]float64, 4)
		step := func(m int) int {
			u[3] = float64(m)
			s.Step(m, u)
			u[3] = -1
			s.writing.Wait()
			return stepOf(t, directory)
		}
		require.Equal(t, -1, step(0))
		require.Equal(t, -1, step(1))
		time.Sleep(time.Minute)
		require.Equal(t, -1, step(0))
		require.Equal(t, 2, step(2))
		require.Equal(t, 2, step(3))
		time.Sleep(59 * time.Second)
		require.Equal(t, 2, step(4))
		time.Sleep(time.Second)
		require.Equal(t, 2, step(16), "the run is complete")
		require.Equal(t, 5, step(5))
		s.every = 0
		time.Sleep(time.Hour)
		require.Equal(t, 5, step(6))
	})
}

// A checkpoint is not due while another is being written, and sweeps include those of earlier runs. The answer names
// the last error.
func TestSaverOfIterates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, directory := saving(t)
		s.before.Sweeps = 100
		time.Sleep(time.Minute)
		require.True(t, s.Due())
		s.Take([]float64{0, 0, 0, 0}, launch.Progress{Sweep: 5})
		time.Sleep(time.Minute)
		s.writing.Wait()
		require.Equal(t, 0, stepOf(t, directory))
		f, err := checkpoint.Open(directory, nil)
		require.NoError(t, err)
		require.EqualValues(t, 105, f.Sweeps)
		s.busy = true
		require.False(t, s.Due())
		s.busy = false
		require.True(t, s.Due())

		require.NoError(t, os.RemoveAll(directory))
		s.Take([]float64{0, 0, 0, 0}, launch.Progress{Sweep: 6})
		s.writing.Wait()
		time.Sleep(time.Minute)
		require.True(t, s.Due(), "the next one is tried")
		answer := &report.Solution{}
		o := &launch.Outcome{Reason: launch.Failed}
		require.NoError(t, s.end(t.Context(), o, answer), "a failed run depends on no checkpoint")
		require.Equal(t, 1, answer.Checkpoint.Failed)
		require.Contains(t, answer.Checkpoint.Error, "no such file or directory")

		o = &launch.Outcome{Reason: launch.Time, U: make([]float64, 4), Peers: []rendezvous.Result{{Sweeps: 8}}}
		exit, is := errors.AsType[*exitError](s.end(t.Context(), o, answer))
		require.True(t, is)
		require.Equal(t, ExitFailed, exit.code)
		require.Equal(t, 2, answer.Checkpoint.Failed)
	})
}

// Flags that the user gives win. Those of the method belong to it.
func TestAdoptedFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want map[string]string
	}{
		{nil, map[string]string{"scheme": "async", "tol": "1e-07", "method": "sor", "omega": "1.5", "cycle": "auto"}},
		{[]string{"--tol", "0.1", "--omega", "1.2"}, map[string]string{"tol": "0.1", "method": "sor", "omega": "1.2"}},
		{[]string{"--method", "multigrid"}, map[string]string{"scheme": "async", "method": "multigrid", "omega": "0"}},
		{[]string{"--method", "sor"}, map[string]string{"method": "sor", "omega": "0"}},
		{[]string{"--overlap", "3"}, map[string]string{"method": "sor", "omega": "1.5", "overlap": "3"}}, // async: sor on boxes
		{[]string{"--overlap", "3", "--scheme", "sync"}, map[string]string{"method": "auto", "omega": "0", "overlap": "3"}},
		{[]string{"--cycle", "w"}, map[string]string{"method": "auto", "omega": "0", "cycle": "w"}},
		{[]string{"--order", "in-turn"}, map[string]string{"method": "auto", "omega": "0", "order": "in-turn"}},
	} {
		a := &app{catalog: catalog.New()}
		s := &solveFlags{request: &request{catalog: a.catalog}}
		command, _, err := a.root().Find([]string{"resume"})
		require.NoError(t, err)
		f := command.Flags()
		require.NoError(t, f.Parse(c.args))
		s.from = &checkpoint.Found{}
		s.from.Flags = map[string]string{"scheme": "async", "tol": "1e-07", "method": "sor", "omega": "1.5"}
		require.NoError(t, s.adopt(f))
		for name, want := range c.want {
			require.Equal(t, want, f.Lookup(name).Value.String(), "%v: %s", c.args, name)
		}
		saved := savedFlags(f)
		require.Equal(t, f.Lookup("method").Value.String(), saved["method"])
	}
}

// A run whose method the program chose alternates after a checkpoint, too, with another scheme by the method that fits it. A
// method that is named, or chosen by a flag, is kept.
func TestResumeAlternates(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("islands.yaml", []byte("dimension: 2\ndomain: [[0, 1], [0, 1]]\nboundary: \"0\"\nf: \"100\"\n"+
		"obstacle: \"0.05*sin(9*x) - 0.1\"\ndiffusion: \"sin(22*floor(8*x) + 62*floor(8*y)) > 0.2 ? 1e4 : 1\"\n"), 0o600))
	run := func(want int, args ...string) (s report.Solution) {
		var out, errs bytes.Buffer
		args = append(args, "--in-process", "--format", "json")
		require.Equal(t, want, Main(t.Context(), args, catalog.New(), strings.NewReader(""), &out, &errs), errs.String())
		require.NoError(t, json.Unmarshal(out.Bytes(), &s))
		return s
	}
	const alternated = "which reduces the residual more per sweep"
	for _, c := range []struct {
		solve, resume    []string
		method, why, not string
	}{
		{nil, nil, "multigrid", "estimated work", ""},
		{nil, []string{"--scheme", "async", "--tol", "0.99"}, "schwarz", "scheme async", alternated},
		{[]string{"--scheme", "async"}, []string{"--scheme", "sync"}, "multigrid", "estimated work", ""},
		{nil, []string{"--omega", "1.8"}, "sor", "--omega", alternated},
		{[]string{"--omega", "1.8"}, nil, "sor", "that of the checkpoint", alternated},
		{[]string{"--method", "sor"}, nil, "sor", "that of the checkpoint", alternated},
	} {
		directory := filepath.Join(t.TempDir(), "c")
		run(ExitStopped, append([]string{"solve", "islands.yaml", "--n", "31", "--checkpoint", directory, "--max-sweeps", "8"}, c.solve...)...)
		s := run(ExitSolved, append([]string{"resume", directory}, c.resume...)...)
		require.Equal(t, c.method, s.Method, c)
		require.Contains(t, s.MethodWhy, c.why)
		if c.not == "" {
			require.Contains(t, s.About, alternated, c)
		} else {
			require.NotContains(t, s.About, c.not, c)
		}
	}
}

// A run in pieces that are shorter than the first trial of its method comes to an end.
func TestResumeInPieces(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("outward.yaml", []byte("dimension: 2\ndomain: [[0, 1], [0, 1]]\nboundary: \"0\"\nf: \"-1\"\n"+
		"obstacle: \"0.05*sin(9*x) - 0.1\"\nvelocity: [\"50*(x-0.5)\", \"50*(y-0.5)\"]\n"), 0o600))
	run := func(args ...string) int {
		var out, errs bytes.Buffer
		args = append(args, "--in-process", "--peers", "1", "--max-sweeps", "5", "--checkpoint", "c")
		return Main(t.Context(), args, catalog.New(), strings.NewReader(""), &out, &errs)
	}
	code, pieces := run("solve", "outward.yaml", "--n", "31"), 1
	for ; code == ExitStopped && pieces < 30; pieces++ {
		code = run("resume", "c")
	}
	require.Equal(t, ExitSolved, code)
	require.Greater(t, pieces, 3)
}

// A directory that does not answer holds the answer back for the peer timeout at most, and not after a request to end.
func TestDirectoryThatHangs(t *testing.T) {
	for _, converged := range []bool{true, false} {
		for _, asked := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s, directory := saving(t)
				hangs := make(chan struct{})
				s.writing.Go(func() { <-hangs })
				o := &launch.Outcome{Reason: launch.Converged, U: make([]float64, 4), Peers: make([]rendezvous.Result, 1)}
				answer := &report.Solution{Converged: converged}
				ctx, cancel := context.WithCancel(t.Context())
				if asked {
					time.AfterFunc(time.Second, cancel)
				}
				begin := time.Now()
				err := s.end(ctx, o, answer)
				took := time.Since(begin).Round(time.Second)
				require.Equal(t, 1, answer.Checkpoint.Failed)
				require.Equal(t, !converged, err != nil)
				if asked {
					require.Equal(t, time.Second, took)
				} else {
					require.Equal(t, s.limit, took)
					require.Contains(t, answer.Checkpoint.Error, directory+": it has not answered for 10s (--peer-timeout)")
				}
				cancel()
				close(hangs)
				synctest.Wait()
			})
		}
	}
}
