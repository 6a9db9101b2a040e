//go:build linux

package obstacle_test

import (
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// A run over two hosts with the MTU of Ethernet, over IPv4 and IPv6: the launcher and one peer on the first, another
// peer on the second. A synchronous run gives the bits of the sequential method.
func TestTwoHosts(t *testing.T) {
	const n, tol = 14, 1e-7
	p, _, err := file.Load("membrane", []int{n})
	require.NoError(t, err)
	oracle, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
	require.NoError(t, err)
	for _, scheme := range schemes() {
		for _, six := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, IPv6 %v", scheme, six), func(t *testing.T) {
				lab := netlab.New(t)
				a, b := lab.Host("a"), lab.Host("b")
				endA, endB := lab.Join(a, b, netlab.Wire{})
				here, there := endA.IPv4.String(), endB.IPv4.String()
				if six {
					here, there = endA.IPv6.String(), endB.IPv6.String()
				}
				at := filepath.Join(t.TempDir(), "u.npy")
				secret := secretFile(t, "the secret of this run")
				r := startIn(t, a.Do, "solve", "membrane", "--n", fmt.Sprint(n), "--tol", fmt.Sprint(tol), "--peers", "2", "--scheme", scheme,
					"--rendezvous", net.JoinHostPort(here, "0"), "--secret-file", secret, "--out", at, "--format", "json")
				address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
				near := startIn(t, a.Do, "peer", "--rendezvous", address, "--listen", here, "--port-range", "7500-7509", "--secret-file", secret)
				far := startIn(t, b.Do, "peer", "--rendezvous", address, "--listen", there, "--port-range", "7500-7509", "--secret-file", secret)
				require.Equal(t, 0, r.wait(patience))
				require.Equal(t, 0, near.wait(patience))
				require.Equal(t, 0, far.wait(patience))
				s := r.solution()
				require.True(t, s.Converged)
				require.LessOrEqual(t, float64(s.RelativeResidual), tol)
				if scheme == "sync" {
					u, err := output.ReadInitial(at, p)
					require.NoError(t, err)
					require.Equal(t, oracle.U, u)
					require.EqualValues(t, oracle.Sweeps, s.Sweeps[0])
				}
				require.Positive(t, s.Messages)
			})
		}
	}
}

// Two peers on one host and one on another: each pair uses the best network that it has, with the same bits. A run that
// requires shared memory fails at once and names the pair that has none.
func TestSharedMemoryOfOneHost(t *testing.T) {
	lab := netlab.New(t)
	endA, endB := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
	secret := secretFile(t, "the secret of this run")
	run := func(code int, args ...string) *running {
		r := startIn(t, endA.Host.Do, append([]string{"solve", "membrane", "--n", "9", "--peers", "3", "--partition", "slabs",
			"--rendezvous", net.JoinHostPort(endA.IPv4.String(), "0"), "--secret-file", secret, "--format", "json"}, args...)...)
		address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
		for rank, e := range []netlab.End{endA, endA, endB} {
			startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(), "--secret-file", secret,
				"--seat", fmt.Sprint(rank))
		}
		require.Equal(t, code, r.wait(patience))
		return r
	}
	s := run(0).solution()
	require.Equal(t, "mixed", s.Network)
	for _, x := range s.Sessions {
		want := "ether"
		if x.From+x.To == 1 {
			want = "shm"
		}
		require.Equal(t, want, x.Network, "%+v", x)
		if want == "ether" {
			require.Contains(t, x.NetworkWhy, "another network namespace", "%+v", x)
		}
	}
	plain := run(0, "--network", "ether").solution()
	require.Equal(t, plain.Sum, s.Sum)
	require.Equal(t, plain.Sweeps, s.Sweeps)
	run(1, "--network", "shm").said("do not reach each other over shm: .*another network namespace")
}

// Peers on two hosts that exchange long messages in lockstep compare kernel TCP with UDP when they meet, and say what they
// found. The answer has the bits of either. Asynchronous sessions, and short messages, leave nothing to compare.
func TestHostsCompareNetworks(t *testing.T) {
	t.Parallel()
	lab := netlab.New(t)
	endA, endB := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
	secret := secretFile(t, "the secret of this run")
	run := func(n int, args ...string) report.Solution {
		r := startIn(t, endA.Host.Do, append([]string{"solve", "membrane", "--n", fmt.Sprint(n), "--peers", "2", "--max-sweeps", "5",
			"--rendezvous", net.JoinHostPort(endA.IPv4.String(), "0"), "--secret-file", secret, "--format", "json"}, args...)...)
		address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
		for _, e := range []netlab.End{endA, endB} {
			startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(), "--secret-file", secret)
		}
		require.Equal(t, 3, r.wait(patience))
		return r.solution()
	}
	const long = 66 // faces of 34 KiB
	s := run(long)
	for _, x := range s.Sessions {
		require.Contains(t, []string{"ether", "stream"}, x.Network)
		require.Regexp(t, "stream (is faster|is not faster by a tenth) than ether here|stream was not compared", x.NetworkWhy)
	}
	require.Equal(t, run(long, "--network", "stream").Sum, s.Sum)
	require.Equal(t, run(long, "--network", "ether").Sum, s.Sum)
	for _, x := range append(run(24).Sessions, run(long, "--scheme", "async").Sessions...) {
		require.Equal(t, "ether", x.Network)
		require.NotContains(t, x.NetworkWhy, "stream")
	}
}

// The same over a link between two clusters with a round trip of 20 ms. One packet in a hundred is lost in either
// direction, and so are the first datagrams of the run. The hybrid scheme has two peers in each cluster.
func TestLossBetweenClusters(t *testing.T) {
	t.Parallel()
	const n, tol = 8, 1e-5
	p, _, err := file.Load("membrane", []int{n})
	require.NoError(t, err)
	oracle, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
	require.NoError(t, err)
	for _, scheme := range some(append(schemes(), "hybrid")) {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			lab := netlab.New(t)
			c := netlab.Conditions{Rate: 50 * netlab.Mbit, QueueBytes: 125_000, Delay: 10 * time.Millisecond, Loss: 0.01}
			e := netlab.Emulation{Forth: c, Back: c, Seed: 5} // loses the 19th packet forth and the 63rd back
			first := 2
			e.Forth.Pick = func(ip []byte) bool {
				if ip[0]>>4 != 4 || ip[9] != syscall.IPPROTO_UDP || first == 0 {
					return false
				}
				first--
				return true
			}
			link := lab.Emulate(lab.Host("a"), lab.Host("b"), e)
			peers := 2
			if scheme == "hybrid" {
				peers = 4
			}
			at := filepath.Join(t.TempDir(), "u.npy")
			secret := secretFile(t, "the secret of this run")
			r := startIn(t, link.A.Host.Do, "solve", "membrane", "--n", fmt.Sprint(n), "--tol", fmt.Sprint(tol), "--peers", fmt.Sprint(peers), "--clusters", "2",
				"--scheme", scheme, "--rendezvous", net.JoinHostPort(link.A.IPv4.String(), "0"), "--secret-file", secret, "--out", at, "--format", "json",
				"--suspect", "1m") // the test's thread that forwards packets may be late for a second
			address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
			var all []*running
			for rank := range peers {
				end := link.A
				if rank >= peers/2 {
					end = link.B
				}
				all = append(all, startIn(t, end.Host.Do, "peer", "--rendezvous", address, "--listen", end.IPv4.String(), "--seat", fmt.Sprint(rank), "--secret-file", secret))
			}
			require.Equal(t, 0, r.wait(patience))
			for _, q := range all {
				require.Equal(t, 0, q.wait(patience))
			}
			s := r.solution()
			require.True(t, s.Converged)
			require.LessOrEqual(t, float64(s.RelativeResidual), tol)
			if scheme == "sync" {
				u, err := output.ReadInitial(at, p)
				require.NoError(t, err)
				require.Equal(t, oracle.U, u)
				require.EqualValues(t, oracle.Sweeps, s.Sweeps[0])
			}
			require.EqualValues(t, 2, link.Counters(netlab.Forth).Dropped[netlab.Picked])
			require.Positive(t, link.Counters(netlab.Back).Dropped[netlab.Lost])
		})
	}
}
