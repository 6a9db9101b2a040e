package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// join joins the run. It retries until DialTime has passed if the rendezvous does not listen yet or does not answer.
func join(ctx context.Context, o *Options) (*rendezvous.Conn, rendezvous.Welcome, error) {
	name, _ := os.Hostname()
	j := rendezvous.Join{Rank: o.Rank, Host: name, Pid: os.Getpid(), Addresses: driver.Addresses(o.Listen)}
	if o.Expect != nil {
		j.Problem, j.ProblemHash = o.Expect.Name(), fmt.Sprintf("%x", o.Expect.Fingerprint())
	}
	deadline := time.Now().Add(o.DialTime)
	for {
		c, err := dial(ctx, o.Rendezvous, time.Until(deadline))
		if err != nil {
			return nil, rendezvous.Welcome{}, err
		}
		conn := rendezvous.NewConn(c, 0) // the launcher may be stopped for any time
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		w, err := conn.Join(o.Identity, j, o.WaitTime)
		stop()
		if err == nil {
			return conn, w, nil
		}
		conn.Close()
		if !errors.Is(err, rendezvous.ErrNoAnswer) || ctx.Err() != nil || time.Now().After(deadline) {
			return nil, rendezvous.Welcome{}, err
		}
		o.Log.Info().Err(err).Msg("retrying the rendezvous")
		if err := pause(ctx); err != nil {
			return nil, rendezvous.Welcome{}, err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryable reports whether an address may answer later: nothing listens there yet, or the network is not up.
func retryable(err error) bool {
	for _, e := range []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func dial(ctx context.Context, address string, limit time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: rendezvous.HandshakeTime}
	deadline := time.Now().Add(limit)
	for {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return c, nil
		}
		if !retryable(err) || time.Now().After(deadline) {
			return nil, fmt.Errorf("no rendezvous at %s: %w (is obstacle solve --rendezvous running there?)", address,
				err)
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}
