//go:build linux

package obstacle_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// timeSteps is the number of time steps of stepsByHand.
const timeSteps = 20

// front returns the arguments of a run with time steps.
func front(more ...string) []string {
	return append([]string{"solve", "front2d", "--n", "16", "--param", fmt.Sprint("steps=", timeSteps), "--method", "richardson", "--peers", "4",
		"--tol", "1e-8", "--format", "json"}, more...)
}

// stepsByHand starts a run with time steps that waits at a gate in the fifth one, and returns when every peer has ended
// some of them.
func stepsByHand(t *testing.T, more ...string) *byHand {
	t.Helper()
	closeGate(t, gate.Gate{Step: 5})
	b := byHandOf(t, front(more...)...)
	for _, p := range b.peers {
		p.endsStep(3)
	}
	return b
}

// endsStep waits until a peer has ended a time step.
func (r *running) endsStep(step int) {
	r.t.Helper()
	r.said(fmt.Sprintf(`"step":%d,.*"time step complete"`, step))
}

// undisturbed returns the answer of a run with time steps that loses no process.
func undisturbed(t *testing.T, more ...string) report.Solution {
	t.Helper()
	r := start(t, front(more...)...)
	require.Equal(t, 0, r.wait(patience))
	return r.solution()
}

// solved requires the answer of a run whose leader was lost. It has the bits of want in lockstep.
func solved(t *testing.T, s, want *report.Solution, bits bool) {
	t.Helper()
	require.True(t, s.Converged)
	require.Equal(t, timeSteps, s.StepsDone)
	require.Equal(t, want.Time, s.Time)
	require.LessOrEqual(t, float64(s.MaxError), 5e-2)
	require.Greater(t, s.FirstStep, 1, "the steps before are not known")
	require.Len(t, s.TimeSteps, timeSteps-s.FirstStep+1)
	require.Equal(t, s.FirstStep, s.TimeSteps[0].Step)
	require.LessOrEqual(t, float64(s.WorstResidual), s.Tolerance, "it is computed from the values that were fetched")
	require.GreaterOrEqual(t, int(s.WorstStep), s.FirstStep)
	require.False(t, s.ErrorBound.Known())
	require.False(t, s.MaxErrorSteps.Known())
	if !bits {
		require.InDelta(t, float64(want.Sum), float64(s.Sum), 1e-4*float64(want.Sum))
		return
	}
	require.Equal(t, want.Sum, s.Sum)
	require.Equal(t, want.LastResidual, s.LastResidual)
	for i, step := range s.TimeSteps[1:] { // the process that led before may have had the first one in part
		require.Equal(t, want.TimeSteps[s.FirstStep+i], step)
	}
}

// A run with time steps goes on undisturbed when its launcher is killed, and its answer can be fetched.
func TestLauncherIsLostBetweenSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests: TestLauncherIsLost has no time steps")
	}
	t.Parallel() // its peers wait at a gate
	for _, run := range []string{"sync", "async", "balance"} {
		t.Run(run, func(t *testing.T) {
			scheme, more := run, []string(nil)
			if run == "balance" {
				scheme, more = "async", []string{"--partition", "slabs", "--balance", "on"}
			}
			more = append(more, "--scheme", scheme)
			want := undisturbed(t, more...)
			b := stepsByHand(t, append(more, "--suspect", "1m")...) // however slow the machine is
			b.signal(syscall.SIGKILL)
			b.leads(b.peers).said(`"undisturbed":true`)
			b.open()
			a := b.attach(b.keepers[2], b.keepers[1])
			require.Equal(t, 0, a.wait(patience))
			s := a.solution()
			solved(t, &s, &want, scheme == "sync")
			require.Empty(t, s.Losses)
			for _, p := range b.peers {
				require.Equal(t, 0, p.wait(patience))
			}
		})
	}
}

// The launcher is killed when the peers have ended, before it has their last steps. They send them to the one that leads.
func TestStepsAreSentAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests")
	}
	t.Parallel() // its peers wait at a gate
	want := undisturbed(t)
	b := stepsByHand(t, "--suspect", "1m")
	b.signal(syscall.SIGSTOP)
	b.open()
	for _, p := range b.peers {
		p.said(`"iterated"`)
	}
	b.signal(syscall.SIGKILL)
	a := b.attach(b.keepers[1:]...)
	require.Equal(t, 0, a.wait(patience))
	s := a.solution()
	solved(t, &s, &want, true)
	for _, p := range b.peers {
		require.Equal(t, 0, p.wait(patience))
	}
}

// A run with time steps survives its launcher, the process that leads it then, and another peer. The steps in progress
// begin again.
func TestSeveralLeadersAreLostBetweenSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests")
	}
	t.Parallel() // its peers wait at a gate
	for name, more := range map[string][]string{
		"sync": {"--scheme", "sync"}, "async": {"--scheme", "async"},
		"balance": {"--scheme", "async", "--partition", "slabs", "--balance", "on"},
	} {
		t.Run(name, func(t *testing.T) {
			want := undisturbed(t, more...)
			b := stepsByHand(t, append(more, "--suspect", "300ms")...)
			b.signal(syscall.SIGKILL)
			first := b.leads(b.peers)
			left := without(b.peers, first)
			term := first.said(`"term":(\d+),"epoch":0,"keepers":\["[^]]*,[^]]*,[^]]*\].*keepers agreed`)[1]
			await.Until(t, func() bool { return ready(left, term) == 2 }, "two keepers of term %s", term)
			// The first copies may be older than what other peers hold by now.
			require.NoError(t, b.gate.Pass(5))
			require.NoError(t, b.gate.Pass(6))
			for _, p := range left {
				if ready([]*running{p}, term) == 1 { // the leader's process runs it
					p.said(`"step":[5-6],.*"holding the block of a peer`)
				}
			}
			first.signal(syscall.SIGKILL)
			second := b.leads(left)
			second.said(`"epoch":1,.*recovered`)
			without(left, second)[0].signal(syscall.SIGKILL)
			second.said(`"epoch":2,.*recovered`)
			b.open()
			a := b.attach(second.said(`"address":"([^"]*)".*this process leads it now`)[1])
			require.Equal(t, 0, a.wait(patience))
			s := a.solution()
			solved(t, &s, &want, name == "sync")
			require.GreaterOrEqual(t, len(s.Losses), 2)
			for _, l := range s.Losses {
				require.True(t, l.FromStep.Known())
			}
		})
	}
}

// If a peer is lost together with the launcher, no process has the end of a step of all blocks: the run begins again.
func TestPeerIsLostWithTheLauncher(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests")
	}
	t.Parallel() // its peers wait at a gate
	want := undisturbed(t)
	b := stepsByHand(t, "--suspect", "3s")
	await.Until(t, func() bool { return ready(b.peers, "2") == 2 }, "two keepers")
	no := slices.IndexFunc(b.peers, func(p *running) bool { return ready([]*running{p}, "2") == 0 })
	b.signal(syscall.SIGSTOP) // so that it does not replace the peer
	b.peers[no].signal(syscall.SIGKILL)
	b.signal(syscall.SIGKILL)
	leader := b.leads(without(b.peers, b.peers[no]))
	leader.said("the run begins again with the first step")
	b.open()
	a := b.attach(leader.said(`"address":"([^"]*)".*this process leads it now`)[1])
	require.Equal(t, 0, a.wait(patience))
	s := a.solution()
	require.True(t, s.Converged)
	require.Equal(t, 1, s.FirstStep)
	require.Len(t, s.Losses, 1)
	require.Zero(t, float64(s.Losses[0].FromStep))
	require.Equal(t, want.Sum, s.Sum)
	require.Equal(t, want.TimeSteps, s.TimeSteps)
}

// attach has no series of steps to write.
func TestAttachRefusesSeries(t *testing.T) {
	a := start(t, "attach", "127.0.0.1:1", "--secret-file", secretFile(t, "the secret of a run"), "--out", "u.pvd")
	require.Equal(t, 2, a.wait(patience))
	a.said("u.pvd needs every time step")
}

// attach fetches what the launcher prints of the steps, but for what needs all of them.
func TestAttachToTimeSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests")
	}
	t.Parallel() // its peers wait at a gate
	b := stepsByHand(t, "--scheme", "async", "--log-level", "debug")
	a := b.attach(b.keepers[0])
	b.said("obstacle attach follows the run")
	b.open()
	require.Equal(t, 0, a.wait(patience))
	require.Equal(t, 0, b.wait(patience))
	got, want := a.solution(), b.solution()
	require.True(t, want.MaxErrorSteps.Known())
	require.False(t, got.MaxErrorSteps.Known())
	want.MaxErrorSteps, want.MaxErrorStep = got.MaxErrorSteps, got.MaxErrorStep
	require.Equal(t, fmt.Sprintf("%+v", want.Evolution), fmt.Sprintf("%+v", got.Evolution)) // unknown values are equal
	require.Equal(t, want.Sum, got.Sum)
	require.Equal(t, want.RelativeResidual, got.RelativeResidual)
}
