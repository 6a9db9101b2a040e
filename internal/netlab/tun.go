//go:build linux

package netlab

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// tun is a TUN device: packets that its host sends to the interface are read from
// it, and what is written to it the host receives.
type tun struct{ fd int }

// openTun makes a device in the network namespace that the thread is in.
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

// read takes a packet into buf; 0 when there is none.
func (t tun) read(buf []byte) (int, error) {
	for {
		n, err := unix.Read(t.fd, buf)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, unix.EAGAIN):
			return 0, nil
		case !errors.Is(err, unix.EINTR):
			return 0, err
		}
	}
}

func (t tun) write(packet []byte) error {
	for {
		if _, err := unix.Write(t.fd, packet); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (t tun) close() { _ = unix.Close(t.fd) }
