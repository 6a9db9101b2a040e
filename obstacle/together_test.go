//go:build linux

package obstacle_test

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// Several hosts fall silent at once. Processes on hosts that are left run their parts, and no request to a process that
// was lost, too, holds up the recovery for the peer timeout, which is longer than this test may take.
func TestHostsThatFallSilentTogether(t *testing.T) {
	t.Parallel()
	type cut struct{ hosts, silent, keepers int }
	for _, c := range some([]cut{{4, 2, 1}, {6, 2, 5}, {4, 3, 1}, {6, 3, 1}}) {
		t.Run(fmt.Sprintf("%d of %d", c.silent, c.hosts), func(t *testing.T) {
			t.Parallel()
			lab := netlab.New(t)
			hosts := make([]*netlab.Host, c.hosts+1) // the first one is the launcher's
			for i := range hosts {
				hosts[i] = lab.Host(fmt.Sprintf("h%d", i))
			}
			ends := lab.Switch(hosts...)
			secret := secretFile(t, "the secret of this run")
			closeGate(t, gate.Gate{})
			r := startIn(t, named(hosts[0]), "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", fmt.Sprint(c.hosts),
				"--keepers", fmt.Sprint(c.keepers), "--peer-timeout", "1h", "--rendezvous", net.JoinHostPort(ends[0].IPv4.String(), "0"), "--secret-file", secret, "--format", "json")
			address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
			for seat, h := range hosts[1:] {
				startIn(t, named(h), "peer", "--rendezvous", address, "--listen", ends[seat+1].IPv4.String(), "--secret-file", secret, "--seat", fmt.Sprint(seat))
			}
			if c.keepers > 1 {
				r.said(fmt.Sprintf(`keepers of the run:( \S+){%d}\. If`, c.keepers))
			}
			r.said(`"relaxing"`)
			for _, e := range ends[1 : 1+c.silent] {
				require.NoError(t, e.Cut())
			}
			r.said("recovered: all peers relax again")
			r.open()
			require.Equal(t, 0, r.wait(patience))
			s := r.solution()
			require.True(t, s.Converged)
			require.Len(t, s.Losses, c.silent)
			last := s.Losses[c.silent-1]
			t.Logf("from the first silence noticed to the relaxation of all: %.3f s", float64(last.Recovered)-s.Losses[0].Detected)
		})
	}
}

// named returns Do of a host, in which processes find the name of the host.
func named(h *netlab.Host) func(f func() error) error {
	return func(f func() error) error {
		done := make(chan error, 1)
		go func() {
			runtime.LockOSThread() // the thread, which keeps the name, ends with the goroutine
			done <- h.Do(func() error {
				if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
					return err
				}
				if err := unix.Sethostname([]byte(h.Name)); err != nil {
					return err
				}
				return f()
			})
		}()
		return <-done
	}
}
