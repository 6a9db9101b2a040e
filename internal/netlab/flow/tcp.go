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

// PlainTCP disables the features of a host's TCP that RFC 5681 and 6582 do not have: SACK, RACK and tail
// loss probes. It applies to new connections.
func PlainTCP(h *netlab.Host) error {
	return settings(h, "net.ipv4.tcp_sack", "0", "net.ipv4.tcp_recovery", "0", "net.ipv4.tcp_early_retrans", "0")
}

// DefaultTCP enables them again.
func DefaultTCP(h *netlab.Host) error {
	return settings(h, "net.ipv4.tcp_sack", "1", "net.ipv4.tcp_recovery", "1", "net.ipv4.tcp_early_retrans", "3")
}

func settings(h *netlab.Host, pairs ...string) error {
	// A connection must not reuse the path metrics of an earlier one.
	pairs = append(pairs, "net.ipv4.tcp_no_metrics_save", "1")
	for i := 0; i < len(pairs); i += 2 {
		if err := h.Sysctl(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// setCongestion sets the congestion control of a socket explicitly.
func (e *end) setCongestion(_, _ string, raw syscall.RawConn) error {
	var err error
	return errors.Join(raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, e.Congestion)
	}), err)
}

func (e *end) receiveTCP() (c Counts, err error) {
	config := net.ListenConfig{Control: e.setCongestion}
	l, err := config.Listen(e.ctx, "tcp", net.JoinHostPort(e.Listen, "0"))
	if err != nil {
		return c, err
	}
	defer l.Close()
	e.send(report{Ready: true, Port: l.Addr().(*net.TCPAddr).Port})
	conn, err := l.Accept()
	if err != nil {
		return c, err
	}
	defer conn.Close()
	e.send(report{Open: true})
	go func() { // until the command to stop
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
			return c, e.readTCPInfo(conn, &c)
		case err != nil:
			return c, err
		}
	}
}

func (e *end) sendTCP() (c Counts, err error) {
	d := net.Dialer{Control: e.setCongestion, Timeout: waitLimit}
	conn, err := d.DialContext(e.ctx, "tcp", net.JoinHostPort(e.Peer, fmt.Sprint(e.Port)))
	if err != nil {
		return c, err
	}
	defer conn.Close()
	e.send(report{Open: true})
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
	err = e.readTCPInfo(conn, &c)
	return c, errors.Join(err, conn.(*net.TCPConn).SetLinger(0)) // discard unsent data
}

// readTCPInfo reads the kernel's counters of the connection.
func (e *end) readTCPInfo(conn net.Conn, c *Counts) error {
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
		c.TCP.RTTMicros = i.Rtt
		c.TCP.Congestion, failed = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	return errors.Join(err, failed)
}
