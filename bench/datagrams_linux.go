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

// datagrams is a plain UDP socket, a system call for each message: the limit of the machine. A
// receiver polls for a while, as the driver of P2PSAP does, and then waits in the runtime's poller.
// It implements twonode.Lossy. The first 8 bytes of a datagram are the number that the calling end
// gave it; the other end answers with the number of the one that it received last.
type datagrams struct {
	conn  *net.UDPConn
	raw   syscall.RawConn
	to    unix.SockaddrInet4
	leads bool

	number   uint64 // of the last message: sent by the leading end, received by the other
	last     []byte // message that this end sent
	lost     int
	data     []byte // argument of the running call of send or receive, and its results
	got      int
	err      error
	send     func(fd uintptr) bool // bound once
	receive  func(fd uintptr) bool
	repeated bool
}

// A receiver polls for pollTime. A message without an answer is repeated every repeatAfter and
// given up after giveUpAfter; the end that does not lead waits for patience.
const (
	pollTime    = 20 * time.Microsecond
	repeatAfter = 50 * time.Millisecond
	giveUpAfter = time.Second
	patience    = 10 * time.Second
)

// helloBytes is the length of the datagrams by which the ends learn each other's address. Every
// message is longer.
const helloBytes = 1

func newDatagrams(e *endpoint, announce func(string)) (*datagrams, error) {
	d := &datagrams{leads: e.call != ""}
	addr, err := netip.ParseAddr(e.host)
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
	d.receive = func(fd uintptr) bool {
		d.got, _, d.err = unix.Recvfrom(int(fd), d.data, unix.MSG_DONTWAIT)
		return true
	}
	var peer netip.AddrPort
	if d.leads {
		if peer, err = netip.ParseAddrPort(e.call); err != nil {
			return nil, err
		}
		d.setPeer(peer)
		return d, d.hello()
	}
	announce(d.conn.LocalAddr().String())
	_, peer, err = d.conn.ReadFromUDPAddrPort(make([]byte, helloBytes))
	d.setPeer(peer)
	if err == nil {
		err = d.transmit(make([]byte, helloBytes))
	}
	return d, err
}

func (d *datagrams) setPeer(at netip.AddrPort) {
	d.to.Addr, d.to.Port = at.Addr().Unmap().As4(), int(at.Port())
}

// hello calls the other end until it answers.
func (d *datagrams) hello() error {
	for range patience / repeatAfter {
		if err := d.transmit(make([]byte, helloBytes)); err != nil {
			return err
		}
		n, err := d.wait(make([]byte, helloBytes), repeatAfter)
		if !errors.Is(err, os.ErrDeadlineExceeded) || n > 0 {
			return err
		}
	}
	return fmt.Errorf("the other end has not answered in %v", patience)
}

func (d *datagrams) transmit(data []byte) error {
	d.data = data
	if err := d.raw.Write(d.send); err != nil {
		return err
	}
	return d.err
}

// Send implements twonode.Channel.
func (d *datagrams) Send(data []byte) error {
	if d.leads {
		d.number++
	}
	d.last = append(d.last[:0], data...)
	binary.BigEndian.PutUint64(d.last, d.number)
	return d.transmit(d.last)
}

// Lost implements twonode.Lossy.
func (d *datagrams) Lost() int {
	n := d.lost
	d.lost = 0
	return n
}

// Flush implements twonode.Channel.
func (d *datagrams) Flush() error { return nil }

// Recv implements twonode.Channel.
func (d *datagrams) Recv(buf []byte) error {
	limit := patience
	if d.leads {
		limit = repeatAfter
	}
	d.repeated = false
	for waited := time.Duration(0); ; {
		n, err := d.wait(buf, limit)
		switch {
		case !d.leads && err != nil:
			return err
		case errors.Is(err, os.ErrDeadlineExceeded):
			d.repeated = true
			if waited += repeatAfter; waited >= giveUpAfter {
				d.lost++
				return nil
			}
			if err := d.transmit(d.last); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			if expected, err := d.check(buf, n); expected || err != nil {
				return err
			}
		}
	}
}

// check reports whether a datagram of n bytes is the expected one, and not an older one again.
func (d *datagrams) check(buf []byte, n int) (bool, error) {
	if n == helloBytes {
		if d.leads {
			return false, nil
		}
		return false, d.transmit(make([]byte, helloBytes)) // the answer to its first hello was lost
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
func (d *datagrams) wait(buf []byte, limit time.Duration) (int, error) {
	d.data = buf
	for begin := time.Now(); time.Since(begin) < pollTime; {
		if err := d.raw.Read(d.receive); err != nil {
			return 0, err
		}
		if d.err != unix.EAGAIN {
			return d.got, d.err
		}
	}
	if err := d.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	n, _, err := d.conn.ReadFromUDPAddrPort(buf)
	return n, errors.Join(err, d.conn.SetReadDeadline(time.Time{})) // an expired deadline would fail the next poll
}
