package driver

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// unacknowledged returns why nothing has passed over a connection for some time, by what its kernel knows; "": it does not.
func unacknowledged(c net.Conn) string {
	t, is := c.(*net.TCPConn)
	if !is {
		return ""
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return ""
	}
	var info *unix.TCPInfo
	closed := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if closed != nil || err != nil {
		return ""
	}
	return stuck(info)
}

// stuckRetransmits is the least number of retransmissions in a row, each after twice the time of the one before, that show a
// fault of the path.
const stuckRetransmits = 3

// headerBytes are those of IPv6 and TCP.
const headerBytes = 60

func stuck(i *unix.TCPInfo) string {
	if i.Unacked == 0 || i.Retransmits < stuckRetransmits {
		return ""
	}
	return fmt.Sprintf("the connection was opened, and then the other host has acknowledged nothing, though data was sent %d times again: "+
		"the path carries nothing any more, or drops packets as long as these, of up to %d bytes (it has to carry 1,280)",
		i.Retransmits, i.Snd_mss+headerBytes)
}
