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

// The same over a link between two clusters with a round trip of 20 ms. One packet in a hundred is lost in either
// direction, and so are the first datagrams of the run. The hybrid scheme has two peers in each cluster.
func TestLossBetweenClusters(t *testing.T) {
	const n, tol = 8, 1e-5
	p, _, err := file.Load("membrane", []int{n})
	require.NoError(t, err)
	oracle, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
	require.NoError(t, err)
	for _, scheme := range append(schemes(), "hybrid") {
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
				"--scheme", scheme, "--rendezvous", net.JoinHostPort(link.A.IPv4.String(), "0"), "--secret-file", secret, "--out", at, "--format", "json")
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
