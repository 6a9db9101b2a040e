//go:build linux

package obstacle_test

import (
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// chain is a part of x[i] ← (x[i−1] + x[i+1])/2.1 + 1 on a line with 0 beyond its ends.
type chain struct {
	size   int
	beside []iterate.Neighbour // the left one sends ghost 0, the right one ghost 1
}

func newChain([]float64) (iterate.FixedPoint, error) {
	return iterate.FixedPoint{Unknowns: 96, Block: func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
		c := &chain{size: cuts[rank+1] - cuts[rank]}
		for side, q := range []iterate.Rank{rank - 1, rank + 1} {
			if q >= 0 && int(q) < len(cuts)-1 {
				c.beside = append(c.beside, iterate.Neighbour{Rank: q, Send: []int{side * (c.size - 1)}, Receive: []int{side}})
			}
		}
		return c, nil
	}}, nil
}

func (c *chain) Values() int                     { return c.size }
func (c *chain) Neighbours() []iterate.Neighbour { return c.beside }
func (c *chain) Start([]float64)                 {}

func (c *chain) Relax(next, x, ghosts []float64) {
	all := append(append([]float64{0}, x...), 0)
	for _, q := range c.beside {
		all[q.Receive[0]*(c.size+1)] = ghosts[q.Receive[0]]
	}
	for i := range next {
		next[i] = (all[i]+all[i+2])/2.1 + 1
	}
}

// chainSum is the sum of the solution.
func chainSum(t *testing.T) float64 {
	f, err := newChain(nil)
	require.NoError(t, err)
	whole, err := f.Part([]int{0, f.Unknowns}, 0)
	require.NoError(t, err)
	x, _, _, err := iterate.Repair(whole, nil, 1e-14, 1e6, nil)
	require.NoError(t, err)
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum
}

// A run of an iteration goes on after one of its peers was killed, as that of an obstacle problem does.
func TestIterationSurvivesAKilledPeer(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	for _, args := range some([]struct {
		name string
		args []string
	}{
		{"async", []string{"--scheme", "async"}}, {"exact", []string{"--recover", "exact"}}, {"sync", nil},
		{"spare", []string{"--spares", "1", "--scheme", "delay:2"}}, {"parts", []string{"--parts", "2"}},
		{"network", []string{"--network", "ether", "--scheme", "hybrid", "--clusters", "2"}},
	}) {
		t.Run(args.name, func(t *testing.T) {
			closeGate(t, gate.Gate{Kept: args.name == "exact", Sweep: 40})
			r := start(t, append([]string{"solve", "chain", "--tol", "1e-9", "--peers", "3", "--peer-timeout", "10m", "--format", "json"},
				args.args...)...)
			r.said(`"relaxing"`)
			require.NoError(t, syscall.Kill(r.pid(1), syscall.SIGKILL))
			r.said(`"recovered: |repaired the block|replacement: `)
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.NotEmpty(t, s.Losses)
			require.InDelta(t, chainSum(t), float64(s.Sum), 1e-5)
			if args.name != "exact" {
				require.Equal(t, "fixed-point", s.Losses[0].Method)
			}
		})
	}
}

// Four processes on two hosts, one of which falls silent.
func TestIterationSurvivesASilentHost(t *testing.T) {
	t.Parallel()
	lab := netlab.New(t)
	a, b := lab.Host("a"), lab.Host("b")
	ends := lab.Switch(a, b)
	secret := secretFile(t, "the secret of this run")
	closeGate(t, gate.Gate{Sweep: 40})
	r := startIn(t, named(a), "solve", "chain", "--tol", "1e-9", "--scheme", "async", "--peers", "4", "--keepers", "1", "--peer-timeout", "1h",
		"--rendezvous", net.JoinHostPort(ends[0].IPv4.String(), "0"), "--secret-file", secret, "--format", "json")
	address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	for seat, h := range []*netlab.Host{a, a, b, b} {
		startIn(t, named(h), "peer", "--rendezvous", address, "--listen", ends[seat/2].IPv4.String(), "--secret-file", secret,
			"--seat", fmt.Sprint(seat))
	}
	r.said(`"relaxing"`)
	require.NoError(t, ends[1].Cut())
	r.said("recovered: all peers relax again")
	r.open()
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Len(t, s.Losses, 2)
	require.InDelta(t, chainSum(t), float64(s.Sum), 1e-5)
}

// A checkpoint of an iteration continues on another number of peers.
func TestIterationIsResumed(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "c")
	r := start(t, "solve", "chain", "--tol", "1e-9", "--max-sweeps", "50", "--peers", "3", "--checkpoint", directory, "--format", "json")
	require.Equal(t, 3, r.wait(patience))
	before := r.solution()
	require.True(t, before.Resumable)
	r = start(t, "resume", directory, "--peers", "2", "--scheme", "async", "--max-sweeps", "0", "--format", "json")
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.EqualValues(t, 50, s.Resumed.Sweeps)
	require.Less(t, float64(s.RelativeResidual), 1e-9, "relative to the residual at the start of the first run")
	require.InDelta(t, chainSum(t), float64(s.Sum), 1e-5)
	spec, err := file.Open(gated().Problems, "chain", nil)
	require.NoError(t, err)
	require.True(t, spec.Iteration())
}

// The launcher of an iteration is lost: another process leads the run, and its answer is fetched.
func TestIterationSurvivesItsLauncher(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	closeGate(t, gate.Gate{Sweep: 40})
	b := byHandOf(t, "solve", "chain", "--tol", "1e-9", "--peers", "4", "--suspect", "1m", "--format", "json")
	b.signal(syscall.SIGKILL)
	b.leads(b.peers).said(`"undisturbed":true`)
	b.open()
	a := b.attach(b.keepers[2], b.keepers[1])
	require.Equal(t, 0, a.wait(patience))
	s := a.solution()
	require.True(t, s.Converged)
	require.InDelta(t, chainSum(t), float64(s.Sum), 1e-5)
}

// A process that gets SIGTERM in the middle of a run leaves it, and its parts move to another process.
func TestPartsOfAnIterationMove(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	closeGate(t, gate.Gate{Sweep: 40})
	r := start(t, "solve", "chain", "--tol", "1e-9", "--scheme", "async", "--peers", "2", "--parts", "2", "--peer-timeout", "10m",
		"--format", "json")
	r.said(`"relaxing"`)
	pid := r.pid(0)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	r.said("part moved")
	r.open()
	require.Equal(t, 0, r.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Empty(t, s.Losses)
	require.Len(t, s.Moves, 2)
	require.NotContains(t, pids(s), pid)
	require.InDelta(t, chainSum(t), float64(s.Sum), 1e-5)
}
