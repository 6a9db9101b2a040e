package rendezvous

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the interval between two polls of a connection.
const (
	minPoll = 10 * time.Millisecond
	maxPoll = time.Second
)

// closeWhenDead closes a connection after the kernel of the other host has acknowledged nothing for the given time. A
// stopped process there is no reason to close, since its kernel still answers. TCP_USER_TIMEOUT (RFC 5482) cannot be
// used: it also ends a connection whose window stays closed.
func closeWhenDead(c net.Conn, after time.Duration) error {
	t, is := c.(*net.TCPConn)
	if !is {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	if _, err := tcpInfo(raw); err != nil {
		return err
	}
	go func() {
		poll := time.NewTicker(min(max(after/10, minPoll), maxPoll))
		defer poll.Stop()
		for range poll.C {
			i, err := tcpInfo(raw)
			if err != nil {
				return // the connection was closed
			}
			if isDead(i, after) {
				_ = t.Close()
				return
			}
		}
	}()
	return nil
}

// hostSilent returns the time since the kernel of the other host has acknowledged or sent something, without two round trips.
func hostSilent(c net.Conn) (time.Duration, bool) {
	t, is := c.(*net.TCPConn)
	if !is {
		return 0, false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0, false
	}
	i, err := tcpInfo(raw)
	if err != nil {
		return 0, false
	}
	silent := time.Duration(min(i.Last_ack_recv, i.Last_data_recv)) * time.Millisecond
	return max(0, silent-2*time.Duration(i.Min_rtt)*time.Microsecond), true
}

// Consecutive unanswered transmissions after which a connection may be dead: of data, and of probes of a closed window.
const (
	deadRetransmits = 2
	deadProbes      = 4
)

// isDead reports whether the last data or probes are unanswered and nothing was received for the given time.
func isDead(i *unix.TCPInfo, after time.Duration) bool {
	if time.Duration(i.Last_ack_recv)*time.Millisecond < after {
		return false
	}
	data := i.Unacked > 0 && i.Retransmits >= deadRetransmits && i.Last_ack_recv > i.Last_data_sent
	return data || i.Probes >= deadProbes
}

func tcpInfo(raw syscall.RawConn) (info *unix.TCPInfo, err error) {
	closed := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if closed != nil {
		return nil, closed
	}
	return info, err
}

// owing returns for how long the other host has acknowledged nothing, 0 if it owes no acknowledgement, and the shortest
// round trip.
func owing(c net.Conn) (quiet, rtt time.Duration) {
	t, is := c.(*net.TCPConn)
	if !is {
		return 0, 0
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0, 0
	}
	i, err := tcpInfo(raw)
	if err != nil || i.Unacked == 0 && i.Notsent_bytes == 0 { // nothing is sent while the interface is down
		return 0, 0
	}
	quiet = time.Duration(min(i.Last_ack_recv, i.Last_data_recv)) * time.Millisecond
	return quiet, time.Duration(i.Min_rtt) * time.Microsecond // the smoothed one holds delayed acknowledgements
}
