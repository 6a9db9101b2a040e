package main

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// datagrams are a plain UDP socket, a system call a message and nothing else: what the
// machine allows. Who waits looks for a while, as our own driver does, and then waits in
// the runtime's poller.
type datagrams struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	to   unix.SockaddrInet4

	data       []byte // of the call that runs
	got        int
	err        error
	send, look func(fd uintptr) bool // bound once
}

// floorLook is for how long it looks, floorPatience for how long it waits: nobody sends a
// lost one again.
const (
	floorLook     = 20 * time.Microsecond
	floorPatience = 10 * time.Second
)

func newDatagrams(host, call string, said func(string)) (*datagrams, error) {
	d := &datagrams{}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return nil, err
	}
	if d.conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0))); err != nil {
		return nil, err
	}
	if d.raw, err = d.conn.SyscallConn(); err != nil {
		return nil, err
	}
	d.send = func(fd uintptr) bool {
		d.err = unix.Sendto(int(fd), d.data, unix.MSG_DONTWAIT, &d.to)
		return true
	}
	d.look = func(fd uintptr) bool {
		d.got, _, d.err = unix.Recvfrom(int(fd), d.data, unix.MSG_DONTWAIT)
		return true
	}
	// The first datagram tells who calls.
	var peer netip.AddrPort
	if call != "" {
		if peer, err = netip.ParseAddrPort(call); err != nil {
			return nil, err
		}
		_, err = d.conn.WriteToUDPAddrPort([]byte{0}, peer)
	} else {
		said(d.conn.LocalAddr().String())
		_, peer, err = d.conn.ReadFromUDPAddrPort(make([]byte, 1))
	}
	d.to.Addr, d.to.Port = peer.Addr().Unmap().As4(), int(peer.Port())
	return d, err
}

// Send implements duel.Channel.
func (d *datagrams) Send(data []byte) error {
	d.data = data
	if err := d.raw.Write(d.send); err != nil {
		return err
	}
	return d.err
}

// Counts implements duel.Counter.
func (d *datagrams) Counts() {}

// Flush implements duel.Channel.
func (d *datagrams) Flush() error { return nil }

// Recv implements duel.Channel.
func (d *datagrams) Recv(buf []byte) error {
	d.data = buf
	for begin := time.Now(); time.Since(begin) < floorLook; {
		if err := d.raw.Read(d.look); err != nil {
			return err
		}
		if d.err != unix.EAGAIN {
			return d.whole(d.got, buf, d.err)
		}
	}
	if err := d.conn.SetReadDeadline(time.Now().Add(floorPatience)); err != nil {
		return err
	}
	n, _, err := d.conn.ReadFromUDPAddrPort(buf)
	return d.whole(n, buf, err)
}

func (d *datagrams) whole(n int, buf []byte, err error) error {
	if err == nil && n != len(buf) {
		return fmt.Errorf("a datagram of %d bytes instead of %d", n, len(buf))
	}
	return err
}
