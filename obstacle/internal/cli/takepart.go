package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/engine"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/meet"
	"github.com/p2pdc/p2pdc/obstacle/internal/peer"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// placeTime bounds the attempts of a process to join at one place, before it reads the file again.
const placeTime = 2 * time.Second

// takePart takes part in the run as a peer.
func (a *app) takePart(ctx context.Context, s *solveFlags) error {
	q := s.request
	if q.checkNetworks() != nil || q.checkBounds() != nil || q.checkParts() != nil {
		return &exitError{code: ExitUsage} // the first process says why
	}
	leave := make(chan struct{})
	ctx, stop := a.interruptsOr(ctx, leave)
	defer stop()
	o := peer.Options{
		Rank: q.Rank, OrSpare: true, WaitTime: q.joinTimeout, Rail: q.host, OwnProcess: true, Catalog: a.catalog,
		Interrupt: a.interrupt, Leave: leave, Log: a.log, Continue: a.continueSaver,
	}
	o.Led = func(run *rendezvous.Spec, problem []byte, out *launch.Outcome) error {
		q.answered.Store(true)
		return a.answerInstead(ctx, s, run, problem, out)
	}
	o.Over = func(solved bool) { q.over.Store(true); q.solved.Store(solved) }
	var err error
	if q.OneHost {
		if o.Listen, err = driver.Loopback(); err != nil {
			return failed(err)
		}
	}
	if q.meeting == "" {
		secret, wrong := a.secret(ctx, q.secretFile)
		if wrong != nil {
			return badInput(wrong)
		}
		if o.Identity, err = a.secretIdentity(secret); err != nil {
			return badInput(err)
		}
		o.Rendezvous, o.DialTime = q.rendezvous, cmp.Or(q.within, q.joinTimeout)
		if o.Others, o.VotePort = q.otherTasks(maxOthers); o.VotePort > 0 {
			o.Hold = q.joinTimeout // for the first process, which is started again
		}
		err = a.traced(q, &o, func() error { return peer.Run(ctx, o) })
	} else {
		err = a.traced(q, &o, func() error { return a.joinByFile(ctx, q, o) })
	}
	if e, is := errors.AsType[*exitError](err); is {
		return e
	}
	if errors.Is(err, peer.ErrRunLost) {
		return failed(fmt.Errorf("run %s: %w: start it again%s", cmp.Or(q.Job, q.rendezvous), err, s.checkpoints.hint()))
	}
	if _, reported := errors.AsType[*peer.ReportedError](err); reported && !errors.Is(err, peer.ErrCutOff) {
		return &exitError{code: ExitFailed} // the first process says why
	}
	if errors.Is(err, peer.ErrCutOff) || errors.Is(err, peer.ErrInterrupted) {
		return &exitError{ExitStopped, err}
	}
	if err == nil && q.Engine == engine.Kubernetes && !q.solved.Load() && !q.answered.Load() {
		return &exitError{ExitStopped, errors.New("this process has ended before the run was solved")} // start it again
	}
	return failed(err)
}

// traced runs a peer and records what it does, with --trace.
func (a *app) traced(q *request, o *peer.Options, run func() error) error {
	if q.trace.file == "" {
		return run()
	}
	return q.trace.recorded(traceName(q.trace.file, q.Rank), o, a.log, run)
}

// joinByFile reads the address of the run from the file of the job and takes part. If nothing answers at that address,
// the file may be left over from a dead run, which the first process replaces. joinByFile then reads the file again.
func (a *app) joinByFile(ctx context.Context, q *request, o peer.Options) error {
	within, cancel := context.WithTimeoutCause(ctx, q.joinTimeout,
		fmt.Errorf("not within %v (--join-timeout)", q.joinTimeout))
	defer cancel()
	for {
		p, err := meet.Find(within, q.meeting, q.Job)
		switch {
		case err != nil && ctx.Err() != nil:
			return &exitError{ExitStopped, errors.New("interrupted before the run was found")}
		case err != nil && within.Err() == nil:
			return badInput(err)
		case err != nil:
			return failed(err)
		case p.Refused != "":
			return &exitError{code: ExitUsage} // the first process says why
		}
		if o.Identity, err = a.placeIdentity(p); err != nil {
			return badInput(err)
		}
		o.Rendezvous, o.Others, o.DialTime = p.Addresses[0], p.Addresses[1:], placeTime
		err = peer.Run(ctx, o)
		if !peer.Absent(err) || within.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// pause is the time between two attempts.
const pause = 100 * time.Millisecond

// maxOthers bounds the processes that are asked who leads the run.
const maxOthers = 8

// otherTasks returns the addresses of at most so many other processes, which may lead the run instead of the first, and
// the port at which this one can be asked. Only Kubernetes starts a lost process again, under the same name.
func (q *request) otherTasks(most int) (addresses []string, port int) {
	_, p, err := net.SplitHostPort(q.rendezvous)
	if q.Engine != engine.Kubernetes || err != nil || q.Leader == "" {
		return nil, 0
	}
	name := cmp.Or(q.named, q.Leader)
	for i := 1; i < q.Size && len(addresses) < most; i++ {
		other := strings.Replace(name, q.Leader, strings.TrimSuffix(q.Leader, "0")+strconv.Itoa(i), 1)
		if i != q.Rank && other != name {
			addresses = append(addresses, net.JoinHostPort(other, p))
		}
	}
	return addresses, portNumber(p)
}

// answerInstead prints and writes the answer of a run that this process has led after the loss of the first one.
func (a *app) answerInstead(
	ctx context.Context, s *solveFlags, run *rendezvous.Spec, problem []byte, o *launch.Outcome,
) error {
	if o.U == nil {
		return failed(errors.New(o.Failure))
	}
	q := *s.request
	q.saver = nil
	w, err := q.attached(run, problem, o)
	if err != nil {
		return failed(err)
	}
	places, err := probePoints(s.probes, w.problem)
	if err != nil {
		return badInput(err)
	}
	steps, err := newRecorder(w, nil, 1, 0)
	if err != nil {
		return err
	}
	out := slices.Clone(s.out)
	for i, name := range out {
		if path, err := filepath.Abs(name); err == nil {
			out[i] = path
		}
	}
	q.outputHost, _ = os.Hostname()
	return a.answer(ctx, &q, w, o, steps, out, places)
}
