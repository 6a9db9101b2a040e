package simulate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/simulate/internal/keepers"
)

// Launcher is the rank of the launcher's process in Leader and CutOff.
const Launcher = keepers.Launcher

// leaderTimeout bounds decisions of the keepers, and the search for a leader: the default peer timeout of a solve.
const leaderTimeout = 10 * time.Second

// ErrCutOff is wrapped by the error of a run in which no process reaches most keepers, so that it cannot go on.
var ErrCutOff = errors.New("no process reaches most keepers of the run")

// Leader is a process that has led the run after the loss of the process that led it before. Times are since the first
// relaxation of the run.
type Leader struct {
	Rank    int           // of its peer
	Elected time.Duration // most keepers have agreed
	// Led is when the peers had returned to it. 0: the run ended before.
	Led     time.Duration
	Missing []int // ranks that did not return, and were replaced
}

// CutOff is the end of a process that is not lost, but has no part in the run any more. The run goes on without it, if
// most keepers reach each other.
type CutOff struct {
	Rank int // of its peer, or Launcher
	At   time.Duration
}

// Term is a decision of the keepers.
type Term struct {
	Number, Epoch int
	Leader        string
	Keepers       []string
	At            time.Duration // a process knows it
}

// succession is who leads a run, in all its epochs.
type succession struct {
	paths   paths
	group   *keepers.Group   // nil: the run does not recover
	leader  *keepers.Process // that the run follows
	keepers int              // wanted
	leaders []Leader
	cutOff  []CutOff
}

// begin begins the part of the keepers at the first relaxation of a run.
func (s *succession) begin(r *Config) {
	s.paths = r.paths()
	c := keepers.Config{
		World: &s.paths, Keepers: max(1, r.Recover.Keepers), Suspect: r.Recover.suspect(),
		Timeout: leaderTimeout, Rand: rand.New(rand.NewPCG(r.Seed, 0x6b656570657273)),
	}
	for rank := range r.ranks() {
		c.Hosts = append(c.Hosts, r.machineOf(rank))
	}
	if r.Solver.Problem.Steps() > 0 {
		c.Keepers = 1 // only the launcher has the start of the time step
	}
	s.keepers = c.Keepers
	s.group = keepers.New(c)
	s.leader = s.group.Member(keepers.Launcher)
}

// leads returns the host where the process that leads runs.
func (s *resumption) leads() int {
	if s.leader == nil {
		return 0
	}
	return (&paths{hosts: s.hosts}).hostOf(s.leader)
}

// result adds the moves of parts, and who has led the run, to its result.
func (s *resumption) result(r *Result) {
	if s.moving != nil {
		r.Moves = s.moving.moves
	}
	if s.group == nil {
		return
	}
	s.group.Settle(r.Virtual+4*leaderTimeout, s.leader)
	for _, ev := range s.group.Events() {
		s.stopped(&ev)
	}
	r.Leaders, r.CutOff = s.leaders, s.cutOff
	for _, t := range s.group.Terms() {
		r.Terms = append(r.Terms, Term{t.Number, t.Epoch, t.Leader, t.Keepers, t.At})
	}
}

// stopped records the end of a process that has no part in the run any more.
func (s *succession) stopped(ev *keepers.Event) {
	if ev.Kind == keepers.Stopped && s.paths.down(ev.Process, ev.At) == nil {
		s.cutOff = append(s.cutOff, CutOff{ev.Process.Rank, ev.At})
	}
}

// request lets the leader give up the peers whose loss has been noticed, and ask the keepers for the next epoch.
func (e *engine) request() {
	c, s := &e.recovery, &e.run.resumed
	due := e.due()
	for _, rank := range due {
		c.noticedAt[rank] = min(e.noticed(rank), e.now)
	}
	e.stopped, e.ended, c.pending = false, 0, true
	s.group.BeginEpoch(e.since(e.now), s.leader, due)
	e.followKeepers(e.now)
	e.setEnd(e.now)
}

// followKeepers does what follows from the decisions of the keepers by an instant.
func (e *engine) followKeepers(at microproto.Instant) {
	c, s := &e.recovery, &e.run.resumed
	for _, ev := range s.group.Events() {
		switch ev.Kind {
		case keepers.Granted:
			if ev.Process != s.leader {
				e.finish(at)
				e.fault = fmt.Errorf("simulate: %v after the first relaxation: a second process leads the run", e.elapsed())
				return
			}
			c.pending, e.broken = false, true
			e.finish(at)
		case keepers.Elected:
			s.leader, c.leaderless, c.pending = ev.Process, true, false
			s.leaders = append(s.leaders, Leader{Rank: ev.Process.Rank, Elected: ev.At})
			for rank := range c.noticedAt {
				c.noticedAt[rank] = microproto.Never
			}
			e.setEnd(at)
		case keepers.Led:
			if ev.Process == s.leader {
				e.led(at, ev.Missing)
			}
		case keepers.Stopped:
			s.stopped(&ev)
		}
	}
	if !e.stopped && s.group.Over() {
		e.finish(at)
		e.fault = fmt.Errorf("simulate: %v after the first relaxation: %w", e.elapsed(), ErrCutOff)
		if s.keepers <= 1 {
			e.endWithLauncher(at)
		}
	}
}

// endWithLauncher ends a run that nobody but its launcher can lead.
func (e *engine) endWithLauncher(at microproto.Instant) {
	e.run.resumed.cutOff = nil
	e.finish(at)
	e.fault = fmt.Errorf("simulate: %v after the first relaxation: the launcher was lost, and the run ended with it (one "+
		"keeper)", e.elapsed())
}

// led lets a new leader lead the run, without the ranks that did not return.
func (e *engine) led(at microproto.Instant, missing []int) {
	c, s := &e.recovery, &e.run.resumed
	l := &s.leaders[len(s.leaders)-1]
	l.Led, l.Missing = e.since(at), missing
	c.leaderless, c.ledAt = false, at
	for _, rank := range missing {
		c.noticedAt[rank], c.left[rank] = at, true
		if c.silentBy[rank] == nil {
			c.silentBy[rank] = &cluster.Event{At: e.since(at), Rank: rank, Lost: true}
		}
	}
	e.hear(at)
	if len(missing) > 0 || c.active {
		e.now = at
		e.request()
	}
}

// loseLauncher begins or ends an event of the launcher.
func (e *engine) loseLauncher(ev *cluster.Event, at microproto.Instant) {
	s := &e.run.resumed
	if s.group == nil {
		e.finish(at)
		e.fault = fmt.Errorf("simulate: %v after the first relaxation: the launcher was lost", e.elapsed())
		return
	}
	if ev.Killed {
		s.group.Kill(e.since(at), keepers.Launcher)
		e.recovery.leaderless = e.recovery.leaderless || s.leader.Rank == keepers.Launcher
	}
	e.hear(at)
}

// hear notes which peers the leader does not hear any more, or again, after a change at an instant.
func (e *engine) hear(at microproto.Instant) {
	c, s := &e.recovery, &e.run.resumed
	w := e.run.paths()
	for rank := range e.hosts {
		p := e.process(rank)
		down := w.down(p, e.since(at))
		e.lost[rank] = c.given[rank] || down != nil
		if c.noticedAt[rank] != microproto.Never {
			continue
		}
		by := down
		if cut := s.cutFromLeader(&w, p, e.since(at)); cut != nil && (by == nil || by.Killed) {
			by = cut
		}
		if was := c.silentBy[rank]; by != nil && (was == nil || !was.Killed && by.Killed) {
			c.silentAt[rank] = at
		}
		c.silentBy[rank] = by
	}
	if s.group != nil {
		s.group.Changed(e.since(at))
		e.followKeepers(at)
	}
	e.setEnd(at)
}

// cutFromLeader returns the event that prevents messages between a process and the leader; nil: they pass.
func (s *succession) cutFromLeader(w *paths, p *keepers.Process, at time.Duration) *cluster.Event {
	if s.leader == nil || s.leader == p {
		return nil
	}
	return w.obstruction(s.leader, p, at)
}
