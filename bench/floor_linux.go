package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// datagrams are a plain UDP socket, a system call a message and nothing else: what the
// machine allows. Who waits looks for a while, as our own driver does, and then waits in
// the runtime's poller. It implements duel.Lossy: the first 8 bytes of a datagram are the
// number that the end that calls has given it; the other end answers with the number of the
// one that it has taken last.
type datagrams struct {
	conn  *net.UDPConn
	raw   syscall.RawConn
	to    unix.SockaddrInet4
	leads bool

	number   uint64 // of the last message: sent where this end leads, taken where not
	last     []byte // that this end sent
	lost     int
	data     []byte // of the call that runs
	got      int
	err      error
	send     func(fd uintptr) bool // bound once
	look     func(fd uintptr) bool
	repeated bool
}

// floorLook is for how long it looks. A message that is not answered is repeated every
// floorRepeat, and given up after floorGiveUp; the end that does not lead waits floorPatience.
const (
	floorLook     = 20 * time.Microsecond
	floorRepeat   = 5 * time.Millisecond
	floorGiveUp   = time.Second
	floorPatience = 10 * time.Second
)

func newDatagrams(host, call string, said func(string)) (*datagrams, error) {
	d := &datagrams{leads: call != ""}
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
	var peer netip.AddrPort
	if d.leads {
		if peer, err = netip.ParseAddrPort(call); err != nil {
			return nil, err
		}
		d.peer(peer)
		return d, d.greet()
	}
	// The first datagram tells who calls.
	said(d.conn.LocalAddr().String())
	_, peer, err = d.conn.ReadFromUDPAddrPort(make([]byte, greeting))
	d.peer(peer)
	if err == nil {
		err = d.transmit(make([]byte, greeting))
	}
	return d, err
}

// greeting is the length of the datagrams by which the ends get to know each other; no
// message is as short.
const greeting = 1

func (d *datagrams) peer(at netip.AddrPort) {
	d.to.Addr, d.to.Port = at.Addr().Unmap().As4(), int(at.Port())
}

// greet calls the other end until it answers.
func (d *datagrams) greet() error {
	for range floorPatience / floorRepeat {
		if err := d.transmit(make([]byte, greeting)); err != nil {
			return err
		}
		n, err := d.wait(make([]byte, greeting), floorRepeat)
		if !errors.Is(err, os.ErrDeadlineExceeded) || n > 0 {
			return err
		}
	}
	return fmt.Errorf("the other end has not answered in %v", floorPatience)
}

func (d *datagrams) transmit(data []byte) error {
	d.data = data
	if err := d.raw.Write(d.send); err != nil {
		return err
	}
	return d.err
}

// Send implements duel.Channel.
func (d *datagrams) Send(data []byte) error {
	if d.leads {
		d.number++
	}
	d.last = append(d.last[:0], data...)
	binary.BigEndian.PutUint64(d.last, d.number)
	return d.transmit(d.last)
}

// Lost implements duel.Lossy.
func (d *datagrams) Lost() int {
	n := d.lost
	d.lost = 0
	return n
}

// Flush implements duel.Channel.
func (d *datagrams) Flush() error { return nil }

// Recv implements duel.Channel.
func (d *datagrams) Recv(buf []byte) error {
	patience := floorPatience
	if d.leads {
		patience = floorRepeat
	}
	d.repeated = false
	for waits := time.Duration(0); ; {
		n, err := d.wait(buf, patience)
		switch {
		case !d.leads && err != nil:
			return err
		case errors.Is(err, os.ErrDeadlineExceeded):
			d.repeated = true
			if waits += floorRepeat; waits >= floorGiveUp {
				d.lost++
				return nil
			}
			if err := d.transmit(d.last); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			if taken, err := d.take(buf, n); taken || err != nil {
				return err
			}
		}
	}
}

// take judges a datagram of n bytes: it may be the one that is waited for, or an older one
// that came again.
func (d *datagrams) take(buf []byte, n int) (bool, error) {
	if n == greeting {
		if d.leads {
			return false, nil
		}
		return false, d.transmit(make([]byte, greeting)) // it has not had the answer
	}
	if n != len(buf) {
		return false, fmt.Errorf("a datagram of %d bytes instead of %d", n, len(buf))
	}
	number := binary.BigEndian.Uint64(buf)
	switch {
	case d.leads && number != d.number, number < d.number:
		return false, nil
	case d.leads:
		if d.repeated {
			d.lost++
		}
		return true, nil
	case number == d.number: // the answer to it was lost
		return false, d.transmit(d.last)
	}
	d.lost += int(number - d.number - 1)
	d.number = number
	return true, nil
}

// wait receives a datagram.
func (d *datagrams) wait(buf []byte, patience time.Duration) (int, error) {
	d.data = buf
	for begin := time.Now(); time.Since(begin) < floorLook; {
		if err := d.raw.Read(d.look); err != nil {
			return 0, err
		}
		if d.err != unix.EAGAIN {
			return d.got, d.err
		}
	}
	if err := d.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	n, _, err := d.conn.ReadFromUDPAddrPort(buf)
	return n, errors.Join(err, d.conn.SetReadDeadline(time.Time{})) // or the next look fails
}
