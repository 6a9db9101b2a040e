//go:build !unix

package ether

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// errInUse is WSAEADDRINUSE.
const errInUse = syscall.Errno(10048)

// transientErrors holds WSAECONNRESET: an earlier datagram found no socket.
var transientErrors = [...]error{syscall.Errno(10054)}

type unixSockaddr struct{}

func unixSockaddrOf(netip.AddrPort, uint32, bool) unixSockaddr { return unixSockaddr{} }

// singleSend writes through package net, which may block while the send queue is full.
type singleSend struct{ l *Link }

func (s *singleSend) init(l *Link) { s.l = l }

func (s *singleSend) try(d *destination, data []byte) (full bool, lost, err error) {
	_, err = s.l.conn.WriteToUDPAddrPort(data, d.to)
	if errors.Is(err, net.ErrClosed) {
		return false, nil, err
	}
	return false, err, nil
}

func (l *Link) awaitRoom() {}
