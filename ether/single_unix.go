//go:build unix

package ether

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

const errInUse = unix.EADDRINUSE

var transientErrors = [...]error{unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EINTR, unix.ENOBUFS, unix.ENOMEM}

// unixSockaddr is a destination as x/sys wants it.
type unixSockaddr struct{ to unix.Sockaddr }

func unixSockaddrOf(a netip.AddrPort, scope uint32, inet4 bool) unixSockaddr {
	if inet4 {
		return unixSockaddr{&unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}}
	}
	return unixSockaddr{&unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: scope}}
}

// singleSend calls sendto without waiting.
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

// try sends one datagram: full if there is no room now, lost if the network
// refused it, err if the socket is gone.
func (s *singleSend) try(p *peer, data []byte) (full bool, lost, err error) {
	s.to, s.data = p.sockaddr.to, data
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

// awaitWritable returns when the socket has room, or is closed. The netpoller
// tells of changes only, so the state is asked for first.
func (l *Link) awaitRoom() {
	if l.batch != nil {
		l.batch.awaitRoom()
		return
	}
	// The error can only be that the socket was closed.
	_ = l.raw.Write(func(fd uintptr) bool {
		p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}
