package rendezvous

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func ends(t *testing.T) (launcher, peer *Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	c, err := l.Accept()
	require.NoError(t, err)
	launcher, peer = NewConn(c, time.Second), NewConn(p, time.Second)
	t.Cleanup(func() { launcher.Close(); peer.Close() })
	return launcher, peer
}

// here is an identity of a run with the given secret.
func here(t *testing.T, program, fingerprint, secret string) Identity {
	t.Helper()
	id, err := NewKeyIdentity(program, fingerprint, sha256.Sum256([]byte(secret)))
	require.NoError(t, err)
	return id
}

func TestHandshake(t *testing.T) {
	ours := here(t, "v1", "same", "secret")
	for name, c := range map[string]struct {
		launcher, peer         Identity
		launcherSays, peerSays string
	}{
		"welcome":         {ours, ours, "", ""},
		"other protocols": {ours, here(t, "v2", "other", "secret"), "obstacle v2 (protocols other)", "obstacle v2 (protocols other)"},
		"other secret":    {ours, here(t, "v1", "same", "guess"), "does not know the run's secret", "does not know the run's secret"},
	} {
		t.Run(name, func(t *testing.T) {
			launcher, peer := ends(t)
			done := make(chan error, 1)
			go func() {
				_, err := launcher.Admit(c.launcher)
				if err == nil {
					err = launcher.Send(Welcome{Rank: 5, Run: "r"})
				}
				done <- err
			}()
			w, err := peer.Join(c.peer, Join{Rank: 5}, time.Second)
			if c.peerSays == "" {
				require.NoError(t, err)
				require.Equal(t, 5, w.Rank)
				require.Equal(t, "r", w.Run)
				require.NoError(t, <-done)
				return
			}
			require.ErrorContains(t, err, c.peerSays)
			require.ErrorContains(t, <-done, c.launcherSays)
		})
	}
}

// A Welcome without a key of 256 bits is refused.
func TestWelcomeWithoutAKey(t *testing.T) {
	for _, n := range []int{0, 16, 31, 33} {
		_, err := (&Welcome{Run: "run", Key: make([]byte, n)}).Control()
		require.ErrorIs(t, err, ErrMalformed, "%d bytes", n)
	}
}

// Errors before the launcher answered are distinguished from those that another attempt cannot avoid.
func TestNoAnswer(t *testing.T) {
	id := here(t, "v1", "f", "secret")
	for name, play := range map[string]func(c *Conn){
		"closed at once": func(c *Conn) {},
		"closed after the proof": func(c *Conn) {
			_ = c.secure(id.keys.Server)
		},
		"closed after the handshake": func(c *Conn) {
			_, _ = c.Admit(id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			launcher, peer := ends(t)
			go func() {
				play(launcher)
				launcher.Close()
			}()
			_, err := peer.Join(id, Join{}, time.Second)
			require.ErrorIs(t, err, ErrNoAnswer)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		silent, c := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, silent) }()
		_, err := NewConn(c, time.Second).Join(id, Join{}, time.Second)
		require.ErrorIs(t, err, ErrNoAnswer, "a silent rendezvous")
		require.NoError(t, c.Close())
	})
	launcher, peer := ends(t)
	go func() { _, _ = launcher.Admit(here(t, "v1", "f", "another secret")) }()
	_, err := peer.Join(id, Join{}, time.Second)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNoAnswer)
}

// A peer also has the keys of a run. Neither it nor the launcher of another purpose can act as the launcher.
func TestPeerRefusesAnImpostor(t *testing.T) {
	id := here(t, "v1", "f", "secret")
	w := Welcome{Run: "run", Key: make([]byte, 32)}
	control, err := w.Control()
	require.NoError(t, err)
	for name, play := range map[string]func(context.Context, net.Conn) (*tls.Conn, error){
		"control channel": control.Server,
		"own certificate": here(t, "v1", "f", "guess").keys.Server,
		"another peer":    id.keys.Client,
	} {
		t.Run(name, func(t *testing.T) {
			launcher, peer := ends(t)
			go func() {
				_, _ = play(t.Context(), launcher.net)
				launcher.Close()
			}()
			_, err := peer.Join(id, Join{}, time.Second)
			require.Error(t, err)
			if name != "another peer" { // two clients do not answer each other
				require.ErrorContains(t, err, "does not know the run's secret")
			}
		})
	}
}

func TestOtherVersion(t *testing.T) {
	launcher, peer := ends(t)
	id := here(t, "v1", "f", "secret")
	go func() {
		if launcher.secure(id.keys.Server) == nil {
			_ = launcher.Send(Challenge{Version: Version + 1, Program: "v9", Fingerprint: "f"})
		}
	}()
	_, err := peer.Join(id, Join{}, time.Second)
	require.ErrorContains(t, err, fmt.Sprintf("the launcher is obstacle v9 (rendezvous protocol %d), this peer is obstacle v1 (rendezvous protocol %d)", Version+1, Version))
}

func TestUnauthenticatedConnections(t *testing.T) {
	id := here(t, "v1", "f", "secret")
	for name, bytes := range map[string]string{
		"HTTP":      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"plain":     "\x00\x00\x00\x02\x02{}",
		"too early": "\x00\x00\x00\x02\x05{}",
		"gone":      "",
	} {
		t.Run(name, func(t *testing.T) {
			launcher, peer := ends(t)
			_, err := peer.net.Write([]byte(bytes))
			require.NoError(t, err)
			require.NoError(t, peer.net.(*net.TCPConn).CloseWrite())
			_, err = launcher.Admit(id)
			require.ErrorContains(t, err, "did not complete the handshake")
			launcher.Close()
			got, _ := io.ReadAll(peer.net)
			require.NotContains(t, string(got), "fingerprint", "nothing is sent before authentication")
		})
	}
}

func TestSendGivesUpOnAReaderThatStopped(t *testing.T) {
	launcher, _ := ends(t)
	launcher.sendTimeout = 50 * time.Millisecond
	chunk := Chunk{Stream: StreamProblem, Data: make([]byte, MaxChunk)}
	var err error
	for range 1000 {
		if err = launcher.Send(chunk); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "timeout")
}

// A spare peer that waits learns who the keepers are, and the change of keepers too.
func TestSpareKnowsTheNewestKeepers(t *testing.T) {
	id := here(t, "v1", "f", "secret")
	launcher, peer := ends(t)
	done := make(chan error, 1)
	go func() {
		_, err := launcher.Admit(id)
		for _, keepers := range [][]string{{"a:1", "b:1", "c:1"}, {"a:1", "c:1", "d:1"}} {
			if err == nil {
				err = launcher.Send(Spare{Keepers: keepers})
			}
		}
		launcher.Close()
		done <- err
	}()
	told := 0
	peer.OnSpare = func() { told++ }
	w, err := peer.Join(id, Join{Rank: -1}, time.Second)
	require.NoError(t, <-done)
	require.ErrorIs(t, err, ErrNoLeader)
	require.Equal(t, 1, told, "once, however often the keepers change")
	require.Equal(t, []string{"a:1", "c:1", "d:1"}, w.Keepers)
}
