package main

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/internal/netlab"
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

// vethHosts makes two hosts joined by Ethernet of MTU 1500.
func vethHosts() (h hosts, err error) {
	remove, err := measure.OpenLab(func(r netlab.Reporter) error {
		lab := netlab.New(r)
		a, b := lab.Host("called"), lab.Host("caller")
		x, y := lab.Join(a, b, netlab.Wire{})
		h = hosts{
			name: "veth, MTU 1500", address: [2]string{x.IPv4.String(), y.IPv4.String()},
			start: [2]func(func() error) error{a.Do, b.Do},
		}
		return nil
	})
	if err != nil {
		remove()
	}
	h.close = remove
	return h, err
}
