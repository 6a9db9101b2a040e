//go:build linux

package flow

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// PlainTCP takes from a host's TCP what RFC 5681 and 6582 do not have: SACK, RACK and
// tail loss probes. It holds for connections made afterwards.
func PlainTCP(h *netlab.Host) error {
	return settings(h, "net.ipv4.tcp_sack", "0", "net.ipv4.tcp_recovery", "0", "net.ipv4.tcp_early_retrans", "0")
}

// DefaultTCP puts them back.
func DefaultTCP(h *netlab.Host) error {
	return settings(h, "net.ipv4.tcp_sack", "1", "net.ipv4.tcp_recovery", "1", "net.ipv4.tcp_early_retrans", "3")
}

func settings(h *netlab.Host, pairs ...string) error {
	// What one connection has learnt of the path the next shall not know.
	pairs = append(pairs, "net.ipv4.tcp_no_metrics_save", "1")
	for i := 0; i < len(pairs); i += 2 {
		if err := h.Sysctl(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// congested sets a socket's congestion control: never the host's default.
func (e *end) congested(_, _ string, raw syscall.RawConn) error {
	var err error
	return errors.Join(raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, e.Congestion)
	}), err)
}

func (e *end) receiveTCP() (c Counts, err error) {
	config := net.ListenConfig{Control: e.congested}
	l, err := config.Listen(e.ctx, "tcp", net.JoinHostPort(e.Listen, "0"))
	if err != nil {
		return c, err
	}
	defer l.Close()
	e.say(report{Ready: true, Port: l.Addr().(*net.TCPAddr).Port})
	conn, err := l.Accept()
	if err != nil {
		return c, err
	}
	defer conn.Close()
	e.say(report{Open: true})
	go func() { // until the order to stop
		<-e.ctx.Done()
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	}()
	buf := make([]byte, 256<<10)
	for {
		n, err := conn.Read(buf)
		e.received.Add(uint64(n))
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ECONNRESET):
			c.Bytes = e.received.Load()
			return c, e.look(conn, &c)
		case err != nil:
			return c, err
		}
	}
}

func (e *end) sendTCP() (c Counts, err error) {
	d := net.Dialer{Control: e.congested, Timeout: patience}
	conn, err := d.DialContext(e.ctx, "tcp", net.JoinHostPort(e.Peer, fmt.Sprint(e.Port)))
	if err != nil {
		return c, err
	}
	defer conn.Close()
	e.say(report{Open: true})
	go func() {
		<-e.ctx.Done()
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
	}()
	buf := make([]byte, 64<<10)
	for _, more := e.next(); more; {
		n, err := conn.Write(buf)
		c.Bytes += uint64(n)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return c, err
		}
	}
	err = e.look(conn, &c)
	return c, errors.Join(err, conn.(*net.TCPConn).SetLinger(0)) // what is not sent is not to be
}

// look asks the kernel about the connection.
func (e *end) look(conn net.Conn, c *Counts) error {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			failed = err
			return
		}
		c.TCP.Retransmitted, c.TCP.RTTMicros, c.TCP.WindowSegments, c.TCP.Threshold = i.Total_retrans, i.Rtt, i.Snd_cwnd, i.Snd_ssthresh
		c.TCP.Congestion, failed = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	return errors.Join(err, failed)
}
