//go:build linux

package obstacle_test

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// A Go program solves with peers that are processes, or goroutines, and gets the values and the report.
func TestSolveFromGo(t *testing.T) {
	t.Setenv(asProgram, mode())
	for _, more := range [][]string{{"--in-process"}, nil} {
		var errs strings.Builder
		a, err := obstacle.Solve(t.Context(), gated(), &errs,
			append([]string{"chain", "--peers", "3", "--scheme", "async", "--tol", "1e-9"}, more...)...)
		require.NoError(t, err, errs.String())
		require.True(t, a.Converged)
		require.Equal(t, "converged", a.Reason)
		require.LessOrEqual(t, a.Residual, 1e-9)
		require.Len(t, a.Values, 96)
		sum := 0.0
		for _, v := range a.Values {
			sum += v
		}
		require.InDelta(t, chainSum(t), sum, 1e-5)
		var s struct{ Peers int }
		require.NoError(t, json.Unmarshal(a.Report, &s))
		require.Equal(t, 3, s.Peers)
	}
	a, err := obstacle.Solve(t.Context(), gated(), nil, "membrane", "--n", "12", "--max-sweeps", "2", "--method", "richardson", "--in-process")
	require.NoError(t, err)
	require.False(t, a.Converged)
	require.Equal(t, "sweeps", a.Reason)
	require.Len(t, a.Values, 12*12*12)
	for args, want := range map[string]string{
		"membran": "did you mean", "membrane --n 0": "at least 1", "membrane --peers x": "peers",
	} {
		a, err := obstacle.Solve(t.Context(), gated(), nil, strings.Fields(args)...)
		require.Nil(t, a)
		require.ErrorContains(t, err, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = obstacle.Solve(ended, gated(), nil, "membrane", "--n", "12", "--in-process")
	require.Error(t, err)
}

// A Go program joins a run that another process leads.
func TestJoinFromGo(t *testing.T) {
	t.Setenv(asProgram, asItIs) // Join has the identities of the program
	r, address, secret := waiting(t, "solve", "chain", "--peers", "2", "--tol", "1e-9", "--format", "json")
	joined := make(chan error, 2)
	for range 2 {
		go func() {
			joined <- obstacle.Join(t.Context(), gated(), os.Stderr, "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1")
		}()
	}
	for range 2 {
		require.NoError(t, <-joined)
	}
	<-r.done
	require.Equal(t, 0, r.cmd.ProcessState.ExitCode())
	require.True(t, r.solution().Converged)
}

// withChain returns a catalog with a chain whose second part is another block.
func withChain(t *testing.T, name string, other func(part *chain) iterate.Block) *catalog.Set {
	c := catalog.New()
	require.NoError(t, c.Problems.AddIteration(problems.Builtin{Name: name, Summary: "a chain with a mistake"},
		func([]float64) (iterate.FixedPoint, error) {
			f, err := newChain(nil)
			of := f.Block
			f.Block = func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
				b, err := of(cuts, rank)
				if part, is := b.(*chain); is && rank == 1 {
					b = other(part)
				}
				return b, err
			}
			return f, err
		}))
	return c
}

// mistaken is a chain whose second part panics at its fifth relaxation.
type mistaken struct {
	*chain
	relaxed int
}

func (m *mistaken) Relax(next, x, ghosts []float64) {
	if m.relaxed++; m.relaxed == 5 {
		ghosts[len(ghosts)+7] = 1
	}
	m.chain.Relax(next, x, ghosts)
}

// A panic in the code of an iteration does not end the program. A second process is tried, and the run ends with the place.
func TestPanicOfAnIterationEndsTheRun(t *testing.T) {
	c := withChain(t, "mistaken", func(part *chain) iterate.Block { return &mistaken{chain: part} })
	for args, losses := range map[string]int{"--recover off": 0, "--scheme async": 1, "--recover exact": 1} {
		a, err := obstacle.Solve(t.Context(), c, nil, append(strings.Fields(args), "mistaken", "--peers", "3", "--in-process")...)
		require.Regexp(t, `peer 1 .* failed: iterate: Relax of rank 1 panicked: .*index out of range.* \(program_test\.go:\d+\)`, err)
		require.Equal(t, "failed", a.Reason)
		var s report.Solution
		require.NoError(t, json.Unmarshal(a.Report, &s))
		require.Len(t, s.Losses, losses, args)
	}
}

// leaving is a part of a chain whose second relaxation ends its goroutine.
type leaving struct {
	*chain
	relaxed int
}

func (l *leaving) Relax(next, x, ghosts []float64) {
	if l.relaxed++; l.relaxed == 2 {
		runtime.Goexit()
	}
	l.chain.Relax(next, x, ghosts)
}

// A run whose relaxation ends its goroutine, as an assertion of a test does, fails.
func TestRelaxationThatEndsItsGoroutine(t *testing.T) {
	c := withChain(t, "leaving", func(part *chain) iterate.Block { return &leaving{part, 0} })
	_, err := obstacle.Solve(t.Context(), c, nil, "leaving", "--peers", "2", "--in-process", "--recover", "off")
	require.ErrorContains(t, err, "failed: the code of the iteration has called runtime.Goexit")
}

// stuck is a part of a chain whose second relaxation does not return.
type stuck struct {
	*chain
	relaxed int
	entered func()
}

func (e *stuck) Relax(next, x, ghosts []float64) {
	if e.relaxed++; e.relaxed == 2 {
		e.entered()
		select {}
	}
	e.chain.Relax(next, x, ghosts)
}

// A run whose relaxation never returns ends nonetheless.
func TestRelaxationThatNeverReturnsEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := withChain(t, "endless", func(part *chain) iterate.Block { return &stuck{part, 0, cancel} })
	a, err := obstacle.Solve(ctx, c, nil, "endless", "--peers", "2", "--in-process", "--peer-timeout", "200ms")
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, a)
}

// A process that was not started as a peer goes on.
func TestRunPeerReturns(*testing.T) { obstacle.RunPeer(gated()) }
