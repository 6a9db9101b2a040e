//go:build linux

package main

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver"
)

// A run over two hosts: launcher and one peer here, another peer there, joined by
// a wire with Ethernet's MTU, over IPv4 and IPv6. Synchronously it gives the bits of the
// sequential method.
func TestTwoHosts(t *testing.T) {
	const n, tol = 14, 1e-7
	p, _, err := file.Load("membrane", []int{n})
	require.NoError(t, err)
	oracle, err := solver.SolveSequential(p, solver.Jacobi, tol, 0, 0, 0)
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
