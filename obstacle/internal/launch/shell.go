package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/keep"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// shell executes the decisions of a run: it has the connections, the processes, the goroutines and the clock. The
// goroutine of Run owns it and the run. Other goroutines send it inputs, and write blocks to u, each in its own box.
type shell struct {
	*run
	ctx      context.Context // when it ends, processes are killed
	done     chan struct{}   // closed when inputs are no longer handled
	inputs   chan input
	called   time.Time // when Run was called
	zero     time.Time // the start of the relaxation, from which events have their times
	server   *rendezvous.Server
	keeper   atomic.Pointer[keep.Keeper] // nil: only this process can lead the run
	links    map[connection]*link
	children map[child]*offspring
	newest   struct {
		connection
		child
	}
	answers  []event   // to effects
	looks    []*member // about which the kernel is asked at the next tick
	retired  []*member // lost, or another process runs their parts
	final    final
	u        []float64
	owned    *answerBoxes                                        // of the blocks in u
	series   *series                                             // nil for a stationary problem
	alloc    sync.Once                                           // allocates u
	holes    []problem.Box                                       // boxes of u for which no block arrived
	observer func(now time.Duration, o *event, effects []effect) // of tests; nil: none
	solved   atomic.Bool                                         // the run has ended at its tolerance
}

// input is an event from another goroutine.
type input struct {
	event
	arrived *rendezvous.Conn // of a process that joins, with join
	join    rendezvous.Join
}

func newShell(p Plan, name string, key driver.Key) *shell {
	s := &shell{
		run: newRun(p, name, key[:]), called: time.Now(), inputs: make(chan input, 4*p.Partition.Peers()+16),
		done: make(chan struct{}), links: map[connection]*link{}, children: map[child]*offspring{},
	}
	s.self, s.owned = ownProcess(), &answerBoxes{ownership: newOwnership(&p)}
	if s.Status == nil {
		s.Status = &Status{} // for obstacle attach
	}
	s.final.init()
	return s
}

// Run runs the plan. It returns an error if the run could not start. Failures after the first relaxation are reported
// in the Outcome. When ctx ends, Run kills its children and returns at once.
func Run(ctx context.Context, p Plan) (*Outcome, error) {
	return newShell(p, rand.Text(), driver.NewKey()).solve(ctx)
}

func (s *shell) solve(ctx context.Context) (*Outcome, error) {
	var err error
	if s.series, err = newSeries(&s.Plan); err != nil {
		return nil, err
	}
	s.KeepEvery = s.keepEvery()
	s.Status.update(func(state *State) { state.Spec = s.Spec })
	children, cancel := context.WithCancel(ctx)
	s.ctx = children
	release := sync.OnceFunc(func() { s.shutdown(cancel) })
	defer release()
	defer exitOnPanic() // before release, which tells the peers that the run is over
	if err := s.gather(); err != nil {
		return nil, err
	}
	if s.monitor(); s.early() {
		return nil, s.notStarted()
	}
	o := s.outcome()
	release() // frees the memory of the peers before the launcher computes
	s.fill(ctx, o)
	s.publish(o)
	s.final.drain(ctx)
	return o, nil
}

// vector returns the assembled iterate. It is allocated when the first block arrives, after a peer of this process
// has freed its arrays.
func (s *shell) vector() []float64 {
	s.alloc.Do(func() {
		if s.u = s.Answer; s.u == nil {
			s.u = host.Array(s.Problem.Points())
		}
	})
	return s.u
}

// emit sends an input to the goroutine of Run and reports whether the run is still in progress.
func (s *shell) emit(o input) bool {
	select {
	case s.inputs <- o:
		return true
	case <-s.done:
		return false
	}
}

// notStarted returns the error of a run that ends before the start.
func (s *shell) notStarted() error {
	switch {
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case s.failure != nil:
		return errors.New(s.failure.text)
	}
	return ErrInterrupted
}

// monitor handles events until the end.
func (s *shell) monitor() {
	tick := time.NewTicker(s.tick)
	defer tick.Stop()
	interrupt := s.Interrupt
	for !s.finished() {
		var o event
		select {
		case i := <-s.inputs:
			o = s.eventOf(i)
		case <-tick.C:
			o.tick = s.observe()
		case <-interrupt:
			interrupt, o.asked = nil, toStop
		case <-s.ctx.Done():
			o.asked = toEnd
		}
		if !s.early() {
			s.now = time.Since(s.zero)
		}
		s.step(o)
	}
}

// observe returns what decisions at a tick need to know.
func (s *shell) observe() *tick {
	t := &tick{captures: s.capturable() && s.Captures.Due()}
	for _, m := range s.looks {
		if c := s.children[m.child]; c != nil {
			t.seen = append(t.seen, sight{of: m, stopped: c.Stopped()})
		} else if l := s.links[m.conn]; l != nil {
			silent, known := l.HostSilent()
			t.seen = append(t.seen, sight{of: m, silent: silent, known: known})
		}
	}
	s.looks = s.looks[:0]
	for _, m := range s.members {
		if l := s.links[m.conn]; l != nil && l.blocked.Load() {
			t.blocked = append(t.blocked, m)
		}
	}
	if s.samplable() {
		if want, due := s.Samples.Due(); due {
			t.sample = &want
		}
	}
	return t
}

// eventOf returns the event of an input.
func (s *shell) eventOf(o input) event {
	if o.arrived != nil {
		s.newest.connection++
		n := s.newest.connection
		s.links[n] = &link{Conn: o.arrived}
		o.joined = &caller{conn: n, join: o.join, remote: o.arrived.Remote()}
		if s.listens != "" {
			o.joined.here = reachedBy(o.arrived, s.listens)
		}
	}
	if m := o.of; m != nil && o.exited && s.links[m.conn] != nil {
		o.blocked = s.links[m.conn].blocked.Load()
	}
	return o.event
}

// reachedBy returns the address at which the other end of a connection reaches a server of this process that listens at
// the given address.
func reachedBy(c *rendezvous.Conn, listens string) string {
	host, port, _ := net.SplitHostPort(listens)
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host, _, _ = net.SplitHostPort(c.Local())
	}
	return net.JoinHostPort(host, port)
}
