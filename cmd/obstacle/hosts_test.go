//go:build linux

package main

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// startOn starts the program on a host.
func startOn(t *testing.T, h *netlab.Host, args ...string) (r *running) {
	t.Helper()
	require.NoError(t, h.Do(func() error { r = start(t, args...); return nil }))
	return r
}

// spread starts a launcher on the first host and peers on both in turn.
func spread(t *testing.T, hosts []netlab.End, peers int, address func(netlab.End) string, args ...string) (launcher *running, ps []*running) {
	t.Helper()
	secret := secretFile(t, "the secret of this run")
	launcher = startOn(t, hosts[0].Host, append([]string{"solve", "membrane", "--peers", fmt.Sprint(peers),
		"--rendezvous", net.JoinHostPort(address(hosts[0]), "0"), "--secret-file", secret, "--format", "json"}, args...)...)
	rendezvous := launcher.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	for rank := range peers {
		e := hosts[rank%len(hosts)]
		ps = append(ps, startOn(t, e.Host, "peer", "--rendezvous", rendezvous, "--secret-file", secret,
			"--listen", address(e), "--seat", fmt.Sprint(rank)))
	}
	return launcher, ps
}

func ipv4(e netlab.End) string { return e.IPv4.String() }
func ipv6(e netlab.End) string { return e.IPv6.String() }

// Two hosts joined by a wire, both schemes, one and two peers a host.
func TestTwoHosts(t *testing.T) {
	lab := netlab.New(t)
	a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
	alone := start(t, "solve", "membrane", "--n", "24", "--peers", "1", "--in-process", "--format", "json")
	require.Equal(t, 0, alone.wait(patience))
	reference := alone.solution()
	for _, c := range []struct {
		scheme  string
		peers   int
		address func(netlab.End) string
	}{
		{"sync", 2, ipv4}, {"sync", 4, ipv6}, {"async", 2, ipv6}, {"async", 4, ipv4}, {"delay:1", 2, ipv4},
	} {
		t.Run(fmt.Sprintf("%s/%d", c.scheme, c.peers), func(t *testing.T) {
			launcher, ps := spread(t, []netlab.End{a, b}, c.peers, c.address, "--n", "24", "--scheme", c.scheme)
			require.Equal(t, 0, launcher.wait(patience))
			for _, p := range ps {
				require.Equal(t, 0, p.wait(patience))
			}
			s := launcher.solution()
			require.True(t, s.Converged)
			require.Equal(t, c.scheme, s.Scheme)
			require.Len(t, s.PerPeer, c.peers)
			for rank, p := range s.PerPeer {
				require.Equal(t, ps[rank].cmd.Process.Pid, p.Pid)
			}
			if c.scheme == "sync" {
				require.Equal(t, reference.Sum, s.Sum, "not bitwise")
				require.Equal(t, reference.RelativeResidual, s.RelativeResidual)
				for _, n := range s.Sweeps {
					require.Equal(t, reference.Sweeps[0], n)
				}
				require.Contains(t, s.Composition, "Retransmit")
			} else {
				require.InDelta(t, float64(reference.Sum), float64(s.Sum), 1e-5)
				require.Contains(t, s.Composition, "Asynchronous")
			}
		})
	}
}

// A wire that is pulled makes the peer at its other end lost: it is named, and
// everybody stops in bounded time.
func TestCutWire(t *testing.T) {
	for _, scheme := range []string{"sync", "async"} {
		t.Run(scheme, func(t *testing.T) {
			lab := netlab.New(t)
			a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
			launcher, ps := spread(t, []netlab.End{a, b}, 2, ipv4, "--n", "64", "--tol", "1e-15", "--scheme", scheme, "--peer-timeout", "1s")
			launcher.said(`"started"`)
			begin := time.Now()
			require.NoError(t, b.Cut())
			// Each end by itself: the launcher cannot end a process it does not reach.
			for _, r := range append([]*running{launcher}, ps...) {
				select {
				case <-r.done:
				case <-time.After(patience):
					require.FailNow(t, "still running", "%v", r.cmd.Args[1:])
				}
			}
			require.Less(t, time.Since(begin), 15*time.Second)
			require.Equal(t, 1, launcher.code)
			require.Equal(t, 1, ps[1].code)
			launcher.said("obstacle: peer 1")
			s := launcher.solution()
			require.True(t, s.PerPeer[1].Lost)
			require.False(t, s.PerPeer[0].Lost, "the block of the peer that is left was not kept")
		})
	}
}
