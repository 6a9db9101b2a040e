//go:build linux

package obstacle_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/meet"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// tasks are the processes of one command that a launcher, as Open MPI, has started.
type tasks struct {
	t    *testing.T
	size int
	dir  string // in which they meet
	args []string
	all  []*running
}

func startTasks(t *testing.T, size int, args ...string) *tasks {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	k := &tasks{t: t, size: size, dir: dir, args: append(args, "--meet", dir, "--format", "json")}
	for rank := range size {
		k.all = append(k.all, k.start(rank))
	}
	return k
}

func (k *tasks) start(rank int, more ...string) *running {
	env := []string{
		fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d", rank), fmt.Sprintf("OMPI_COMM_WORLD_SIZE=%d", k.size),
		fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_SIZE=%d", k.size), "PMIX_NAMESPACE=17",
	}
	do := func(f func() error) error { return f() }
	return startAs(k.t, do, env, nil, append(append([]string{"solve"}, k.args...), more...)...)
}

// kill ends a task as SIGKILL does.
func (k *tasks) kill(rank int) {
	k.all[rank].signal(syscall.SIGKILL)
	<-k.all[rank].done
}

// ends requires that all tasks but those given end with 0, and returns the only one that has printed an answer.
func (k *tasks) ends(but ...int) (answer *running) {
	k.t.Helper()
	for rank, r := range k.all {
		if len(but) > 0 && but[0] == rank {
			continue
		}
		assert.Zero(k.t, r.wait(patience), "task %d", rank)
		if r.stdout.Len() > 0 {
			require.Nil(k.t, answer, "task %d prints a second answer", rank)
			answer = r
		}
	}
	require.NotNil(k.t, answer)
	return answer
}

// disturbed starts tasks whose run waits at a gate, and returns when it relaxes.
func disturbed(t *testing.T, size int, more ...string) *tasks {
	t.Helper()
	closeGate(t, gate.Gate{})
	k := startTasks(t, size, append([]string{"membrane", "--n", "24", "--tol", "1e-6", "--method", "richardson",
		"--peer-timeout", "10m", "--scheme", "async"}, more...)...)
	k.all[0].said(`"relaxing"`)
	return k
}

func TestTasks(t *testing.T) {
	t.Parallel()
	k := startTasks(t, 3, "membrane", "--n", "16", "--keepers", "3", "--elastic")
	r := k.ends()
	assert.Same(t, k.all[0], r)
	s := r.solution()
	assert.True(t, s.Converged)
	assert.Equal(t, 3, s.Peers)
	left, err := os.ReadDir(k.dir)
	require.NoError(t, err)
	assert.Empty(t, left, "the key of the run is left in a file")
}

// A file of a run that is dead does not keep the next one from meeting, and one whose launcher refuses its command ends
// all its tasks with the exit code of bad input, and says so once.
func TestTasksAfterADeadRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	dead := meet.Place{Addresses: []string{"127.0.0.1:1"}, Key: make([]byte, 32), Host: "gone", Pid: 1}
	_, err := meet.Publish(dir, "17", dead, nil)
	require.NoError(t, err)
	k := &tasks{t: t, size: 2, dir: dir, args: []string{"membrane", "--n", "12", "--meet", dir, "--format", "json"}}
	last := k.start(1)
	k.all = []*running{k.start(0), last}
	assert.Same(t, k.all[0], k.ends())
}

func TestTasksOfABadCommand(t *testing.T) {
	t.Parallel()
	k := startTasks(t, 2, "membran")
	for rank, r := range k.all {
		assert.Equal(t, 2, r.wait(patience), "task %d", rank)
		assert.Equal(t, rank == 0, strings.Contains(strings.Join(r.lines, "\n"), `did you mean "membrane"?`), "task %d", rank)
	}
}

func TestKilledTask(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	k := disturbed(t, 4, "--peers", "3", "--spares", "1")
	k.all[0].said("spare peer joined")
	k.kill(1)
	k.all[0].open()
	s := k.ends(1).solution()
	assert.True(t, s.Converged)
	require.Len(t, s.Losses, 1)
	assert.Equal(t, 1, s.Losses[0].Rank)
	assert.Contains(t, s.Losses[0].By, "spare")
}

// The process that leads the run after the loss of the first one prints the answer.
func TestKilledFirstTask(t *testing.T) {
	t.Parallel()
	k := disturbed(t, 3, "--peers", "3")
	for _, r := range k.all[1:] {
		r.said("this process can lead the run")
	}
	k.kill(0)
	k.all[0].open()
	s := k.ends(0).solution()
	assert.True(t, s.Converged)
	require.Len(t, s.Losses, 1)
	assert.Zero(t, s.Losses[0].Rank)
}

// A spare task of a run without keepers ends soon after the first one is lost, and says what to do.
func TestSpareTaskOfALostRun(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "checkpoint")
	k := disturbed(t, 4, "--peers", "3", "--spares", "1", "--keepers", "1", "--checkpoint", at)
	k.all[0].said("spare peer joined")
	k.kill(0)
	assert.Equal(t, 1, k.all[3].wait(patience))
	k.all[3].said("process 3 of 4: run 17: the run is lost: .*left before it needed this spare peer.*it had no keepers " +
		"that could lead it instead: start it again, or continue it from its checkpoint: obstacle resume " + at)
	assert.Equal(t, 1, k.all[1].wait(patience))
}

// A task that is started again takes a part of the process that took over the part of the lost one.
func TestTaskReturns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	k := disturbed(t, 3, "--peers", "3")
	k.kill(2)
	k.all[0].said("recovered: all peers relax again")
	k.all[2] = k.start(2)
	k.all[0].said("parts move to other processes")
	k.all[0].open()
	s := k.ends().solution()
	assert.True(t, s.Converged)
	require.Len(t, s.Losses, 1)
	assert.Len(t, s.Moves, 1)
}

// SIGTERM to all tasks, as at the end of the time of a job, writes a checkpoint, from which the requeued job continues.
func TestTasksContinue(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	at := filepath.Join(t.TempDir(), "checkpoint")
	k := disturbed(t, 3, "--peers", "3", "--checkpoint", at)
	for _, r := range k.all {
		r.signal(syscall.SIGTERM)
	}
	assert.Equal(t, 3, k.all[0].wait(patience))
	s := k.all[0].solution()
	assert.True(t, s.Resumable)
	for _, r := range k.all[1:] {
		assert.Zero(t, r.wait(patience))
	}
	noGate(t)
	k = startTasks(t, 3, "membrane", "--n", "24", "--tol", "1e-6", "--method", "richardson", "--checkpoint", at, "--continue")
	next := k.ends().solution()
	assert.True(t, next.Converged)
	require.NotNil(t, next.Resumed)
	assert.NotZero(t, next.Resumed.Sweeps)
}

// SIGTERM to the tasks that are left after the loss of the first one writes a checkpoint, too, and the answer says so.
func TestTasksContinueWithoutTheFirst(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	at := filepath.Join(t.TempDir(), "checkpoint")
	out := filepath.Join(t.TempDir(), "u.npy")
	here, err := os.Getwd()
	require.NoError(t, err)
	relative, err := filepath.Rel(here, out)
	require.NoError(t, err)
	k := disturbed(t, 3, "--peers", "3", "--checkpoint", at, "--out", relative)
	for _, r := range k.all[1:] {
		r.said("this process can lead the run")
	}
	k.kill(0)
	leader := (&byHand{running: k.all[0]}).leads(k.all[1:])
	leader.said("leading the run")
	for _, r := range k.all[1:] {
		r.signal(syscall.SIGTERM)
	}
	assert.Equal(t, 3, leader.wait(patience))
	assert.Zero(t, without(k.all[1:], leader)[0].wait(patience))
	s := leader.solution()
	assert.True(t, s.Resumable)
	require.NotNil(t, s.Checkpoint)
	assert.Equal(t, at, s.Checkpoint.Directory)
	name, err := os.Hostname()
	require.NoError(t, err)
	require.Len(t, s.Outputs, 1)
	assert.Equal(t, report.Output{File: out, Host: name}, s.Outputs[0])
	assert.FileExists(t, out)
	leader.said(`"host":"` + name + `","path":"` + out + `"`)
	noGate(t)
	k = startTasks(t, 3, "membrane", "--n", "24", "--tol", "1e-6", "--method", "richardson", "--checkpoint", at, "--continue")
	next := k.ends().solution()
	assert.True(t, next.Converged)
	require.NotNil(t, next.Resumed)
	assert.NotZero(t, next.Resumed.Sweeps)
}

// The secret may be on the standard input of all tasks, and the first one listen at a given port.
func TestTasksBySecret(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("a secret of this run\n"), 0o600))
	k := &tasks{t: t, size: 2, args: []string{"membrane", "--n", "12", "--format", "json", "--secret-file", "-",
		"--rendezvous", free(t)}}
	for rank := range 2 {
		f, err := os.Open(secret)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		env := []string{fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d", rank), "OMPI_COMM_WORLD_SIZE=2"}
		do := func(f func() error) error { return f() }
		var in io.Reader = f
		k.all = append(k.all, startAs(t, do, env, in, append([]string{"solve"}, k.args...)...))
	}
	assert.True(t, k.ends().solution().Converged)
}

// free returns an address of loopback at which nothing listens.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
