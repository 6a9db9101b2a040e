//go:build linux

package obstacle_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// inParts starts a run of two processes with four parts each, which wait at a gate, and returns when it relaxes.
func inParts(t *testing.T, g gate.Gate, more ...string) *running {
	t.Helper()
	return held(t, g, append([]string{"--peers", "2", "--parts", "4", "--partition", "boxes"}, more...)...)
}

// pids returns the processes of all parts, by rank.
func pids(s report.Solution) (out []int) {
	for _, p := range s.PerPeer {
		out = append(out, p.Pid)
	}
	return out
}

// Parts move from a slow process to a fast one, by every method.
func TestPartsMoveToTheFastProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel() // its peers wait at a gate
	// The runs cannot end before speeds are measured, which takes two seconds: SOR takes fewer sweeps.
	for name, c := range map[string]struct {
		every time.Duration
		args  []string
	}{
		"sync":       {20 * time.Millisecond, []string{"--slowdown", "0:800", "--slowdown", "1:80"}},
		"async, sor": {time.Second, []string{"--method", "sor", "--scheme", "async", "--slowdown", "0:3000", "--slowdown", "1:300"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := inParts(t, gate.Gate{Every: c.every}, append(c.args, "--tol", "1e-11", "--balance", "on")...)
			from, to := r.said(`"rank":0.*(pid":\d+).*peer joined`)[1], r.said(`"rank":4.*(pid":\d+).*peer joined`)[1]
			r.said("part moved")
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Empty(t, s.Losses)
			require.NotEmpty(t, s.Moves)
			require.Equal(t, 4, s.Parts)
			at := pids(s)
			for _, m := range s.Moves {
				require.Less(t, m.Rank, 4, "of the slow process")
				require.Equal(t, to, fmt.Sprintf(`pid":%d`, at[m.Rank]))
			}
			require.NotEqual(t, from, to)
			for rank := 4; rank < 8; rank++ {
				require.Equal(t, to, fmt.Sprintf(`pid":%d`, at[rank]))
			}
		})
	}
}

// A process that gets SIGTERM leaves the run, which goes on: with the same bits where it can.
func TestProcessLeaves(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	runs := map[string][]string{
		"exact": {"--recover", "exact", "--log-level", "debug"},
		"async": {"--scheme", "async"},
		"spare": {"--scheme", "async", "--spares", "1"},
	}
	if testing.Short() {
		runs = map[string][]string{"exact": runs["exact"]}
	}
	for name, args := range runs {
		t.Run(name, func(t *testing.T) {
			r := inParts(t, gate.Gate{Kept: name == "exact"}, args...)
			pid := r.pid(0)
			if name == "exact" {
				r.said(`"iterate":[1-9]\d*.*"message":"kept"`)
			}
			require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
			r.said("part moved")
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Empty(t, s.Losses)
			require.GreaterOrEqual(t, len(s.Moves), 4)
			require.NotContains(t, pids(s), pid)
			require.True(t, gone(pid))
			if name == "spare" {
				require.Len(t, slices.Compact(slices.Sorted(slices.Values(pids(s)))), 2)
			}
			if name != "exact" {
				return
			}
			alone := start(t, "solve", "membrane", "--n", "24", "--tol", "1e-6", "--method", "richardson", "--peers", "1",
				"--format", "json")
			require.Equal(t, 0, alone.wait(patience))
			want := alone.solution()
			require.Equal(t, want.Sum, s.Sum)
			require.Equal(t, want.RelativeResidual, s.RelativeResidual)
			require.Equal(t, want.Sweeps[0], s.Sweeps[7])
		})
	}
}

// A time step begins again when parts move in it.
func TestProcessLeavesDuringATimeStep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel() // its peers wait at a gate
	closeGate(t, gate.Gate{Step: 3, Sweep: 5})
	r := start(t, "solve", "front2d", "--n", "24", "--param", "steps=10", "--method", "richardson", "--peers", "2", "--parts", "2",
		"--scheme", "async", "--tol", "1e-8", "--format", "json")
	r.said(`"relaxing"`)
	pid := r.pid(2)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	r.said("part moved")
	r.open()
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.Equal(t, 10, s.StepsDone)
	require.LessOrEqual(t, float64(s.MaxError), 1e-2)
	require.Len(t, s.Moves, 2)
	require.NotContains(t, pids(s), pid)
}

// With a process all its parts are lost, and one other process takes them.
func TestKilledProcessOfSeveralParts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel() // its peers wait at a gate
	r := inParts(t, gate.Gate{}, "--scheme", "async")
	pid := r.pid(4)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	r.open()
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Len(t, s.Losses, 4)
	at := pids(s)
	require.NotContains(t, at, pid)
	require.Len(t, slices.Compact(at[4:]), 1)
	require.NotEqual(t, at[0], at[4])
}

// A process that joins during a run by hand takes parts of the others. The first process can leave then, and the last one
// cannot: the run ends early.
func TestElastic(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	closeGate(t, gate.Gate{})
	r, address, secret := waiting(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "1",
		"--parts", "4", "--partition", "boxes", "--elastic", "--scheme", "async", "--keepers", "1")
	join := func() *running { return joinByHand(t, address, secret) }
	first := join()
	r.said(`"relaxing"`)
	second := join()
	r.said("part moved")
	first.signal(syscall.SIGTERM)
	require.Equal(t, 0, first.wait(patience))
	second.signal(syscall.SIGTERM)
	require.Equal(t, 3, r.wait(patience))
	require.Equal(t, 0, second.wait(patience))
	s := r.solution()
	require.Equal(t, "interrupted", s.Reason)
	require.Empty(t, s.MissingBlocks)
	require.Empty(t, s.Losses)
}

// A spare peer that is asked to leave before it is needed ends well, and so does the run.
func TestSparePeerLeaves(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel() // its peers wait at a gate
	closeGate(t, gate.Gate{})
	r, address, secret := waiting(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "1", "--keepers", "1")
	join := func() *running { return joinByHand(t, address, secret) }
	first := join()
	r.said(`"relaxing"`)
	spare := join()
	spare.said("waiting as a spare peer")
	spare.signal(syscall.SIGTERM)
	require.Equal(t, 0, spare.wait(patience))
	r.open()
	require.Equal(t, 0, r.wait(patience))
	require.Equal(t, 0, first.wait(patience))
	require.Empty(t, r.solution().Losses)
}
