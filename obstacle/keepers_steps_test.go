//go:build linux

package obstacle_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// timeSteps is the number of time steps of stepsByHand.
const timeSteps = 30

// front returns the arguments of a run with time steps.
func front(more ...string) []string {
	return append([]string{"solve", "front2d", "--n", "40", "--param", fmt.Sprint("steps=", timeSteps), "--peers", "4",
		"--tol", "1e-8", "--format", "json"}, more...)
}

// stepsByHand starts a run with time steps that takes long enough to be disturbed, and returns when every peer has ended
// some of them.
func stepsByHand(t *testing.T, factor int, more ...string) *byHand {
	t.Helper()
	b := byHandOf(t, append(slow(factor, 4), front(more...)...)...)
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
	require.LessOrEqual(t, float64(s.MaxError), 1e-2)
	require.Greater(t, s.FirstStep, 1, "the steps before are not known")
	require.Len(t, s.TimeSteps, timeSteps-s.FirstStep+1)
	require.Equal(t, s.FirstStep, s.TimeSteps[0].Step)
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
	t.Parallel() // its peers mostly sleep
	runs := []string{"sync", "async", "balance"}
	if testing.Short() {
		runs = runs[:1]
	}
	for _, run := range runs {
		t.Run(run, func(t *testing.T) {
			scheme, more := run, []string(nil)
			if run == "balance" {
				scheme, more = "async", []string{"--partition", "slabs", "--balance", "on"}
			}
			more = append(more, "--scheme", scheme)
			want := undisturbed(t, more...)
			b := stepsByHand(t, 15, append(more, "--suspect", "1m")...) // however slow the machine is
			b.signal(syscall.SIGKILL)
			b.leads(b.peers).said(`"undisturbed":true`)
			a := b.attach(b.keepers[2])
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
