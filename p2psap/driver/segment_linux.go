package driver

import (
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// shortSegments is a net.Dialer's Control. The option bounds the segments of both directions. Without it a connection works,
// too, so its errors are ignored.
func shortSegments(_, address string, c syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err != nil || to.Addr().Unmap().IsLoopback() {
		return nil
	}
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, maxSegment)
	})
}
