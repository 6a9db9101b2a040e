package rendezvous

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/await"
)

// A connection is cut when what was sent last is not answered, however often it is sent again.
func TestIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		info unix.TCPInfo
		want bool
	}{
		"idle":                   {unix.TCPInfo{Last_ack_recv: 90_000, Last_data_sent: 90_000}, false},
		"just sent":              {unix.TCPInfo{Unacked: 1, Last_ack_recv: 90_000, Last_data_sent: 5}, false},
		"lost a moment ago":      {unix.TCPInfo{Unacked: 1, Retransmits: 3, Last_ack_recv: 7_999, Last_data_sent: 5}, false},
		"cut":                    {unix.TCPInfo{Unacked: 1, Retransmits: 3, Last_ack_recv: 8_000, Last_data_sent: 5}, true},
		"window closed":          {unix.TCPInfo{Probes: 1, Last_ack_recv: 90_000, Last_data_sent: 90_000}, false},
		"nothing there any more": {unix.TCPInfo{Probes: 4, Last_ack_recv: 90_000, Last_data_sent: 90_000}, true},
		"answered, not accepted": {unix.TCPInfo{Unacked: 1, Retransmits: 7, Last_ack_recv: 20_000, Last_data_sent: 20_000}, false},
	} {
		require.Equal(t, c.want, isDead(&c.info, 8*time.Second), name)
	}
}

// A message to a process that reads nothing for longer than that stays on its way.
func TestClosedWindowIsNotCut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	here, err := l.Accept()
	require.NoError(t, err)
	reader, sender := NewConn(there, 0), NewConn(here, 0)
	defer reader.Close()
	defer sender.Close()
	require.NoError(t, sender.CloseWhenDead(50*time.Millisecond))
	const pieces = 16
	sent := make(chan error, 1)
	go func() {
		for range pieces {
			if err := sender.Send(Chunk{Stream: StreamSolution, Data: make([]byte, MaxChunk)}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	raw, err := here.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	// The kernel probes a window that stays closed after 0.2, 0.6 and 1.4 s, and would end the
	// connection then if there were a bound.
	await.Until(t, func() bool {
		i, err := tcpInfo(raw)
		return err != nil || i.Backoff >= 2
	}, "probes of a closed window")
	for range pieces {
		_, err := reader.Receive(KindChunk)
		require.NoError(t, err)
	}
	require.NoError(t, <-sent)
}
