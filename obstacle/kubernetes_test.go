//go:build linux

package obstacle_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// heldJob creates a Job whose run waits at a gate, and returns when it relaxes.
func heldJob(t *testing.T, size int, more ...string) (j *job, out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "u.npy")
	closeGate(t, gate.Gate{})
	j = startJob(t, size, append([]string{"membrane", "--n", "24", "--tol", "1e-6", "--method", "richardson", "--scheme", "async",
		"--out", out}, more...)...)
	j.pods[0].said(`"relaxing"`)
	return j, out
}

// solved requires that the Job has printed one answer, with the residual of what it has written.
func (j *job) solved(out string) (by *pod, s report.Solution) {
	j.t.Helper()
	by = j.answer()
	s = by.solution()
	require.True(j.t, s.Converged)
	p, _, err := file.Load("membrane", s.N)
	require.NoError(j.t, err)
	u, err := output.ReadInitial(out, p)
	require.NoError(j.t, err)
	e, err := verify.Evaluate(p, u, nil)
	require.NoError(j.t, err)
	require.Equal(j.t, float64(s.RelativeResidual), e.RelativeResidual, "the residual is that of what was written")
	require.LessOrEqual(j.t, e.RelativeResidual, 1e-6)
	return by, s
}

// lostRanks returns the ranks of the losses, in the order of the answer.
func lostRanks(s report.Solution) (ranks []int) {
	for _, l := range s.Losses {
		ranks = append(ranks, l.Rank)
	}
	return ranks
}

// Pods of an Indexed Job are deleted in mid-run and created again at new addresses: first that of a peer, then that of
// the process that leads the run.
func TestPodsAreCreatedAgain(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	j, out := heldJob(t, 4, "--peers", "3", "--spares", "1")
	first := j.pods[0]
	j.remove(2)
	first.said(`"epoch":1,.*recovered`)
	j.create(2)
	first.said(`"host":"obstacle-2".*spare peer joined`)
	for _, index := range []int{1, 3} {
		j.pods[index].said("this process can lead the run")
	}
	j.remove(0)
	again := j.create(0)
	again.said("a run goes on without the first process")
	leads := j.leads()
	leads.said(`"host":"obstacle-2".*peer joined`) // one that comes later finds no run
	leads.open()
	by, s := j.solved(out)
	require.Same(t, again, by)
	require.Equal(t, []int{2, 0}, lostRanks(s))
	for _, p := range j.pods {
		require.Zero(t, p.code, p.name)
	}
}

// SIGTERM to a Pod, as when its node is drained, moves its part. The Pod ends with the code on which it is created
// again, and comes back as a spare one. The first Pod, deleted and created again after the end of the run, still
// prints the answer, which the process that leads the run holds for it.
func TestPodsAreDrained(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	if testing.Short() {
		t.Skip("takes seconds")
	}
	j, out := heldJob(t, 4, "--peers", "3", "--spares", "1")
	j.pods[0].said("spare peer joined")
	leaves := j.pods[1]
	leaves.signal(syscall.SIGTERM)
	require.Equal(t, 3, leaves.wait(patience))
	leaves.said("another process runs this part of the grid now")
	leaves.said("this process has ended before the run was solved")
	j.create(1)
	j.pods[0].said(`"host":"obstacle-1".*spare peer joined`)
	for _, index := range []int{2, 3} {
		j.pods[index].said("this process can lead the run")
	}
	j.remove(0)
	leads := j.leads()
	leads.said(`"host":"obstacle-1".*peer joined`) // one that comes later finds no run
	leads.open()
	for _, p := range j.pods[1:] {
		if p != leads {
			require.Zero(t, p.wait(patience), p.name)
		}
	}
	again := j.create(0)
	by, s := j.solved(out)
	require.Same(t, again, by)
	require.Equal(t, []int{0}, lostRanks(s))
}
