//go:build linux

package obstacle_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// twoCables joins two hosts by two cables, and returns how each is pulled: by its interface, or by frames that vanish.
func twoCables(t *testing.T, silent bool) (a, b *netlab.Host, set [2]func(down bool)) {
	lab := netlab.New(t)
	a, b = lab.Host("a"), lab.Host("b")
	for i := range set {
		if silent {
			k := lab.Emulate(a, b, netlab.Emulation{})
			set[i] = func(down bool) {
				for _, way := range []netlab.Direction{netlab.Forth, netlab.Back} {
					require.NoError(t, k.Change(way, netlab.Conditions{Down: down}))
				}
			}
			continue
		}
		_, end := lab.Join(a, b, netlab.Wire{})
		set[i] = func(down bool) {
			if down {
				require.NoError(t, end.Cut())
			} else {
				require.NoError(t, end.Restore())
			}
		}
	}
	return a, b, set
}

// Two cables join two hosts. The one that is in use is pulled, and later the other one: the run goes on, and nothing is
// repaired.
func TestTwoCables(t *testing.T) {
	t.Parallel()
	type pull struct {
		scheme string
		silent bool
	}
	for _, c := range some([]pull{{"sync", true}, {"async", false}, {"sync", false}, {"async", true}}) {
		t.Run(fmt.Sprintf("%s silent %v", c.scheme, c.silent), func(t *testing.T) {
			t.Parallel()
			a, b, set := twoCables(t, c.silent)
			secret := secretFile(t, "the secret of this run")
			closeGate(t, gate.Gate{})
			r := startIn(t, a.Do, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "2", "--scheme", c.scheme,
				"--rendezvous", "0.0.0.0:0", "--secret-file", secret, "--format", "json", "--log-level", "info")
			port := r.said(`waiting for \d+ peers at \S+:(\d+): obstacle`)[1]
			var peers []*running
			for seat, h := range []*netlab.Host{a, b} {
				peers = append(peers, startIn(t, h.Do, "peer", "--rendezvous", "10.77.1.1:"+port, "--listen", "0.0.0.0",
					"--secret-file", secret, "--seat", fmt.Sprint(seat), "--log-level", "info"))
			}
			r.said(`"relaxing"`)
			peers[0].said("10.77.2.2 through .* works, too")
			set[0](true)
			r.said("goes on at 10.77.2.1")
			peers[0].said("frames go to 10.77.2.2 through .*10.77.1.2 through .* is down")
			set[0](false)
			peers[0].said("frames go to 10.77.2.2 through .*10.77.1.2 through .* works, too")
			set[1](true)
			r.said("goes on at 10.77.1.1")
			peers[0].said("frames go to 10.77.1.2 through .*10.77.2.2 through .* is down")
			r.open()
			require.Equal(t, 0, r.wait(patience))
			require.True(t, r.solution().Converged)
			require.Empty(t, r.solution().Losses)
		})
	}
}

// The launcher is killed while the cable is down over which all processes were reached at first. The keepers find each other over
// the other one, and the run ends with its answer.
func TestLauncherIsLostWhileACableIsDown(t *testing.T) {
	t.Parallel()
	for _, silent := range some([]bool{true, false}) {
		t.Run(fmt.Sprintf("silent %v", silent), func(t *testing.T) {
			t.Parallel()
			a, b, set := twoCables(t, silent)
			secret := secretFile(t, "the secret of this run")
			closeGate(t, gate.Gate{})
			r := startIn(t, a.Do, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "3", "--scheme", "async",
				"--rendezvous", "0.0.0.0:0", "--secret-file", secret, "--format", "json", "--suspect", "3s")
			port := r.said(`waiting for \d+ peers at \S+:(\d+): obstacle`)[1]
			var peers []*running
			for seat, h := range []*netlab.Host{b, a, b} {
				peers = append(peers, startIn(t, h.Do, "peer", "--rendezvous", "10.77.1.1:"+port, "--listen", "0.0.0.0",
					"--secret-file", secret, "--seat", fmt.Sprint(seat), "--log-level", "debug"))
			}
			keepers := r.said(`keepers of the run: \S+ (\S+) (\S+)\. If`)
			r.said(`"relaxing"`)
			for _, p := range peers {
				p.said("another process can lead the run")
			}
			peers[0].said("10.77.2.1 through .* works, too")
			set[0](true)
			// A peer that has not changed the cable notices the end of the launcher late, and is repaired.
			await.Until(t, func() bool { return r.times("goes on at 10.77.2.1") >= 2 }, "both peers of the other host to go on")
			r.signal(syscall.SIGKILL)
			leader := (&byHand{running: r}).leads(peers)
			r.open()
			leader.said("fetches its answer")
			for _, p := range without(peers, leader) {
				require.Equal(t, 0, p.wait(patience))
			}
			host := map[bool]*netlab.Host{true: a, false: b}[leader == peers[1]]
			attached := startIn(t, host.Do, "attach", keepers[1], keepers[2], "--secret-file", secret, "--format", "json")
			require.Equal(t, 0, attached.wait(patience))
			require.True(t, attached.solution().Converged)
		})
	}
}
