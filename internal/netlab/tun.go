//go:build linux

package netlab

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tun is a TUN device. Packets that its host sends to the interface are read from it; packets written to it
// are received by the host.
type tun struct{ fd int }

// openTun makes a device in the network namespace of the thread.
func openTun(name string) (tun, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return tun{}, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return tun{}, fmt.Errorf("TUN interface %s: %w", name, err)
	}
	return tun{fd}, nil
}

// read reads a packet into buf and returns its length, or 0 if there is none. read and write do not block,
// so they use raw system calls (see poller).
func (t tun) read(buf []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(t.fd), uintptr(unsafe.Pointer(&buf[0])),
			uintptr(len(buf)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EAGAIN:
			return 0, nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

func (t tun) write(packet []byte) error {
	for {
		first := uintptr(unsafe.Pointer(&packet[0]))
		_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(t.fd), first, uintptr(len(packet)))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

func (t tun) close() { _ = unix.Close(t.fd) }
