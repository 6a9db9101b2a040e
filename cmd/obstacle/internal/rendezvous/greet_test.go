package rendezvous

import (
	"net"
	"testing"
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

func TestGreeting(t *testing.T) {
	here := Identity{Program: "v1", Fingerprint: "same", Secret: []byte("secret")}
	for name, c := range map[string]struct {
		launcher, peer         Identity
		launcherSays, peerSays string
	}{
		"welcome":           {here, here, "", ""},
		"other protocols":   {here, Identity{"v2", "other", here.Secret}, "obstacle v2 (protocols other)", "obstacle v2 (protocols other)"},
		"other secret":      {here, Identity{"v1", "same", []byte("guess")}, "does not know the run's secret", "does not know the run's secret"},
		"no secret":         {here, Identity{"v1", "same", nil}, "does not know the run's secret", "does not know the run's secret"},
		"launcher's secret": {Identity{"v1", "same", nil}, here, "does not know the run's secret", "does not know the run's secret"},
	} {
		t.Run(name, func(t *testing.T) {
			launcher, peer := ends(t)
			done := make(chan error, 1)
			go func() {
				j, err := launcher.Admit(c.launcher)
				if err == nil {
					err = launcher.Welcome(c.launcher, j, Welcome{Rank: 5, Run: "r"})
				}
				done <- err
			}()
			w, err := peer.Join(c.peer, Join{Seat: 5}, time.Second)
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

func TestPeerRefusesAnImpostor(t *testing.T) {
	launcher, peer := ends(t)
	id := Identity{Fingerprint: "f", Secret: []byte("secret")}
	go func() {
		_ = launcher.Send(Challenge{Version: Version, Fingerprint: "f", Nonce: nonce()})
		_, _ = launcher.Receive(KindJoin)
		_ = launcher.Send(Welcome{Rank: 1, Proof: proof([]byte("guess"), "welcome", nonce())})
	}()
	_, err := peer.Join(id, Join{}, time.Second)
	require.ErrorContains(t, err, "does not know the run's secret")
}

func TestOtherVersion(t *testing.T) {
	launcher, peer := ends(t)
	id := Identity{Program: "v1", Fingerprint: "f", Secret: []byte("s")}
	go func() {
		_ = launcher.Send(Challenge{Version: Version + 1, Program: "v9", Fingerprint: "f", Nonce: nonce()})
	}()
	_, err := peer.Join(id, Join{}, time.Second)
	require.ErrorContains(t, err, "the launcher is obstacle v9 (rendezvous protocol 3), this peer is obstacle v1 (rendezvous protocol 2)")
}

// A join made for another connection is worth nothing: its nonce differs.
func TestJoinCannotBeReplayed(t *testing.T) {
	launcher, peer := ends(t)
	id := Identity{Fingerprint: "f", Secret: []byte("secret")}
	replayed := Join{Version: Version, Fingerprint: "f", Proof: proof(id.Secret, "join", nonce()), Nonce: nonce()}
	done := make(chan error, 1)
	go func() { _, err := launcher.Admit(id); done <- err }()
	require.NoError(t, peer.Send(replayed))
	require.ErrorContains(t, <-done, "does not know the run's secret")
}

func TestStrangersAtTheDoor(t *testing.T) {
	for name, bytes := range map[string]string{
		"HTTP":      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"too early": "\x00\x00\x00\x02\x05{}",
		"gone":      "",
	} {
		t.Run(name, func(t *testing.T) {
			launcher, peer := ends(t)
			_, err := peer.net.Write([]byte(bytes))
			require.NoError(t, err)
			require.NoError(t, peer.net.(*net.TCPConn).CloseWrite())
			_, err = launcher.Admit(Identity{})
			require.ErrorContains(t, err, "sent no greeting")
		})
	}
}

func TestSendGivesUpOnAReaderThatStopped(t *testing.T) {
	launcher, _ := ends(t)
	launcher.wait = 50 * time.Millisecond
	chunk := Chunk{Stream: StreamProblem, Data: make([]byte, MaxChunk)}
	var err error
	for range 1000 {
		if err = launcher.Send(chunk); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "timeout")
}
