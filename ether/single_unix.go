//go:build unix

package ether

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

const errInUse = unix.EADDRINUSE

var transientErrors = [...]error{
	unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EINTR, unix.ENOBUFS, unix.ENOMEM,
}

// unixSockaddr is a destination for sendto.
type unixSockaddr struct{ to unix.Sockaddr }

func unixSockaddrOf(a netip.AddrPort, scope uint32, inet4 bool) unixSockaddr {
	if inet4 {
		return unixSockaddr{&unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}}
	}
	return unixSockaddr{&unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: scope}}
}

// singleSend calls sendto with MSG_DONTWAIT.
type singleSend struct {
	l    *Link
	call func(fd uintptr) bool
	to   unix.Sockaddr
	data []byte
	err  error
}

func (s *singleSend) init(l *Link) {
	s.l = l
	s.call = func(fd uintptr) bool {
		for {
			s.err = unix.Sendto(int(fd), s.data, unix.MSG_DONTWAIT, s.to)
			if s.err != unix.EINTR {
				return true
			}
		}
	}
}

// try sends one datagram. It returns full if the send queue has no room now, lost if the
// network refused the datagram, and err if the socket is closed.
func (s *singleSend) try(d *destination, data []byte) (full bool, lost, err error) {
	s.to, s.data = d.sockaddr.to, data
	err = s.l.raw.Write(s.call)
	s.data = nil
	switch {
	case err != nil:
		return false, nil, err
	case s.err == unix.EAGAIN:
		return true, nil, nil
	}
	return false, s.err, nil
}

// awaitRoom returns when the send queue has room or the socket is closed. The network
// poller reports only changes, so the attempt asks for the present state.
func (l *Link) awaitRoom() {
	if l.batch != nil {
		l.batch.awaitRoom()
		return
	}
	_ = l.raw.Write(sendRoom) // the only possible error is that the socket was closed
}

// sendRoom reports whether the send queue has room, or an error to find.
func sendRoom(fd uintptr) bool {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(p[:], 0)
	return n > 0 || err != nil && err != unix.EINTR
}
