//go:build linux

package obstacle_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// Over a path that silently drops packets of more than 1280 bytes, from the start, a run connects, goes on and gathers its
// answer, although the kernel does not search for the length: control connections use short segments.
func TestNarrowPathOfControl(t *testing.T) {
	t.Parallel()
	for _, six := range some([]bool{false, true}) {
		t.Run(fmt.Sprint("IPv6 ", six), func(t *testing.T) {
			t.Parallel()
			lab := netlab.New(t)
			a, b := lab.Host("a"), lab.Host("b")
			narrow := netlab.Conditions{MTU: 1280, Silent: true}
			k := lab.Emulate(a, b, netlab.Emulation{Forth: narrow, Back: narrow})
			for _, h := range []*netlab.Host{a, b} {
				require.NoError(t, h.Sysctl("net/ipv4/tcp_mtu_probing", "0"))
			}
			here, there := k.A.IPv4.String(), k.B.IPv4.String()
			if six {
				here, there = k.A.IPv6.String(), k.B.IPv6.String()
			}
			secret := secretFile(t, "the secret of this run")
			r := startIn(t, a.Do, "solve", "membrane", "--n", "24", "--peers", "2", "--scheme", "async",
				"--rendezvous", net.JoinHostPort(here, "0"), "--secret-file", secret, "--format", "json", "--max-time", "60s",
				"--suspect", "1m") // a late emulated link is no loss
			address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
			for _, p := range []struct {
				h *netlab.Host
				l string
			}{{a, here}, {b, there}} {
				startIn(t, p.h.Do, "peer", "--rendezvous", address, "--listen", p.l, "--secret-file", secret)
			}
			require.Equal(t, 0, r.wait(patience))
			require.True(t, r.solution().Converged)
			require.Empty(t, r.solution().Losses)
		})
	}
}
