package driver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// dialStagger is the time after which the next address of a process is dialled, too.
const dialStagger = 50 * time.Millisecond

// maxSegment is the segment size of control connections: with the headers of IPv6 a packet has 1220 bytes. Where long packets
// are dropped silently the kernel would send them again for ever, unless net.ipv4.tcp_mtu_probing is 2.
const maxSegment = 1160

// Dialer returns a dialer of control connections. They pass where long packets do not.
func Dialer(most time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: most, Control: shortSegments}
}

// DialAny connects to a process over TCP at the first of its addresses that answers. It dials the next one when all before
// have failed, or 50 ms later: of several cables to the process, one may carry nothing. The error states a refusal only if
// every address refuses; Refused returns those that do.
func DialAny(ctx context.Context, most time.Duration, addresses []string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	type answer struct {
		conn net.Conn
		err  error
		to   string
	}
	answers := make(chan answer, len(addresses))
	begun, ended := 0, 0
	begin := func() {
		go func(to string) {
			conn, err := Dialer(0).DialContext(ctx, "tcp", to)
			answers <- answer{conn, err, to}
		}(addresses[begun])
		begun++
	}
	defer func() { // those that are under way end now
		go func(left int) {
			for range left {
				if a := <-answers; a.err == nil {
					_ = a.conn.Close()
				}
			}
		}(begun - ended)
	}()
	failed, refused := errors.New("driver: no address to dial"), []string(nil)
	for ended < len(addresses) {
		if begun == ended {
			begin()
		}
		var next <-chan time.Time
		if begun < len(addresses) {
			next = time.After(dialStagger)
		}
		select {
		case <-next:
			begin()
		case a := <-answers:
			if ended++; a.err == nil {
				return a.conn, nil
			}
			if errors.Is(a.err, syscall.ECONNREFUSED) {
				refused = append(refused, a.to)
			}
			if ended == 1 || errors.Is(failed, syscall.ECONNREFUSED) {
				failed = a.err
			}
		}
	}
	return nil, &dialError{failed, refused}
}

// dialError is an error of DialAny.
type dialError struct {
	error
	refused []string
}

func (e *dialError) Unwrap() error { return e.error }

// Refused returns the addresses at which no process listens, by an error of DialAny: their hosts refuse connections.
func Refused(err error) []string {
	if e, is := errors.AsType[*dialError](err); is {
		return e.refused
	}
	return nil
}

// Neighbour reports whether an address with a port is that of another host in a network of this one.
func Neighbour(address string) bool {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return false
	}
	return neighbour(at.Addr().Unmap(), reachable(":0"))
}

func neighbour(at netip.Addr, own []netip.Prefix) bool {
	near := false
	for _, p := range own {
		if p.Addr() == at {
			return false
		}
		near = near || p.Masked().Contains(at)
	}
	return near
}
