package main

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// reno gives a socket that congestion control: the kernel's default may be another,
// and then the comparison would be with that one.
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
