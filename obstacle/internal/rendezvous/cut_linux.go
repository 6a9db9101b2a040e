package rendezvous

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the time between two looks at a connection.
const (
	cutLookLeast = 10 * time.Millisecond
	cutLookMost  = time.Second
)

// endWhenCut closes a connection when the other host's kernel has acknowledged nothing of what
// was sent for so long, until the connection is closed. A process there that stands still and
// reads nothing is no reason: its kernel answers all the same. So TCP_USER_TIMEOUT (RFC 5482)
// does not serve; it also ends a connection whose window stays closed.
func endWhenCut(c net.Conn, after time.Duration) error {
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
		look := time.NewTicker(min(max(after/10, cutLookLeast), cutLookMost))
		defer look.Stop()
		for range look.C {
			i, err := tcpInfo(raw)
			if err != nil {
				return // it is closed
			}
			if isCut(i, after) {
				_ = t.Close()
				return
			}
		}
	}()
	return nil
}

// Unanswered transmissions in a row from which a connection may be called cut: of data, and of
// probes of a closed window.
const (
	cutRetransmits = 2
	cutProbes      = 4
)

// isCut reports whether what was sent last has not been answered, and nothing else for so long.
func isCut(i *unix.TCPInfo, after time.Duration) bool {
	if time.Duration(i.Last_ack_recv)*time.Millisecond < after {
		return false
	}
	data := i.Unacked > 0 && i.Retransmits >= cutRetransmits && i.Last_ack_recv > i.Last_data_sent
	return data || i.Probes >= cutProbes
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
