//go:build linux

package obstacle_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// The launcher's host is cut off for longer than --suspect. It suspects none of its peers, since it hears none, and when
// the wire is repaired the run ends as if nothing had happened. With one keeper nobody else could lead it meanwhile.
func TestLauncherIsCutOffForAWhile(t *testing.T) {
	t.Parallel()
	for _, peers := range some([]int{2, 1}) {
		t.Run(fmt.Sprintf("%d peers", peers), func(t *testing.T) {
			t.Parallel()
			lab := netlab.New(t)
			a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
			secret := secretFile(t, "the secret of this run")
			closeGate(t, gate.Gate{})
			r := startIn(t, a.Host.Do, "solve", "membrane", "--n", "24", "--method", "richardson",
				"--peers", fmt.Sprint(peers), "--keepers", "1", "--suspect", "300ms", "--rendezvous",
				net.JoinHostPort(a.IPv4.String(), "0"), "--secret-file", secret, "--format", "json")
			address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
			for range peers {
				startIn(t, b.Host.Do, "peer", "--rendezvous", address, "--listen", b.IPv4.String(), "--secret-file", secret)
			}
			r.said(`"relaxing"`)
			require.NoError(t, a.Cut())
			r.said("no peer is heard, this host may be cut off")
			require.NoError(t, a.Restore())
			r.open()
			require.Equal(t, 0, r.wait(patience))
			require.True(t, r.solution().Converged)
			require.Empty(t, r.solution().Losses)
		})
	}
}

// The wire between two hosts is cut for ever. The side with most keepers, which are the launcher and the peers 0 and 1,
// goes on and gets the answer. The other side ends: a launcher there with a checkpoint, if it has a block.
func TestOneSideOfACutGoesOn(t *testing.T) {
	t.Parallel()
	type cut struct {
		near    []int // seats on the launcher's host
		goes    bool  // the launcher's side goes on
		resumes bool  // the launcher writes a checkpoint
	}
	for _, c := range some([]cut{{nil, false, false}, {[]int{0}, true, false}, {[]int{2}, false, true}}) {
		t.Run(fmt.Sprintf("launcher with %v", c.near), func(t *testing.T) {
			t.Parallel()
			lab := netlab.New(t)
			a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
			secret, dir := secretFile(t, "the secret of this run"), filepath.Join(t.TempDir(), "checkpoint")
			closeGate(t, gate.Gate{})
			r := startIn(t, a.Host.Do, "solve", "membrane", "--n", "24", "--method", "richardson",
				"--peers", "3", "--peer-timeout", "6s", "--rendezvous", net.JoinHostPort(a.IPv4.String(), "0"),
				"--secret-file", secret, "--checkpoint", dir, "--checkpoint-every", "0", "--format", "json")
			address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
			var near, far []*running
			for seat := range 3 {
				e, side := b, &far
				for _, s := range c.near {
					if s == seat {
						e, side = a, &near
					}
				}
				*side = append(*side, startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(),
					"--secret-file", secret, "--seat", fmt.Sprint(seat)))
			}
			keepers := r.said(`keepers of the run: \S+ (\S+) (\S+)\. If`)
			r.said(`"relaxing"`)
			cut := a // new nodes need an interface that is up
			if c.goes {
				cut = b
			}
			require.NoError(t, cut.Cut())
			if c.goes {
				r.open()
				require.Equal(t, 0, r.wait(patience))
				require.True(t, r.solution().Converged)
				for _, p := range far {
					require.Equal(t, 3, p.wait(patience))
					p.said("this peer was cut off from the run")
				}
				return
			}
			attached := startIn(t, b.Host.Do, "attach", keepers[2], keepers[1], "--secret-file", secret,
				"--format", "json")
			r.open()
			require.Equal(t, 0, attached.wait(patience))
			require.True(t, attached.solution().Converged)
			require.GreaterOrEqual(t, len(attached.solution().Losses), len(c.near))
			for _, p := range far {
				<-p.done
				require.Equal(t, 0, p.code)
			}
			<-r.done
			require.Equal(t, 3, r.code)
			s := r.solution()
			require.Equal(t, "cut off", s.Reason)
			require.Equal(t, c.resumes, s.Resumable)
			require.Contains(t, s.Failure, "obstacle attach "+keepers[1])
		})
	}
}

// A peer whose host was cut off for a while comes back after the end of the run, and says that nothing is left of it.
func TestComesBackAfterTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	lab := netlab.New(t)
	a, b := lab.Join(lab.Host("a"), lab.Host("b"), netlab.Wire{})
	secret := secretFile(t, "the secret of this run")
	closeGate(t, gate.Gate{})
	r := startIn(t, a.Host.Do, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "3",
		"--peer-timeout", "1m", "--rendezvous", net.JoinHostPort(a.IPv4.String(), "0"), "--secret-file", secret,
		"--format", "json")
	address := r.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	var far *running
	for seat, e := range []netlab.End{a, a, b} {
		far = startIn(t, e.Host.Do, "peer", "--rendezvous", address, "--listen", e.IPv4.String(), "--secret-file", secret,
			"--seat", fmt.Sprint(seat), "--log-level", "debug")
	}
	keepers := r.said(`keepers of the run: ([^"]*)\. If`)[1]
	r.said(`"relaxing"`)
	far.said("another process can lead the run")
	require.NoError(t, b.Cut())
	r.open()
	require.Equal(t, 0, r.wait(patience))
	require.NoError(t, b.Restore())
	require.Equal(t, 3, far.wait(patience))
	far.said("this peer was cut off from the run: nothing listens any more at " + strings.ReplaceAll(keepers, " ", ", ") +
		": the run has ended, or its keepers were lost")
}
