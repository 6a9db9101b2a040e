//go:build linux

package obstacle_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
)

// byHand is a run of peers that were started by hand.
type byHand struct {
	*running        // the launcher
	secret   string // file
	peers    []*running
	keepers  []string // addresses, the launcher's first
}

// startByHand starts a run of four peers that wait at a gate, and returns when its keepers have agreed.
func startByHand(t *testing.T, more ...string) *byHand {
	t.Helper()
	closeGate(t, gate.Gate{})
	return byHandOf(t, append([]string{"solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "4",
		"--format", "json"}, more...)...)
}

// byHandOf starts a run of four peers, and returns when its keepers have agreed and all peers know them.
func byHandOf(t *testing.T, args ...string) *byHand {
	t.Helper()
	r, address, secret := waiting(t, args...)
	b := &byHand{running: r, secret: secret}
	for range 4 {
		b.peers = append(b.peers, start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1",
			"--log-level", "debug"))
	}
	b.keepers = strings.Fields(r.said(`keepers of the run: ([^"]*)\. If`)[1])
	r.said(`"relaxing"`)
	for _, p := range b.peers { // one that does not know them yet leaves with the launcher
		p.said("another process can lead the run")
	}
	return b
}

// attach starts a process that fetches the answer.
func (b *byHand) attach(at ...string) *running {
	b.t.Helper()
	return start(b.t, append([]string{"attach", "--secret-file", b.secret, "--format", "json"}, at...)...)
}

// A run goes on undisturbed when its launcher is killed, and its answer can be fetched.
func TestLauncherIsLost(t *testing.T) {
	t.Parallel() // its peers wait at a gate
	runs := []string{"async", "sync", "exact", "balance"}
	if testing.Short() {
		runs = runs[:1]
	}
	for _, run := range runs {
		t.Run(run, func(t *testing.T) {
			scheme, more := run, []string(nil)
			switch run {
			case "exact":
				scheme, more = "sync", []string{"--recover", "exact"}
			case "balance":
				scheme, more = "async", []string{"--partition", "slabs", "--balance", "on"}
			}
			more = append(more, "--scheme", scheme, "--suspect", "1m") // however slow the machine is
			b := startByHand(t, more...)
			require.Len(t, b.keepers, 3)
			b.signal(syscall.SIGKILL)
			b.leads(b.peers).said(`"undisturbed":true`)
			b.open()
			a := b.attach(b.keepers[2], b.keepers[1]) // the second one leads; the first may have ended
			require.Equal(t, 0, a.wait(patience))
			s := a.solution()
			require.True(t, s.Converged)
			require.Empty(t, s.Losses)
			require.Equal(t, scheme, s.Scheme)
			require.Equal(t, map[bool]string{true: "on", false: "off"}[run == "balance"], s.Balance)
			for _, p := range b.peers {
				require.Equal(t, 0, p.wait(patience))
			}
		})
	}
}

// The launcher is killed when the peers have ended, before it has their blocks. They send them to the one that leads.
func TestAnswersAreSentAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests")
	}
	t.Parallel()
	b := startByHand(t, "--suspect", "1m")
	b.signal(syscall.SIGSTOP)
	b.open()
	for _, p := range b.peers {
		p.said(`"iterated"`)
	}
	b.signal(syscall.SIGKILL)
	a := b.attach(b.keepers...) // the first one is lost
	require.Equal(t, 0, a.wait(patience))
	require.True(t, a.solution().Converged)
	for _, p := range b.peers {
		require.Equal(t, 0, p.wait(patience))
	}
}

// A run survives its launcher, the process that leads it then, and another peer.
func TestSeveralLeadersAreLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests")
	}
	t.Parallel() // its peers wait at a gate
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			b := startByHand(t, "--scheme", scheme, "--suspect", "300ms")
			b.signal(syscall.SIGKILL)
			first := b.leads(b.peers)
			left := without(b.peers, first)
			term := first.said(`"term":(\d+),"epoch":0,"keepers":\["[^]]*,[^]]*,[^]]*\].*keepers agreed`)[1]
			await.Until(t, func() bool { return ready(left, term) == 2 }, "two keepers of term %s", term)
			first.signal(syscall.SIGKILL)
			second := b.leads(left)
			second.said(`"epoch":1,.*recovered`)
			other := without(left, second)[0]
			other.signal(syscall.SIGKILL)
			second.said(`"epoch":2,.*recovered`)
			b.open()
			a := b.attach(second.said(`"address":"([^"]*)".*this process leads it now`)[1])
			require.Equal(t, 0, a.wait(patience))
			s := a.solution()
			require.True(t, s.Converged)
			require.GreaterOrEqual(t, len(s.Losses), 2)
		})
	}
}

// leads returns the peer that leads the run after the loss of its leader.
func (b *byHand) leads(peers []*running) *running {
	b.t.Helper()
	found := make(chan *running, len(peers))
	for _, p := range peers {
		go func() {
			if p.says("this process leads it now") == nil {
				p = nil
			}
			found <- p
		}()
	}
	for range peers {
		if p := <-found; p != nil {
			return p
		}
	}
	b.t.Fatal("no peer leads the run")
	return nil
}

// ready returns how many peers can lead the run after a term.
func ready(peers []*running, term string) (n int) {
	for _, p := range peers {
		p.mu.Lock()
		for _, l := range p.lines {
			if strings.Contains(l, `"term":`+term+",") && strings.Contains(l, "this process can lead the run") {
				n++
				break
			}
		}
		p.mu.Unlock()
	}
	return n
}

// some returns the last of some cases in a short test.
func some[T any](all []T) []T {
	if testing.Short() {
		return all[len(all)-1:]
	}
	return all
}

func without(all []*running, one *running) (out []*running) {
	for _, p := range all {
		if p != one {
			out = append(out, p)
		}
	}
	return out
}

// A run whose launcher lives can be attached to, too. What is wrong is said at once.
func TestAttach(t *testing.T) {
	t.Parallel()
	b := startByHand(t, "--log-level", "debug")
	with := func(args ...string) *running { return start(t, append([]string{"attach"}, args...)...) }
	cases := []struct {
		args []string
		code int
		said string
	}{
		{[]string{b.keepers[0]}, 2, "attach needs --secret-file"},
		{[]string{b.keepers[0], "--secret-file", b.secret, "--out", "u.doc"}, 2, "u.doc"},
		{[]string{b.keepers[0], "--secret-file", secretFile(t, "a guess at the secret")}, 1, "does not know the run's secret"},
		{[]string{"127.0.0.1:1", "--secret-file", b.secret}, 1, "no run at 127.0.0.1:1: .*give the addresses of all"},
	}
	var refused []*running
	for _, c := range cases {
		refused = append(refused, with(c.args...))
	}
	out := filepath.Join(t.TempDir(), "u.npy")
	a := with(b.keepers[1], "--secret-file", b.secret, "--format", "json", "--out", out, "--probe", "0.5,0.5,0.5")
	for i, c := range cases {
		require.Equal(t, c.code, refused[i].wait(patience), "%v", c.args)
		refused[i].said(c.said)
	}
	b.said("obstacle attach follows the run")
	b.open()
	require.Equal(t, 0, a.wait(patience))
	require.Equal(t, 0, b.wait(patience))
	require.FileExists(t, out)
	got, want := a.solution(), b.solution()
	require.Len(t, got.Probes, 1)
	require.Equal(t, want.RelativeResidual, got.RelativeResidual)
	require.Equal(t, want.Sum, got.Sum)
	require.Equal(t, want.PerPeer, got.PerPeer)
	require.Equal(t, want.Losses, got.Losses)
}

// A spare peer that waited for the launcher takes the place of a peer that is lost after it.
func TestSpareFindsTheNextLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute beside other tests")
	}
	t.Parallel()
	b := startByHand(t, "--suspect", "1m")
	spare := start(t, "peer", "--rendezvous", b.keepers[0], "--secret-file", b.secret, "--listen", "127.0.0.1")
	b.said("spare peer joined")
	b.signal(syscall.SIGKILL)
	leader := b.leads(b.peers)
	leader.said("leading the run")
	leader.said("spare peer joined")
	without(b.peers, leader)[0].signal(syscall.SIGKILL)
	leader.said("replacement: spare peer")
	b.open()
	a := b.attach(leader.said(`"address":"([^"]*)".*this process leads it now`)[1])
	require.Equal(t, 0, a.wait(patience))
	require.True(t, a.solution().Converged)
	require.Contains(t, a.solution().Losses[0].By, "spare peer")
	require.Equal(t, 0, spare.wait(patience))
}
