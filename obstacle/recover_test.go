//go:build linux

package obstacle_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// held starts a run of three peers, or more, whose peers wait at a gate, and returns when it relaxes.
func held(t *testing.T, g gate.Gate, more ...string) *running {
	t.Helper()
	closeGate(t, g)
	r := start(t, append([]string{"solve", "membrane", "--n", "24", "--tol", "1e-6", "--method", "richardson", "--peers", "3",
		"--peer-timeout", "10m", "--format", "json"}, more...)...)
	r.said(`"relaxing"`)
	return r
}

// A run goes on without a killed peer, with every scheme and method, and its answer is solved.
func TestKilledPeerIsReplaced(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	runs := map[string][]string{
		"sync":          {"--scheme", "sync"},
		"async":         {"--scheme", "async"},
		"delay":         {"--scheme", "delay:3"},
		"hybrid":        {"--scheme", "hybrid", "--clusters", "2"},
		"ether":         {"--scheme", "async", "--network", "ether"},
		"sor":           {"--method", "sor"},
		"schwarz":       {"--method", "schwarz", "--local", "richardson", "--scheme", "async"},
		"multigrid":     {"--method", "multigrid"},
		"balance":       {"--scheme", "async", "--partition", "slabs", "--balance", "on", "--slowdown", "1:300"},
		"balance, sync": {"--partition", "slabs", "--balance", "on", "--slowdown", "1:300"},
		"spare":         {"--scheme", "async", "--spares", "1"},
	}
	if testing.Short() {
		runs = map[string][]string{"spare": runs["spare"]} // without one: TestStoppedPeerIsReplaced
	}
	for name, args := range runs {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "u.npy")
			g := gate.Gate{}
			if name == "multigrid" {
				g.Sweep = 2 // of few cycles
			}
			r := held(t, g, append(args, "--out", at)...)
			pid := r.pid(1)
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Empty(t, s.MissingBlocks)
			require.Len(t, s.Losses, 1)
			l := s.Losses[0]
			require.Equal(t, 1, l.Rank)
			require.Contains(t, l.Why, fmt.Sprintf("peer 1 (pid %d)", pid))
			require.Contains(t, l.By, map[bool]string{false: "new peer 1", true: "spare peer 1"}[name == "spare"])
			require.NotEmpty(t, l.Method, "the block was repaired")
			require.Empty(t, l.Unbound)
			require.GreaterOrEqual(t, float64(l.Recovered), l.Detected)
			p, _, err := file.Load("membrane", s.N)
			require.NoError(t, err)
			u, err := output.ReadInitial(at, p)
			require.NoError(t, err)
			e, err := verify.Evaluate(p, u, nil)
			require.NoError(t, err)
			require.Equal(t, float64(s.RelativeResidual), e.RelativeResidual, "the residual is that of what was written")
		})
	}
}

// A peer that is lost before the start is replaced as any later one. Without recovery, the run ends with the cause.
func TestKilledPeerBeforeTheStartIsReplaced(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	for name, args := range map[string][]string{
		"process": {"--scheme", "async"}, "spare": {"--spares", "2"}, "exact": {"--recover", "exact"}, "off": {"--recover", "off"},
		"parts": {"--parts", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			closeGate(t, gate.Gate{Build: true})
			r := start(t, append([]string{"solve", "membrane", "--n", "12", "--peers", "3", "--format", "json"}, args...)...)
			for rank := range 3 {
				r.said(fmt.Sprintf(`"rank":%d,.*"peer listens"`, rank))
			}
			pid := r.pid(1)
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			if name == "off" {
				require.Equal(t, 1, r.wait(patience))
				// On a busy host the exit status may follow too late to be the cause.
				r.said(fmt.Sprintf(`obstacle: peer 1 \(pid %d\) (ended before the start: signal: killed|closed its connection before)`, pid))
				return
			}
			r.said(`"replacement: `)
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Contains(t, s.Losses[0].Why, fmt.Sprintf("(pid %d", pid))
			require.Contains(t, s.Losses[0].Why, " before the start: ")
			require.Zero(t, s.Losses[0].Detected)
			require.Zero(t, float64(s.Losses[0].Recovered))
			require.Empty(t, s.Losses[0].Method, "nothing is repaired")
		})
	}
}

// The peers of a run with time steps go on from the newest complete step.
func TestKilledPeerBetweenStepsIsReplaced(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	const steps = 8
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "u.npy")
			closeGate(t, gate.Gate{Step: 4, Sweep: 5})
			r := start(t, "solve", "front2d", "--n", "16", "--param", fmt.Sprint("steps=", steps), "--method", "richardson",
				"--peers", "3", "--scheme", scheme, "--tol", "1e-8", "--out", at, "--format", "json")
			r.said(`"relaxing"`)
			require.NoError(t, syscall.Kill(r.pid(1), syscall.SIGKILL))
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.Equal(t, steps, s.StepsDone)
			require.Len(t, s.Losses, 1)
			require.LessOrEqual(t, float64(s.MaxError), 1e-2)
			require.FileExists(t, at)
		})
	}
}

// Peers are lost again while others take their places, two neighbours at a time.
func TestManyKilledPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nine processes: TestExactRecovery loses two of five")
	}
	t.Parallel() // its peers wait at a gate
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			r := held(t, gate.Gate{}, "--peers", "4", "--scheme", scheme)
			first := r.pid(1)
			require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
			require.NoError(t, syscall.Kill(r.pid(2), syscall.SIGKILL))
			next := r.replaced(1, first)
			require.NoError(t, syscall.Kill(next, syscall.SIGKILL))
			require.NoError(t, syscall.Kill(r.pid(0), syscall.SIGKILL))
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Len(t, s.Losses, 4)
		})
	}
}

// With --recover exact the answer has the bits of a run without a loss, after as many sweeps. Those of one peer are the
// same.
func TestExactRecovery(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	runs := map[string][]string{
		"richardson": nil,
		"delay:0":    {"--scheme", "delay:0"},
		"sor":        {"--method", "sor"},
		"multigrid":  {"--method", "multigrid", "--tol", "1e-12"},
	}
	if testing.Short() {
		runs = map[string][]string{"richardson": nil}
	}
	for name, args := range runs {
		t.Run(name, func(t *testing.T) {
			at, one := filepath.Join(t.TempDir(), "u.npy"), filepath.Join(t.TempDir(), "one.npy")
			r := held(t, gate.Gate{Kept: true}, append(args, "--recover", "exact", "--log-level", "debug", "--out", at)...)
			r.said(`"iterate":[1-9]\d*.*"message":"kept"`) // iterate 0 may be kept, too
			for rank := 1; rank < 3; rank++ {
				require.NoError(t, syscall.Kill(r.pid(rank), syscall.SIGKILL))
				r.said(fmt.Sprintf(`"epoch":%d,.*recovered`, rank))
			}
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Len(t, s.Losses, 2)
			for _, l := range s.Losses {
				require.Positive(t, float64(l.From), "it goes on from a kept iterate")
				require.Empty(t, l.Method, "nothing is repaired")
			}
			q := start(t, append([]string{"solve", "membrane", "--n", "24", "--tol", "1e-6", "--method", "richardson",
				"--peers", "1", "--format", "json", "--out", one}, args...)...)
			require.Equal(t, 0, q.wait(patience))
			want := q.solution()
			require.Equal(t, want.Sweeps[0], s.Sweeps[0])
			require.Equal(t, want.Sum, s.Sum)
			require.Equal(t, want.RelativeResidual, s.RelativeResidual)
			a, err := os.ReadFile(at)
			require.NoError(t, err)
			b, err := os.ReadFile(one)
			require.NoError(t, err)
			require.Equal(t, sha256.Sum256(b), sha256.Sum256(a), "the same bits")
		})
	}
}

// A stopped process that was replaced has no part in the run any more: it is ended, or comes back as a spare peer.
func TestStoppedPeerIsReplaced(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	r := held(t, gate.Gate{}, "--scheme", "async", "--suspect", "300ms")
	pid := r.pid(1)
	stop(t, pid)
	r.open()
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.Len(t, s.Losses, 1)
	require.Contains(t, s.Losses[0].Why, "has been silent for more than 300ms (--suspect)")
	require.True(t, gone(pid))
}

// Without a spare peer, the process of another one takes the part of a lost one. With one, the spare does. A peer that
// was stopped for too long joins again, as a spare, and may be needed.
func TestPeersByHandAreReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests: TestCutWireIsSurvived has a process that joins again")
	}
	t.Parallel() // its peers wait at a gate
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			closeGate(t, gate.Gate{})
			r, address, secret := waiting(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "4",
				"--scheme", scheme, "--peer-timeout", "10s")
			join := func() *running { return joinByHand(t, address, secret) }
			all := []*running{join(), join(), join(), join()}
			r.said(`"relaxing"`)
			all[0].signal(syscall.SIGKILL)
			r.said("replacement: process of peer")
			r.said(`"epoch":1,.*recovered`)
			all[1].signal(syscall.SIGSTOP)
			r.said("has been silent for more than|cannot be reached by") // whoever notices first
			r.said(`"epoch":[2-9],.*recovered`)
			all[1].signal(syscall.SIGCONT)
			all[1].said("joining the run again as a spare peer")
			r.said("spare peer joined")
			all[2].signal(syscall.SIGKILL)
			r.said("replacement: spare peer")
			r.open()
			require.Equal(t, 0, r.wait(patience))
			require.True(t, r.solution().Converged)
			require.GreaterOrEqual(t, len(r.solution().Losses), 3)
			require.Equal(t, 0, all[1].wait(patience))
		})
	}
}

// Spare peers that are not needed end well.
func TestUnusedSpares(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	r := start(t, "solve", "membrane", "--n", "12", "--peers", "2", "--spares", "2", "--format", "json")
	require.Equal(t, 0, r.wait(patience))
	require.Empty(t, r.solution().Losses)
	r.nobodyLeft()

	closeGate(t, gate.Gate{})
	r, address, secret := waiting(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "1")
	peer := func() *running {
		return start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1")
	}
	one := peer()
	r.said("started")
	spare := peer()
	r.said("spare peer joined")
	r.open()
	require.Equal(t, 0, r.wait(patience))
	require.Equal(t, 0, one.wait(patience))
	require.Equal(t, 0, spare.wait(patience))
}
