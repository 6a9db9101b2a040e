package rendezvous

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// endWhenCut makes the kernel give a connection up when what was sent has not
// been acknowledged for so long: by the other host's kernel, not its process, so a
// stopped process is not taken for a pulled wire (RFC 5482).
func endWhenCut(c net.Conn, after time.Duration) error {
	t, is := c.(*net.TCPConn)
	if !is {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
