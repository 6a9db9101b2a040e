//go:build linux

package obstacle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

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
			lab := netlab.New(t)
			a, b := lab.Host("a"), lab.Host("b")
			var set [2]func(down bool)
			for i := range set {
				if c.silent {
					k := lab.Emulate(a, b, netlab.Emulation{})
					set[i] = func(down bool) {
						for _, way := range []netlab.Direction{netlab.Forth, netlab.Back} {
							require.NoError(t, k.Change(way, netlab.Conditions{Down: down}))
						}
					}
				} else {
					_, end := lab.Join(a, b, netlab.Wire{})
					set[i] = func(down bool) {
						if down {
							require.NoError(t, end.Cut())
						} else {
							require.NoError(t, end.Restore())
						}
					}
				}
			}
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
