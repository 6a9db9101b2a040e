//go:build linux

package obstacle_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// After the wire to a peer is cut, the run names the lost peer, all processes end in bounded time, on both sides, and
// the remaining block is kept.
func TestCutWire(t *testing.T) {
	t.Parallel()
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			lab := netlab.New(t)
			a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
			secret := secretFile(t, "the secret of this run")
			closeGate(t, gate.Gate{})
			launcher := startIn(t, a.Host.Do, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "2",
				"--scheme", scheme, "--peer-timeout", "6s", "--recover", "off", "--rendezvous", net.JoinHostPort(a.IPv4.String(), "0"), "--secret-file", secret, "--format", "json")
			address := launcher.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
			join := func(e netlab.End, seat string) *running {
				return startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(), "--secret-file", secret, "--seat", seat)
			}
			near, far := join(a, "0"), join(b, "1")
			launcher.said(`"started"`)
			require.NoError(t, b.Cut())
			// Each ends by itself: the launcher cannot end a process that it does not reach.
			for _, r := range []*running{launcher, near, far} {
				r.wait(patience)
			}
			require.Equal(t, 1, launcher.code)
			launcher.said("obstacle: peer 1")
			s := launcher.solution()
			require.True(t, s.PerPeer[1].Lost)
			require.False(t, s.PerPeer[0].Lost, "the block of the peer that is left was not kept")
		})
	}
}

// The interface of the launcher's host is down for longer than --suspect. The peer there runs the part of the lost one as
// soon as the interface is up again.
func TestInterfaceIsDownForAWhile(t *testing.T) {
	t.Parallel()
	lab := netlab.New(t)
	a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
	secret := secretFile(t, "the secret of this run")
	closeGate(t, gate.Gate{})
	r := startIn(t, a.Host.Do, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "2",
		"--keepers", "1", "--suspect", "300ms", "--rendezvous", net.JoinHostPort(a.IPv4.String(), "0"),
		"--secret-file", secret, "--format", "json")
	address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	join := func(e netlab.End, seat string) *running {
		return startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(), "--secret-file", secret, "--seat", seat)
	}
	near, _ := join(a, "0"), join(b, "1")
	r.said(`"relaxing"`)
	require.NoError(t, a.Cut())
	near.said("waiting for the interface")
	require.NoError(t, a.Restore())
	r.open()
	require.Equal(t, 0, r.wait(patience))
	require.True(t, r.solution().Converged)
	require.NotEmpty(t, r.solution().Losses)
}

// A peer that is cut off before the start ends, and another one can replace it.
func TestCutWireBeforeTheStart(t *testing.T) {
	t.Parallel()
	lab := netlab.New(t)
	a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
	secret := secretFile(t, "the secret of this run")
	launcher := startIn(t, a.Host.Do, "solve", "membrane", "--n", "8", "--peers", "2", "--peer-timeout", "4s",
		"--rendezvous", net.JoinHostPort(a.IPv4.String(), "0"), "--secret-file", secret)
	address := launcher.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	far := startIn(t, b.Host.Do, "peer", "--rendezvous", address, "--listen", b.IPv4.String(), "--secret-file", secret)
	launcher.said("peer listens")
	require.NoError(t, b.Cut())
	launcher.said("peer 0 .* has been silent for .* before the start; the run waits for a replacement")
	<-far.done
	require.Equal(t, 1, far.code)
	launcher.signal(syscall.SIGINT)
	<-launcher.done
	require.Equal(t, 3, launcher.code)
}

// A run goes on when the wire to a host is cut: the process that is left takes the part of the peer there. The peer there
// ends in bounded time, or comes back as a spare one if the wire is repaired.
func TestCutWireIsSurvived(t *testing.T) {
	t.Parallel()
	for _, scheme := range schemes() {
		for _, back := range some([]bool{false, true}) {
			t.Run(fmt.Sprintf("%s, repaired %v", scheme, back), func(t *testing.T) {
				t.Parallel()
				lab := netlab.New(t)
				a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
				secret := secretFile(t, "the secret of this run")
				closeGate(t, gate.Gate{})
				launcher := startIn(t, a.Host.Do, "solve", "membrane", "--n", "24", "--method", "richardson",
					"--peers", "2", "--scheme", scheme, "--peer-timeout", "6s",
					"--rendezvous", net.JoinHostPort(a.IPv4.String(), "0"), "--secret-file", secret, "--format", "json")
				address := launcher.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
				join := func(e netlab.End, seat string) *running {
					return startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(), "--secret-file", secret, "--seat", seat)
				}
				near, far := join(a, "0"), join(b, "1")
				launcher.said(`"relaxing"`)
				require.NoError(t, b.Cut())
				launcher.said(`peer 1 .* has been silent for more than 1s \(--suspect\)`)
				far.said("joining the run again as a spare peer")
				if back { // after its first attempt, which fails at once
					require.NoError(t, b.Restore())
					launcher.said("spare peer joined")
				}
				launcher.open()
				require.Equal(t, 0, launcher.wait(patience))
				require.Equal(t, 0, near.wait(patience))
				require.Equal(t, map[bool]int{false: 3, true: 0}[back], far.wait(patience))
				s := launcher.solution()
				require.Len(t, s.Losses, 1)
				require.Contains(t, s.Losses[0].By, "process of peer 0")
			})
		}
	}
}
