package ether

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// watchInterfaces calls f when the kernel reports the state of an interface: whether it is up and has a carrier. It
// watches the network namespace of the calling thread.
func watchInterfaces(f func(index int, carrier bool)) (io.Closer, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("ether: netlink: %w", err)
	}
	file := os.NewFile(uintptr(fd), "netlink")
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("ether: netlink: %w", err)
	}
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, err := file.Read(b)
			if err == nil {
				eachInterfaceState(b[:n], f)
			} else if !errors.Is(err, unix.ENOBUFS) { // of a lost message: probes show the state
				return
			}
		}
	}()
	return file, nil
}

// eachInterfaceState calls f for every interface in messages of the kernel (netlink(7), rtnetlink(7)).
func eachInterfaceState(b []byte, f func(index int, carrier bool)) {
	const head = unix.SizeofNlMsghdr
	for len(b) >= head {
		size := int(binary.NativeEndian.Uint32(b))
		if size < head || size > len(b) {
			return
		}
		kind := binary.NativeEndian.Uint16(b[4:])
		if (kind == unix.RTM_NEWLINK || kind == unix.RTM_DELLINK) && size >= head+unix.SizeofIfInfomsg {
			index, flags := binary.NativeEndian.Uint32(b[head+4:]), binary.NativeEndian.Uint32(b[head+8:])
			const works = unix.IFF_UP | unix.IFF_RUNNING
			f(int(index), kind == unix.RTM_NEWLINK && flags&works == works)
		}
		b = b[min((size+3)&^3, len(b)):]
	}
}
