//go:build linux

package obstacle_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/checkpoint"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// saved is a checkpoint of the process that leads after the loss of the launcher, whose sets have a term.
const saved = `manifest-\d+\.\d+\.json$`

// resumed continues the run of startByHand to its tolerance, and requires its answer.
func resumed(t *testing.T, directory string) report.Solution {
	t.Helper()
	noGate(t)
	r := start(t, "resume", directory, "--peers", "2", "--method", "multigrid", "--format", "json")
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Empty(t, s.Resumed.Skipped)
	want := start(t, "solve", "membrane", "--n", "24", "--tol", "1e-9", "--peers", "1", "--method", "multigrid", "--format", "json")
	require.Equal(t, 0, want.wait(patience))
	require.InEpsilon(t, float64(want.solution().Sum), float64(s.Sum), 1e-6)
	return s
}

// killAll ends all processes of a run at once.
func killAll(all []*running) {
	for _, p := range all {
		p.signal(syscall.SIGKILL)
	}
	for _, p := range all {
		<-p.done
	}
}

// The process that leads after the loss of the launcher goes on with its checkpoints. If all are killed then, the run
// continues from the newest one.
func TestCheckpointsAfterTheLauncher(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	for _, scheme := range schemes() {
		directory := filepath.Join(t.TempDir(), "c")
		b := startByHand(t, "--scheme", scheme, "--suspect", "1m", "--checkpoint", directory, "--checkpoint-every", "200ms")
		b.said("checkpoint written")
		b.signal(syscall.SIGKILL)
		leader := b.leads(b.peers)
		before, err := checkpoint.Open(directory, nil)
		require.NoError(t, err)
		leader.said(`"sweeps":[1-9]\d*.*checkpoint written`)
		killAll(b.peers)
		f, err := checkpoint.Open(directory, nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, f.Sweeps, before.Sweeps)
		require.Regexp(t, saved, f.Name)
		s := resumed(t, directory)
		require.Equal(t, f.Name, s.Resumed.From)
		require.Equal(t, scheme, s.Scheme)
	}
}

// SIGTERM to all processes that are left ends the run with a checkpoint, and the one that leads says where it is. An
// obstacle attach that is connected gets the answer.
func TestSIGTERMAfterTheLauncher(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	for _, attached := range some([]bool{false, true}) {
		directory := filepath.Join(t.TempDir(), "c")
		b := startByHand(t, "--suspect", "1m", "--checkpoint", directory, "--checkpoint-every", "0")
		b.signal(syscall.SIGKILL)
		leader := b.leads(b.peers)
		leader.said("leading the run")
		var a *running
		if attached {
			a = b.attach(b.keepers[1:]...)
			leader.said("obstacle attach follows the run")
		}
		for _, p := range b.peers {
			p.signal(syscall.SIGTERM)
		}
		require.Equal(t, 3, leader.wait(patience))
		leader.said("the run was stopped before its tolerance: obstacle resume " + directory + ", on .*, continues it")
		leader.neverSaid("fetches its answer")
		for _, p := range without(b.peers, leader) {
			require.Equal(t, 0, p.wait(patience))
		}
		if attached {
			require.Equal(t, 3, a.wait(patience))
			s := a.solution()
			require.Equal(t, launch.Interrupted, s.Reason)
			require.True(t, s.Resumable)
			require.Equal(t, directory, s.Checkpoint.Directory)
		}
		require.Positive(t, resumed(t, directory).Resumed.Sweeps)
	}
}

// A process that keeps the answer of a run ends at the first request, and says that the answer is lost.
func TestKeptAnswerAfterTheLauncher(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	for _, request := range some([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM}) {
		b := startByHand(t, "--suspect", "1m")
		b.signal(syscall.SIGKILL)
		leader := b.leads(b.peers)
		b.open()
		leader.said("obstacle attach .* fetches its answer")
		leader.signal(request)
		require.Equal(t, 1, leader.wait(patience))
		leader.said(`the answer of the run \(converged\) is lost: this process was asked to end`)
		for _, p := range without(b.peers, leader) {
			require.Equal(t, 0, p.wait(patience))
		}
	}
}

// A run that ends at its bound on sweeps after the loss of the launcher can be continued, and the answer says so.
func TestBoundAfterTheLauncher(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel() // its peers wait at a gate
	directory := filepath.Join(t.TempDir(), "c")
	b := startByHand(t, "--suspect", "1m", "--checkpoint", directory, "--checkpoint-every", "0", "--max-sweeps", "400")
	b.signal(syscall.SIGKILL)
	leader := b.leads(b.peers)
	b.open()
	a := b.attach(leader.said(`obstacle attach (\S+) fetches its answer`)[1]) // the other keepers have ended
	require.Equal(t, 3, a.wait(patience))
	s := a.solution()
	require.Equal(t, launch.Sweeps, s.Reason)
	require.True(t, s.Resumable)
	require.Equal(t, directory, s.Checkpoint.Directory)
	require.Equal(t, 1, s.Checkpoint.Written)
	require.Regexp(t, saved, resumed(t, directory).Resumed.From)
}

// Without the directory on its host, the process that leads says so once and goes on.
func TestCheckpointsElsewhere(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	directory := filepath.Join(t.TempDir(), "c")
	b := startByHand(t, "--suspect", "1m", "--checkpoint", directory, "--checkpoint-every", "0")
	require.NoError(t, os.RemoveAll(directory))
	b.signal(syscall.SIGKILL)
	leader := b.leads(b.peers)
	b.open()
	a := b.attach(b.keepers[2], b.keepers[1])
	require.Equal(t, 0, a.wait(patience))
	require.True(t, a.solution().Converged)
	require.Nil(t, a.solution().Checkpoint)
	require.Equal(t, 0, leader.wait(patience))
	leader.said("cannot write its checkpoints: checkpoint " + directory + ": the directory cannot be read: no such file")
	said := 0
	for _, l := range leader.lines {
		if strings.Contains(l, directory) {
			said++
		}
	}
	require.Equal(t, 1, said)
	require.NoDirExists(t, directory)
}

// A launcher that was only cut off leaves the checkpoints of the process that leads meanwhile alone, in a directory that
// both have.
func TestCutOffLauncherKeepsNewerCheckpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel() // its peers wait at a gate
	lab := netlab.New(t)
	a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
	secret, directory := secretFile(t, "the secret of this run"), filepath.Join(t.TempDir(), "c")
	closeGate(t, gate.Gate{})
	r := startIn(t, a.Host.Do, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "3",
		"--peer-timeout", "6s", "--rendezvous", net.JoinHostPort(a.IPv4.String(), "0"), "--secret-file", secret,
		"--checkpoint", directory, "--checkpoint-every", "200ms", "--format", "json")
	address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	join := func(e netlab.End, seat string) *running {
		return startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(), "--secret-file", secret,
			"--seat", seat)
	}
	far := []*running{join(b, "0"), join(b, "1")}
	near := join(a, "2")
	r.said("keepers of the run: .*If")
	r.said("checkpoint written")
	require.NoError(t, a.Cut())
	leader := (&byHand{running: r}).leads(far)
	leader.said("checkpoint written")
	<-r.done // others of its peers go on
	require.Equal(t, 3, r.code)
	require.Equal(t, 3, near.wait(patience))
	s := r.solution()
	require.Equal(t, launch.CutOff, s.Reason)
	require.True(t, s.Resumable)
	f, err := checkpoint.Open(directory, nil)
	require.NoError(t, err)
	require.Empty(t, f.Skipped)
	require.Regexp(t, saved, f.Name)
	killAll(far)
	resumed(t, directory)
}
