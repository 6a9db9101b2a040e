//go:build linux

package obstacle_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// joinByHand starts a peer of a run that waits at an address.
func joinByHand(t *testing.T, address, secret string) *running {
	t.Helper()
	return start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1")
}

// waiting starts a launcher that waits for peers started by hand.
func waiting(t *testing.T, args ...string) (r *running, address, secret string) {
	t.Helper()
	secret = secretFile(t, "the secret of this run")
	r = start(t, append(args, "--rendezvous", "127.0.0.1:0", "--secret-file", secret, "--format", "json")...)
	return r, r.said(`waiting for \d+ peers at (\S+): obstacle`)[1], secret
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "run.secret")
	require.NoError(t, os.WriteFile(name, []byte(text+"\n"), 0o600))
	return name
}

func TestPeersByHand(t *testing.T) {
	r, address, secret := waiting(t, "solve", "membrane", "--n", "10", "--peers", "2")
	join := func(more ...string) *running {
		return start(t, append([]string{"peer", "--rendezvous", address, "--listen", "127.0.0.1"}, more...)...)
	}
	wrong := join("--secret-file", secretFile(t, "a guess at the secret"))
	require.Equal(t, 1, wrong.wait(patience))
	wrong.said("does not know the run's secret")
	loose := secretFile(t, "the secret of another run")
	require.NoError(t, os.Chmod(loose, 0o644))
	join("--secret-file", loose).said("other users of this host can read the run's secret: chmod 600")
	r.said("does not know the run's secret")

	seat := join("--secret-file", secret, "--seat", "7")
	require.Equal(t, 2, seat.wait(patience))
	seat.said("rank 7 is taken or invalid in a run of 2 peers")

	first := join("--secret-file", secret, "--problem", "membrane")
	r.said("peer joined")
	second := join("--secret-file", secret)
	require.Equal(t, 0, r.wait(patience))
	require.Equal(t, 0, first.wait(patience))
	require.Equal(t, 0, second.wait(patience))
	s := r.solution()
	require.True(t, s.Converged)
	require.Equal(t, first.cmd.Process.Pid, s.PerPeer[0].Pid)
	require.Equal(t, second.cmd.Process.Pid, s.PerPeer[1].Pid)
}

// A peer for another problem is refused, and the run continues to wait.
func TestPeerOfAnotherProblem(t *testing.T) {
	r, address, secret := waiting(t, "solve", "membrane", "--n", "10", "--peers", "1")
	p := start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--problem", "ball3d")
	require.Equal(t, 2, p.wait(patience))
	p.said("different problems: the run solves membrane .*, this peer was started for ball3d")
	r.said("refused the peer .*: different problems")
	p = start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--problem", "membrane")
	require.Equal(t, 0, p.wait(patience))
	require.Equal(t, 0, r.wait(patience))
}

func TestInterruptOfAPeerEndsTheRun(t *testing.T) {
	closeGate(t, gate.Gate{})
	r, address, secret := waiting(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "2",
		"--peer-timeout", "10m", "--keepers", "1")
	a := joinByHand(t, address, secret)
	b := joinByHand(t, address, secret)
	r.said(`"relaxing"`)
	b.signal(syscall.SIGINT)
	b.said("requesting an early end of the run; a second Ctrl-C ends this process at once")
	r.open() // the others end after one or two relaxations
	require.Equal(t, 3, r.wait(patience))
	require.Equal(t, "interrupted", r.solution().Reason)
	require.Equal(t, 0, a.wait(patience))
	require.Equal(t, 0, b.wait(patience))
}

// One signal ends a peer at once whose run has not begun, and a line has said what it waits for. The launcher waits for
// another one.
func TestInterruptOfAPeerThatWaits(t *testing.T) {
	t.Parallel()
	r, address, secret := waiting(t, "solve", "membrane", "--n", "10", "--peers", "2")
	for _, c := range []struct{ address, what string }{
		{"127.0.0.1:9", "a launcher at 127.0.0.1:9"}, {address, "a part of the run at " + address},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			p := joinByHand(t, c.address, secret)
			p.said("waiting for " + c.what + "; Ctrl-C ends the program")
			p.signal(signal)
			require.Equal(t, 3, p.wait(patience), c)
			p.said("interrupted while it waited for " + c.what + "; nothing was run")
		}
	}
	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))
}

func TestInterruptWhileWaiting(t *testing.T) {
	r, _, _ := waiting(t, "solve", "membrane", "--n", "10", "--peers", "2")
	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))
	r.said("interrupted before the first relaxation")
}

func TestNoPeerJoins(t *testing.T) {
	r, _, _ := waiting(t, "solve", "membrane", "--n", "10", "--peers", "2", "--join-timeout", "200ms")
	require.Equal(t, 1, r.wait(patience))
	r.said("2 of 2 peers did not join within 200ms")
}

func TestPortsInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	r := start(t, "solve", "membrane", "--n", "8", "--rendezvous", taken.Addr().String(), "--secret-file", secretFile(t, "the secret of this run"))
	require.Equal(t, 1, r.wait(patience))
	r.said(fmt.Sprintf("cannot listen at 127.0.0.1:%d: .*address already in use", port))

	// Another peer replaces one that cannot listen.
	r, address, secret := waiting(t, "solve", "membrane", "--n", "8", "--peers", "2")
	join := func(more ...string) *running {
		return start(t, append([]string{"peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1"}, more...)...)
	}
	a := join()
	r.said(`"rank":0.*peer joined`)
	p := join("--port-range", fmt.Sprintf("%d-%d", port, port))
	require.Equal(t, 1, p.wait(patience))
	p.said(fmt.Sprintf("%d.*address already in use", port))
	r.said(fmt.Sprintf("cannot take part: .*%d.*the run waits for a replacement", port))
	b := join()
	require.Equal(t, 0, r.wait(patience))
	require.Equal(t, 0, a.wait(patience))
	require.Equal(t, 0, b.wait(patience))
	require.Equal(t, b.cmd.Process.Pid, r.solution().PerPeer[1].Pid)
}

// A peer of another version is refused, both ends name the versions, and the run continues to wait.
func TestOtherVersions(t *testing.T) {
	r, address, secret := waiting(t, "solve", "membrane", "--n", "8", "--peers", "1")
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	conn := rendezvous.NewConn(c, patience)
	defer conn.Close()
	other, err := identify("v99", "of other protocols", []byte("the secret of this run"))
	require.NoError(t, err)
	_, err = conn.Join(other, rendezvous.Join{Rank: -1}, patience)
	require.ErrorContains(t, err, "this peer is obstacle v99 (protocols of other pro)")
	r.said(`different protocols: the launcher is obstacle .*, the peer is obstacle v99`)
	p := joinByHand(t, address, secret)
	require.Equal(t, 0, p.wait(patience))
	require.Equal(t, 0, r.wait(patience))

	keys, err := driver.NewSaltedIdentity([]byte("the secret of this run"), "rendezvous")
	if mode() == quickly {
		keys, err = driver.NewKeyIdentity(sha256.Sum256([]byte("the secret of this run")), "rendezvous")
	}
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		over, err := keys.Server(t.Context(), c)
		if err != nil {
			return
		}
		conn := rendezvous.NewConn(over, patience)
		_ = conn.Send(rendezvous.Challenge{Version: rendezvous.Version + 1, Program: "v100", Fingerprint: build.Fingerprint(catalog.New())})
		_, _ = conn.Receive()
		conn.Close()
	}()
	p = start(t, "peer", "--rendezvous", l.Addr().String(), "--secret-file", secret)
	require.Equal(t, 1, p.wait(patience))
	p.said(`different versions: the launcher is obstacle v100 \(rendezvous protocol \d+\), this peer is obstacle`)
}

// A peer started by hand detects the end of its launcher by the connection alone.
func TestPeersByHandEndWithTheLauncher(t *testing.T) {
	closeGate(t, gate.Gate{})
	r, address, secret := waiting(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "2",
		"--peer-timeout", "10m", "--keepers", "1")
	a := joinByHand(t, address, secret)
	b := joinByHand(t, address, secret)
	r.said(`"relaxing"`)
	r.signal(syscall.SIGKILL)
	require.Equal(t, 1, a.wait(patience)) // before the timeout
	require.Equal(t, 1, b.wait(patience))
	a.said("the launcher at .* left before the run was over")
}

// A peer that has sent its block exits with 1 if the launcher ends before Bye, since the answer is lost.
func TestLauncherKilledBeforeBye(t *testing.T) {
	t.Parallel()
	closeGate(t, gate.Gate{})
	r, address, secret := waiting(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--max-sweeps", "10", "--peers", "1")
	p := joinByHand(t, address, secret)
	r.said(`"relaxing"`)
	r.signal(syscall.SIGSTOP)
	r.open()
	p.said(`"iterated"`)
	r.signal(syscall.SIGKILL)
	require.Equal(t, 1, p.wait(patience))
	p.said("the launcher at .* left before the run was over")
}

// All peers of a failed run exit with 1 at once, without waiting for the peer timeout or for messages to the lost peer.
func TestPeersByHandOfAFailedRun(t *testing.T) {
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			closeGate(t, gate.Gate{})
			r, address, secret := waiting(t, "solve", "membrane", "--n", "24", "--method", "richardson", "--peers", "3",
				"--scheme", scheme, "--peer-timeout", "10m", "--recover", "off")
			var all []*running
			for rank := range 3 {
				all = append(all, start(t, "peer", "--rendezvous", address, "--secret-file", secret, "--listen", "127.0.0.1", "--seat", fmt.Sprint(rank)))
			}
			r.said(`"relaxing"`)
			all[1].signal(syscall.SIGKILL)
			require.Equal(t, 1, r.wait(patience))
			require.Equal(t, []int{1}, r.solution().MissingBlocks)
			for _, rank := range []int{0, 2} {
				require.Equal(t, 1, all[rank].wait(patience))
				all[rank].said("obstacle: peer 1 .* closed its connection")
			}
		})
	}
}

// A secret can come from standard input, which may end after it.
func TestSecretByStandardInput(t *testing.T) {
	r, address, secret := waiting(t, "solve", "membrane", "--n", "10", "--peers", "2")
	join := func(stdin io.Reader) *running {
		return startWith(t, stdin, "peer", "--rendezvous", address, "--listen", "127.0.0.1", "--secret-file", "-")
	}
	file, err := os.Open(secret)
	require.NoError(t, err)
	defer file.Close()
	first := join(file)
	second := join(strings.NewReader("the secret of this run")) // a pipe, without a newline
	require.Equal(t, 0, r.wait(patience))
	require.Equal(t, 0, first.wait(patience))
	require.Equal(t, 0, second.wait(patience))
	require.True(t, r.solution().Converged)

	// The peer reports its failure itself, since the launcher may have another user.
	r, address, _ = waiting(t, "solve", "membrane", "--n", "10", "--peers", "1")
	wrong := startWith(t, strings.NewReader("the secret of this run\n"), "peer", "--rendezvous", address, "--problem", "ball3d", "--secret-file", "-")
	require.Equal(t, 2, wrong.wait(patience))
	wrong.said("different problems")
	r.said("refused the peer .*: different problems") // and waits for another one
	r.signal(syscall.SIGINT)
	require.Equal(t, 3, r.wait(patience))

	solve := startWith(t, strings.NewReader("the secret of this run\n"), "solve", "membrane", "--n", "10", "--peers", "1", "--rendezvous", "127.0.0.1:0", "--secret-file", "-")
	address = solve.said(`waiting for \d+ peers at (\S+): obstacle`)[1]
	require.Equal(t, 0, start(t, "peer", "--rendezvous", address, "--listen", "127.0.0.1", "--secret-file", secret).wait(patience))
	require.Equal(t, 0, solve.wait(patience))
}

// Peers can join while several hundred connections send nothing, or single bytes, and new ones open all the time.
func TestSilentConnectionsAtTheRendezvous(t *testing.T) {
	t.Setenv(asProgram, asItIs) // the launcher stretches the secret beside such connections, also with -short
	r, address, secret := waiting(t, "solve", "membrane", "--n", "10", "--peers", "2")
	var silent []net.Conn
	come := func(i int) error {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		silent = append(silent, c)
		_, _ = c.Write([]byte{22, 3, 1, 2, 0, 1}[:i%7])
		return nil
	}
	for i := range 500 {
		require.NoError(t, come(i))
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if come(i) != nil {
				return // the run is over
			}
			await.Pass(10 * time.Millisecond)
		}
	}()
	first := start(t, "peer", "--rendezvous", address, "--listen", "127.0.0.1", "--secret-file", secret)
	second := start(t, "peer", "--rendezvous", address, "--listen", "127.0.0.1", "--secret-file", secret)
	code := r.wait(patience)
	close(stop)
	<-done
	for _, c := range silent {
		_ = c.Close()
	}
	require.Equal(t, 0, code)
	require.Equal(t, 0, first.wait(patience))
	require.Equal(t, 0, second.wait(patience))
	require.Positive(t, r.solution().Refused["rendezvous.refused"])
}
