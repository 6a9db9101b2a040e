package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// patience is the number of attempts to find a run after which a peer mentions it.
const patience = 50

// joinUnlessLeaving joins the run, unless the process is asked to leave before it has a part. A guest joins all the same:
// a recovery waits for it, and the process leaves later.
func joinUnlessLeaving(ctx context.Context, o *Options) (*rendezvous.Conn, rendezvous.Welcome, error) {
	if o.guest {
		return join(ctx, o)
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-o.Leave:
			cancel()
		case <-within.Done():
		}
	}()
	conn, w, err := join(within, o)
	spare := o.rejoins || errors.Is(err, rendezvous.ErrSpareLeft)
	if err != nil && spare && closed(o.Leave) {
		err = errLeft
	}
	return conn, w, err
}

// errLeft is the error of a peer that was asked to leave before it took part.
var errLeft = errors.New("this peer was asked to leave before it had a part")

// join joins the run. It retries until DialTime has passed if the rendezvous does not listen yet or does not answer.
func join(ctx context.Context, o *Options) (*rendezvous.Conn, rendezvous.Welcome, error) {
	name, _ := os.Hostname()
	j := rendezvous.Join{Rank: o.Rank, OrSpare: o.OrSpare, Host: name, Pid: os.Getpid(),
		Addresses: driver.Addresses(o.Listen)}
	if o.Expect != nil {
		j.Problem, j.ProblemHash = o.Expect.Name(), fmt.Sprintf("%x", o.Expect.Fingerprint())
	}
	deadline, given := time.Now().Add(o.DialTime), o.Others
	var left error // the run has lost its leader while this was a spare peer
	keepers := 0
	for try := 0; ; try++ {
		address := append([]string{o.Rendezvous}, o.Others...)[try%(1+len(o.Others))]
		o.waiting.set("a launcher at " + address)
		conn, w, err := attempt(ctx, o, address, j)
		if errors.Is(err, rendezvous.ErrSpareLeft) {
			left, keepers, deadline = err, len(w.Keepers), time.Now().Add(rejoinTime)
			if keepers > 1 {
				o.Others = slices.Concat(w.Keepers, given)
			}
		}
		// Its host answers, and the launcher is gone.
		over := o.rejoins && errors.Is(err, syscall.ECONNREFUSED) && len(o.Others) == 0
		if err == nil {
			o.Rendezvous = address
		}
		if err == nil || !(retryable(err) || o.OrSpare && Absent(err)) || over || ctx.Err() != nil ||
			time.Now().After(deadline) {
			if err != nil && left != nil && Absent(err) && ctx.Err() == nil {
				err = lostRun(left, keepers)
			}
			return conn, w, err
		}
		if o.OrSpare && try == patience {
			o.Log.Warn().Err(err).Dur("limit", o.DialTime).Msg("the run is not there yet: trying again")
		}
		if errors.Is(err, rendezvous.ErrNoAnswer) {
			o.Log.Info().Err(err).Msg("retrying the rendezvous")
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, w, ctx.Err()
		}
	}
}

// ErrRunLost is wrapped by errors of Run of a spare peer whose run nobody leads any more.
var ErrRunLost = errors.New("the run is lost")

// lostRun returns the error of a spare peer that has searched for another process that leads the run.
func lostRun(left error, keepers int) error {
	if keepers > 1 {
		return fmt.Errorf("%w: %v, and none of its %d keepers leads it", ErrRunLost, left, keepers)
	}
	return fmt.Errorf("%w: %v, and it had no keepers that could lead it instead", ErrRunLost, left)
}

// attempt tries once to join the run.
func attempt(
	ctx context.Context, o *Options, address string, j rendezvous.Join,
) (*rendezvous.Conn, rendezvous.Welcome, error) {
	c, err := rendezvous.Dial(ctx, rendezvous.HandshakeTime, address)
	if err != nil {
		return nil, rendezvous.Welcome{}, fmt.Errorf(
			"no rendezvous at %s: %w (is obstacle solve --rendezvous running there?)", address, err)
	}
	o.waiting.set("a part of the run at " + address)
	conn := rendezvous.NewConn(c, 0) // the launcher may be stopped for any time
	conn.OnSpare = func() { o.Log.Info().Str("launcher", address).Msg("waiting as a spare peer") }
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	w, err := conn.Join(o.Identity, j, o.WaitTime)
	if stop(); err != nil {
		conn.Close()
	}
	return conn, w, err
}

// retryable reports whether another attempt may succeed: nothing listens there yet, the network is not up, or the
// launcher did not answer.
func retryable(err error) bool {
	if d, is := errors.AsType[*net.OpError](err); is && d.Op == "dial" && d.Timeout() {
		return true // by the limit of a dial, before that of the kernel
	}
	return slices.ContainsFunc([]error{
		syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT, rendezvous.ErrNoAnswer,
		rendezvous.ErrNoLeader,
	}, func(e error) bool { return errors.Is(err, e) })
}

// Absent reports whether an error of Run states that the run was not found at its address, where it may be later:
// nothing listens there, the name of the host is not known yet, or another run is there.
func Absent(err error) bool {
	_, unknown := errors.AsType[*net.DNSError](err)
	return err != nil && (unknown || retryable(err) || errors.Is(err, driver.ErrUnauthenticated) ||
		errors.Is(err, os.ErrDeadlineExceeded))
}
