package launch

import (
	"io"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/keep"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// step handles an event and executes its effects in their order, and then those of the answers to them.
func (s *shell) step(o event) {
	if s.series != nil {
		o.steps = s.series.known()
	}
	s.handle(o)
	if s.observer != nil {
		s.observer(s.now, &o, s.effects)
	}
	s.execute()
}

// execute executes the effects that were not executed yet in their order, and then those of the answers to them.
func (s *shell) execute() {
	for _, e := range s.take() {
		s.perform(e)
	}
	for len(s.answers) > 0 {
		o := s.answers[0]
		s.answers = s.answers[1:]
		s.step(o)
	}
}

func (s *shell) perform(e effect) {
	switch e := e.(type) {
	case relax:
		s.zero = time.Now()
		_, recovery := s.onLoss()
		s.Log.Info().Int("peers", len(s.members)).Dur("setup", s.zero.Sub(s.called)).Str("partition", s.PartitionWhy).
			Str("method", s.Method.Name).Str("method_why", s.MethodWhy).Str("recovery", recovery).Msg("started")
	case send:
		if w, is := e.msg.(*workload); is && w.newest {
			w.initial = s.series.newest()
		}
		if l := s.links[e.to.conn]; l != nil {
			l.notify(e.msg)
		}
	case passOn:
		if l := s.links[e.to.conn]; l != nil && !l.passing.Swap(true) { // else those that wait will be of this step
			l.notify(copies{s.series, e.ranks})
		}
	case welcome:
		if err := s.welcomePeer(e.of, e.msg); err != nil {
			s.answers = append(s.answers, event{of: e.of, refused: err})
		}
	case look:
		s.looks = append(s.looks, e.at)
	case refuse:
		s.turnDown(e)
	case disconnect:
		if l := s.links[e.of.conn]; l != nil {
			if l.Close(); l.out == nil {
				delete(s.links, e.of.conn)
			}
		}
	case finish:
		s.forget(e.of)
	case retire:
		if c := s.children[e.of.child]; c != nil {
			c.Kill()
		}
		if l := s.links[e.of.conn]; l != nil {
			l.Close()
		}
		s.forget(e.of)
	case start:
		n, name, err := s.startPeer(e.of, e.seat)
		s.answers = append(s.answers, event{of: e.of, child: n, started: &started{name, err}})
	case openRegister:
		s.openKeeper(e.first)
	case propose:
		go s.decide(s.keeper.Load(), e)
	case beginSteps:
		if err := s.series.start(0, nil, e.suspended); err != nil {
			panic(err) // the decision was made for a problem that has a start
		}
	case collectSteps:
		s.series.collect(e.first)
		for _, c := range e.copies {
			if err := s.series.place(&c); err != nil {
				s.Log.Warn().Err(err).Int("rank", c.Rank).Msg(unusable)
			}
		}
	case displace:
		if l := s.links[e.of.conn]; l != nil {
			l.displaced.Store(!e.back)
		}
	case restartSteps:
		s.series.restart(e.epoch)
		s.answers = append(s.answers, event{restarted: true})
	case declareAnew:
		s.owned.recut(e.Partition)
	case logged:
		levels := [...]zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel}
		s.Log.WithLevel(levels[e.level]).Fields(e.fields).Msg(e.text)
	case note:
		if s.Notes != nil {
			_, _ = io.WriteString(s.Notes, e.text)
		}
	case updated:
		s.Status.update(e.apply)
	case progress:
		if s.Watch != nil {
			s.Watch(e.Progress)
		}
	case captured:
		s.Captures.Take(e.u, e.at)
	case sampled:
		s.Samples.Take(e.of, e.u, e.at)
	}
}

// welcomePeer sends a process that it is a peer of the run, and reads its messages from then on.
func (s *shell) welcomePeer(m *member, w rendezvous.Welcome) error {
	l := s.links[m.conn]
	if s.server != nil {
		w.Reconnect, w.Addresses = s.server.Lasting(l.Conn)
	}
	if err := l.Send(w); err != nil {
		l.Close()
		l.finished = true
		return err
	}
	l.out, l.served, l.written = make(chan rendezvous.Message, outbox), make(chan struct{}), make(chan struct{})
	go l.write(l.out)
	go s.serve(m, l)
	return nil
}

// turnDown ends the connection of a process that cannot take part.
func (s *shell) turnDown(e refuse) {
	l := s.links[e.conn]
	if delete(s.links, e.conn); e.later {
		_ = l.Send(rendezvous.Refuse{Reason: e.why, Later: true})
	} else {
		s.Log.Warn().Msg(l.Refuse(e.why).Error())
	}
	l.Close()
}

// forget sends no more messages to a peer. The end of the run waits for its process and connection.
func (s *shell) forget(m *member) {
	if l := s.links[m.conn]; l != nil {
		l.displaced.Store(true)
		l.finish()
	}
	s.retired = append(slices.DeleteFunc(s.retired, s.over), m) // a run may lose many
}

// over reports whether the process of a lost peer has ended and its connection is no longer used. If so, it drops them.
func (s *shell) over(m *member) bool {
	l, c := s.links[m.conn], s.children[m.child]
	if l != nil && !l.over() || c != nil && !isClosed(c.ended) {
		return false
	}
	delete(s.links, m.conn)
	delete(s.children, m.child)
	return true
}

// startPeer starts a process for a peer, which asks for a seat.
func (s *shell) startPeer(m *member, seat int) (n child, name string, err error) {
	c, err := s.Spawn(s.ctx, seat, s.listens)
	if err != nil {
		return 0, "", err
	}
	s.newest.child++
	n = s.newest.child
	ended := make(chan struct{})
	s.children[n] = &offspring{c, ended}
	go func() {
		err := c.Wait()
		close(ended)
		s.emit(input{event: event{of: m, child: n, exited: true, exit: err}})
	}()
	return n, c.Name(), nil
}

// openKeeper makes the copy of the register of this process, with a first term of which this process is the only keeper.
func (s *shell) openKeeper(first register.Term) {
	k := keep.New(first.Leader, s.Identity, rendezvous.Join{Rank: -1, Host: s.self.host, Pid: s.self.pid}, first)
	k.LeaderReached(true) // it is this process
	s.keeper.Store(k)
}

func (s *shell) decide(k *keep.Keeper, e propose) {
	t, err := k.Propose(s.ctx, e.base, e.want)
	if err != nil {
		t = register.Term{}
	}
	s.emit(input{event: event{decided: &t}})
}
