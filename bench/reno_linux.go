package main

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// reno sets the congestion control of a socket, so that the comparison does not depend on the
// default of the kernel.
func reno(_, _ string, c syscall.RawConn) error {
	var inner error
	err := c.Control(func(fd uintptr) {
		inner = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
	if err == nil && inner != nil {
		err = fmt.Errorf("congestion control reno: %w", inner)
	}
	return err
}
