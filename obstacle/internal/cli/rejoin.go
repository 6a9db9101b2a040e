package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
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
	id, err := a.identity(ctx, q.secretFile)
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

// runsAt returns those of the addresses at which a process of the run listens. If none does, it asks again for some
// time at hosts that do not even refuse a connection: the network of this process may not be up yet.
func runsAt(ctx context.Context, id rendezvous.Identity, addresses []string) (found []string, err error) {
	ctx, stop := stoppable(ctx)
	defer stop()
	for begin := time.Now(); ; {
		errs := make([]error, len(addresses))
		var asked sync.WaitGroup
		for i, address := range addresses {
			asked.Go(func() { errs[i] = ask(ctx, id, address) })
		}
		asked.Wait()
		unsure := false
		for i, err := range errs {
			if err == nil {
				found = append(found, addresses[i])
			}
			unsure = unsure || !decided(err)
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

// ask returns nil if a process of the run listens at an address.
func ask(ctx context.Context, id rendezvous.Identity, address string) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, err := rendezvous.Dial(ctx, askTime, address)
	if err != nil {
		return err
	}
	conn := rendezvous.NewConn(c, askTime)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	name, _ := os.Hostname()
	return conn.Introduce(id, rendezvous.Join{Rank: -1, Host: name, Pid: os.Getpid(), Purpose: rendezvous.ToVote})
}

// decided reports whether the error of ask leaves no doubt: a process of the run listens there, or none does.
func decided(err error) bool {
	unknown, is := errors.AsType[*net.DNSError](err)
	return err == nil || is && unknown.IsNotFound || errors.Is(err, syscall.ECONNREFUSED) ||
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
			work, text, o, wrong := fetchFrom(ctx, id, address, &launch.Status{}, func(rendezvous.View) {})
			if wrong == nil {
				return a.answerInstead(ctx, s, &work, text, o)
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
