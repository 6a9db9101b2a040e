//go:build linux

package obstacle_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// sessionsBetween runs a solve with a peer at either end of a wire and returns its sessions.
func sessionsBetween(t *testing.T, a, b netlab.End, args ...string) []report.Session {
	t.Helper()
	secret := secretFile(t, "the secret of this run")
	here, there := a.IPv4.String(), b.IPv4.String()
	r := startIn(t, a.Host.Do, append([]string{"solve", "membrane", "--n", "6", "--tol", "1e-2", "--peers", "2",
		"--rendezvous", net.JoinHostPort(here, "0"), "--secret-file", secret, "--format", "json", "--suspect", "1m"}, args...)...)
	address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	near := startIn(t, a.Host.Do, "peer", "--rendezvous", address, "--listen", here, "--secret-file", secret)
	r.said(`"peer joined"`) // as rank 0
	far := startIn(t, b.Host.Do, "peer", "--rendezvous", address, "--listen", there, "--secret-file", secret)
	require.Equal(t, 0, r.wait(patience))
	require.Equal(t, 0, near.wait(patience))
	require.Equal(t, 0, far.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Len(t, s.Sessions, 4, "halo and agreement, from either end")
	for _, x := range s.Sessions {
		require.Equal(t, s.Sessions[0].Locality, x.Locality)
		require.Equal(t, s.Sessions[0].Why, x.Why, "both ends have the same reason")
		require.True(t, x.RTT.Known())
	}
	near.said(fmt.Sprintf(`"locality":%q.*"session open"`, s.Sessions[0].Locality))
	return s.Sessions
}

// roundTrip returns the round trip that decided the locality of two hosts in one network.
func roundTrip(t *testing.T, s report.Session) time.Duration {
	t.Helper()
	m := regexp.MustCompile(`^different hosts, both in 10\.77\.1\.0/24, round trip (\S+) \(near: at most 2ms\)$`).FindStringSubmatch(s.Why)
	require.NotNil(t, m, s.Why)
	d, err := time.ParseDuration(m[1])
	require.NoError(t, err)
	return d
}

// Two hosts of one network form a cluster, unless a topology file says otherwise.
func TestHostsOfOneNetwork(t *testing.T) {
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			lab := netlab.New(t)
			a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
			// On a busy machine even the shortest round trip may be long: then retry.
			s := sessionsBetween(t, a, b, "--scheme", scheme)
			for roundTrip(t, s[0]) > 2*time.Millisecond {
				require.Equal(t, "other cluster", s[0].Locality)
				s = sessionsBetween(t, a, b, "--scheme", scheme)
			}
			require.Equal(t, "same cluster", s[0].Locality)
			for i, mode := range []string{"sync", scheme} {
				if s[i].Changes == 0 { // on a busy machine queueing may look like distance to the monitor
					require.Equal(t, mode+" intra ether", s[i].Column)
				}
			}

			file := filepath.Join(t.TempDir(), "t.yaml")
			require.NoError(t, os.WriteFile(file, []byte("clusters:\n  one: [10.77.1.1]\n  two: [10.77.1.2]\n"), 0o600))
			s = sessionsBetween(t, a, b, "--scheme", scheme, "--topology", file)
			require.Equal(t, "other cluster", s[0].Locality)
			require.Equal(t, `labels of different clusters: "one" and "two"`, s[0].Why)
			require.Equal(t, scheme+" inter ether", s[1].Column)
		})
	}
}

// With a round trip of 20 ms they form different clusters, although their addresses are similar.
func TestHostsFarApart(t *testing.T) {
	if testing.Short() {
		t.Skip("some round trips of 20 ms")
	}
	for _, scheme := range []string{"sync", "async"} {
		t.Run(scheme, func(t *testing.T) {
			lab := netlab.New(t)
			c := netlab.Conditions{Delay: 10 * time.Millisecond}
			link := lab.Emulate(lab.Host("a"), lab.Host("b"), netlab.Emulation{Forth: c, Back: c})
			s := sessionsBetween(t, link.A, link.B, "--scheme", scheme)
			require.Equal(t, "other cluster", s[0].Locality)
			require.GreaterOrEqual(t, roundTrip(t, s[0]), 20*time.Millisecond)
			require.Equal(t, "sync inter ether", s[0].Column)
			require.Equal(t, scheme+" inter ether", s[1].Column)
			require.GreaterOrEqual(t, float64(s[1].RTT), 0.020)
			want := map[string]string{"sync": "TCPNewRenoCongestionAvoidance", "async": "DCCPAck"}[scheme]
			require.Contains(t, s[1].Composition, want)
		})
	}
}

// A host that the topology file does not name is refused, both ends report it, and the run continues to wait.
func TestHostOutsideTheTopology(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	require.NoError(t, os.WriteFile(file, []byte("clusters: {one: [nobody.example]}\n"), 0o600))
	r, address, secret := waiting(t, "solve", "membrane", "--n", "8", "--peers", "1", "--topology", file)
	p := start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1")
	require.Equal(t, 2, p.wait(patience))
	p.said(`t.yaml: the host .* \(no address\) is in no cluster`)
	r.said(`refused the peer at .*t.yaml: the host .* is in no cluster`)
	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))
}
