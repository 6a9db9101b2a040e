package driver

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// dialStagger is the time after which the next address of a process is dialled, too.
const dialStagger = 50 * time.Millisecond

// DialAny connects to a process over TCP at the first of its addresses that answers. It dials the next one when that has
// taken 50 ms: of several cables to the process, one may carry nothing. The error states a refusal only if every address
// refuses.
func DialAny(ctx context.Context, most time.Duration, addresses []string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	type answer struct {
		conn net.Conn
		err  error
	}
	answers := make(chan answer)
	for i, to := range addresses {
		go func() {
			select {
			case <-time.After(time.Duration(i) * dialStagger):
			case <-ctx.Done():
			}
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", to)
			answers <- answer{conn, err}
		}()
	}
	var found net.Conn
	failed := errors.New("driver: no address to dial")
	for i := range addresses {
		a := <-answers
		switch {
		case a.err == nil && found == nil:
			found = a.conn
			cancel()
		case a.err == nil:
			_ = a.conn.Close()
		case i == 0 || errors.Is(failed, syscall.ECONNREFUSED):
			failed = a.err
		}
	}
	if found != nil {
		return found, nil
	}
	return nil, failed
}
