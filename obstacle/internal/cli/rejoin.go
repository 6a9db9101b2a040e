package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/peer"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// Times of a first process that may have been lost and started again.
const (
	askTime    = 3 * time.Second  // bounds one question to another process
	unsureTime = 10 * time.Second // for which hosts that do not answer are asked again
	fetchTime  = time.Minute      // for which the answer of a run is looked for
)

// rejoin takes part in a run that goes on without its first process, if this is the first process, started again. Then
// it prints and writes the answer. It reports whether there was such a run; if not, this process leads a new one.
func (a *app) rejoin(ctx context.Context, s *solveFlags) (done bool, err error) {
	q := s.request
	others, _ := q.otherTasks(q.Size)
	if len(others) == 0 || q.secretFile == "-" {
		return false, nil
	}
	id, err := a.identity(q.secretFile)
	if err != nil {
		return true, badInput(err)
	}
	leads := q.rendezvous
	for begin := time.Now(); ; {
		at, err := runsAt(ctx, id, others)
		if err != nil {
			return true, err
		}
		if len(at) == 0 {
			q.rendezvous = leads
			return false, nil
		}
		a.log.Info().Strs("addresses", at).Msg("a run goes on without the first process: joining it")
		q.rendezvous, q.within = at[0], placeTime
		if err = a.takePart(ctx, s); q.over.Load() && !q.answered.Load() {
			return true, a.fetchAnswer(ctx, s, id, others)
		}
		if !peer.Absent(err) || time.Since(begin) > q.joinTimeout {
			return true, err
		}
	}
}

// runsAt returns those of the addresses at which a process of the run listens. If none does, it asks again for some time
// at hosts that do not even refuse a connection: the network of this process may not be up yet.
func runsAt(ctx context.Context, id rendezvous.Identity, addresses []string) (found []string, err error) {
	ctx, stop := stoppable(ctx)
	defer stop()
	for begin := time.Now(); ; {
		answers := make(chan error)
		for _, address := range addresses {
			go func() { answers <- ask(ctx, id, address) }()
		}
		unsure := false
		for range addresses {
			at := <-answers
			if here, is := errors.AsType[*listensAt](at); is {
				found = append(found, here.address)
			}
			unsure = unsure || !decided(at)
		}
		switch {
		case ctx.Err() != nil:
			return nil, &exitError{ExitStopped, errors.New("interrupted before the run was found")}
		case len(found) > 0 || !unsure || time.Since(begin) > unsureTime:
			return found, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// listensAt is the error of ask for an address at which a process of the run listens.
type listensAt struct{ address string }

func (l *listensAt) Error() string { return l.address }

// ask looks for a process of the run at an address.
func ask(ctx context.Context, id rendezvous.Identity, address string) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	conn := rendezvous.NewConn(c, askTime)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	name, _ := os.Hostname()
	j := rendezvous.Join{Rank: -1, Host: name, Pid: os.Getpid(), Purpose: rendezvous.ToVote}
	if err := conn.Introduce(id, j); err != nil {
		return err
	}
	return &listensAt{address}
}

// decided reports whether the error of ask leaves no doubt: a process of the run listens there, or none does.
func decided(err error) bool {
	_, here := errors.AsType[*listensAt](err)
	unknown, is := errors.AsType[*net.DNSError](err)
	return here || is && unknown.IsNotFound || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, driver.ErrUnauthenticated)
}

// fetchAnswer fetches the answer of a run that is over from the process that leads it, and prints and writes it.
func (a *app) fetchAnswer(ctx context.Context, s *solveFlags, id rendezvous.Identity, others []string) error {
	for begin := time.Now(); ; {
		at, err := runsAt(ctx, id, others)
		if err != nil {
			return err
		}
		err = errors.New("it has ended")
		for _, address := range at {
			work, text, o, wrong := fetchFrom(ctx, id, address, func(launch.Progress) {})
			if wrong == nil {
				return a.answerInstead(s, &work, text, o)
			}
			if err = wrong; errors.Is(err, launch.ErrNoAnswer) {
				return failed(err)
			}
		}
		if len(at) == 0 || time.Since(begin) > fetchTime {
			return failed(fmt.Errorf("the run is over, and the process that led it has not sent its answer: %w", err))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
