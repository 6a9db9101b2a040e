// Package keepers simulates, in virtual time, the processes that decide who leads a run: the launcher, the peers that
// keep the register with it, and all peers that search for the process that leads after the loss of a leader.
// Decisions are made by package register, as in a real run; this package has the times of their messages.
//
// A Group is a state machine. Times count from the first relaxation of the run. Its caller reports what happens to
// processes and paths, calls Advance at the time that Next returns, and handles Events.
package keepers

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
)

// Launcher is the Rank of the launcher's process.
const Launcher = -1

// Never is later than all times.
const Never = time.Duration(math.MaxInt64)

// Process is a process of a run.
type Process struct {
	Rank  int           // of its peer, or Launcher
	Since time.Duration // when it took the place of a lost one, or moved; 0: it has been there from the start
	By    *Process      // that has given it the place; nil: it has been there from the start
}

// World is what a Group has to know of a cluster.
type World interface {
	// Latency returns the one-way latency between two processes.
	Latency(a, b *Process) time.Duration
	// Connected reports whether messages pass between two processes at a time.
	Connected(a, b *Process, at time.Duration) bool
}

// Config describes a Group.
type Config struct {
	World
	Hosts   []int         // by rank: peers with the same number share a machine
	Keepers int           // wanted processes that keep the register, the leader included: 1, 3 or 5
	Suspect time.Duration // the silence after which the leader gives up a peer; a peer gives up the leader after two
	Timeout time.Duration // bounds decisions, and the search for a leader
	Rand    *rand.Rand
}

// EventKind says what an Event means.
type EventKind int

// The kinds of events.
const (
	// Granted: most keepers have agreed that the leader begins the next epoch.
	Granted EventKind = iota
	// Elected: most keepers have agreed that another process leads. It waits for the peers.
	Elected
	// Led: the peers have returned to the new leader, but for those in Missing.
	Led
	// Stopped: a process has ended its part in the run, since it reaches no leader, or not most keepers.
	Stopped
)

// Event is what the caller has to know of a Group.
type Event struct {
	Kind    EventKind
	At      time.Duration
	Process *Process
	Term    register.Term // in Granted and Elected
	Missing []int         // in Led: ranks
}

// Decision is a term that was decided, and when a process first knew of that.
type Decision struct {
	register.Term
	At time.Duration
}

// Group is the processes of a run.
type Group struct {
	c        Config
	now      time.Duration
	queue    queue
	seq      uint64
	all      []*process // that have ever been
	members  []*process // by rank
	launcher *process
	terms    []Decision
	out      []Event
}

// process is the state of a process.
type process struct {
	Process
	address string
	killed  bool
	stopped bool
	keeper  *register.Keeper // nil: it keeps no register
	record  bool             // it has what it needs to lead
	term    register.Term    // the newest that it knows
	leader  *process         // it has a connection to; nil: none
	quiet   time.Duration    // since when it hears nothing from its leader; Never: it does
	attempt *attempt         // to decide a term; nil: none
	round   int              // highest of its proposals
	office  *office          // of a process that leads; nil: it does not
	search  *search          // for a process that leads; nil: none
}

// acts reports whether the process takes part in the run.
func (p *process) acts() bool { return !p.killed && !p.stopped }

// New returns the processes of a run at its first relaxation. The launcher leads.
func New(c Config) *Group {
	g := &Group{c: c}
	g.launcher = g.add(Process{Rank: Launcher})
	for rank := range c.Hosts {
		p := g.add(Process{Rank: rank})
		p.leader = g.launcher
		g.members = append(g.members, p)
	}
	first := register.Term{Number: 1, Leader: g.launcher.address, Keepers: []string{g.launcher.address}}
	g.launcher.keeper = register.NewKeeper(g.launcher.address, first)
	g.launcher.office = newOffice(first, len(g.members))
	for rank := range g.members {
		g.launcher.office.linked[rank] = true
	}
	g.adopt(g.launcher, first)
	g.askKeepers(g.launcher)
	return g
}

// add adds a process. No two have the same address.
func (g *Group) add(p Process) *process {
	q := &process{Process: p, address: fmt.Sprintf("process %d of rank %d", len(g.all), p.Rank), quiet: Never}
	g.all = append(g.all, q)
	return q
}

// Next returns when Advance has something to do.
func (g *Group) Next() time.Duration {
	if len(g.queue) == 0 {
		return Never
	}
	return g.queue[0].at
}

// Advance does what is due at a time.
func (g *Group) Advance(now time.Duration) {
	for len(g.queue) > 0 && g.queue[0].at <= now {
		e := heap.Pop(&g.queue).(entry)
		g.now = max(g.now, e.at)
		e.do()
	}
	g.now = max(g.now, now)
}

// Events returns what has happened since the last call.
func (g *Group) Events() []Event {
	out := g.out
	g.out = nil
	return out
}

// Terms returns all decided terms, in the order of their numbers. Two with the same number are a fault of the register.
func (g *Group) Terms() []Decision { return g.terms }

// Over reports whether no process leads the run, and none searches for one that does or may have to.
func (g *Group) Over() bool {
	return !slices.ContainsFunc(g.all, func(p *process) bool {
		return p.acts() && (p.office != nil || p.search != nil || p.leader != nil)
	})
}

// Kill ends the process of a rank, or the launcher. Its machine closes its connections.
func (g *Group) Kill(now time.Duration, rank int) {
	g.Advance(now)
	p := g.of(rank)
	p.killed = true
	p.office, p.attempt, p.search = nil, nil, nil
	g.Changed(now)
}

// of returns the process that has the place of a rank.
func (g *Group) of(rank int) *process {
	if rank == Launcher {
		return g.launcher
	}
	return g.members[rank]
}

// Member returns the process that has the place of a rank.
func (g *Group) Member(rank int) *Process { return &g.of(rank).Process }

// Settle continues until the processes that have no place in the run any more have stopped, or until a time.
func (g *Group) Settle(until time.Duration, leader *Process) {
	astray := func(p *process) bool {
		return p.acts() && &p.Process != leader && (p.Rank == Launcher || p != g.members[p.Rank])
	}
	for g.Next() <= until && slices.ContainsFunc(g.all, astray) {
		g.Advance(g.Next())
	}
}

// Changed must be called when processes begin or cease to reach each other.
func (g *Group) Changed(now time.Duration) {
	g.Advance(now)
	for _, p := range g.all {
		l := p.leader
		if l == nil || l == p || !p.acts() {
			continue
		}
		switch reached := g.c.Connected(&p.Process, &l.Process, g.now); {
		case !reached && p.quiet == Never:
			p.quiet = g.now
			g.after(g.patience(p), func() { g.checkLeader(p, l) })
		case reached:
			p.quiet = Never
			if !l.acts() || p != g.members[p.Rank] { // its machine, or the leader, closes the connection
				g.after(g.latency(p, l), func() { g.leaderLost(p, l) })
			}
		}
	}
}

// checkLeader gives up a leader that has been silent for too long.
func (g *Group) checkLeader(p, l *process) {
	if p.quiet != Never && g.now-p.quiet >= g.patience(p) {
		g.leaderLost(p, l)
	}
}

// stopTime is what a leader may take to end the run.
const stopTime = 5 * time.Second

// patience returns after which silence a peer gives up its leader.
func (g *Group) patience(p *process) time.Duration {
	if len(p.term.Keepers) < 2 {
		return g.c.Timeout + stopTime
	}
	return 2 * g.c.Suspect
}

func (g *Group) latency(a, b *process) time.Duration {
	if a == b {
		return 0
	}
	return g.c.Latency(&a.Process, &b.Process)
}

// send does something at another process, so many one-way latencies later, unless the path is cut.
func (g *Group) send(from, to *process, legs int, do func()) {
	if !from.acts() || from != to && !g.c.Connected(&from.Process, &to.Process, g.now) {
		return
	}
	g.after(time.Duration(legs)*g.latency(from, to), func() {
		if to.acts() {
			do()
		}
	})
}

// stop ends the part of a process in the run.
func (g *Group) stop(p *process) {
	if !p.acts() {
		return
	}
	p.stopped = true
	p.search, p.attempt = nil, nil
	p.office, p.leader = nil, nil
	g.emit(Event{Kind: Stopped, Process: &p.Process})
}

func (g *Group) emit(e Event) {
	e.At = g.now
	g.out = append(g.out, e)
}

// adopt records that a process knows a decided term.
func (g *Group) adopt(p *process, t register.Term) {
	if t.Number == 0 {
		return
	}
	if t.Number > p.term.Number {
		p.term = t
	}
	if p.keeper != nil {
		p.keeper.Adopt(t)
	}
	for _, d := range g.terms {
		if d.Equal(t) {
			return
		}
	}
	g.terms = append(g.terms, Decision{t, g.now})
	slices.SortStableFunc(g.terms, func(a, b Decision) int { return a.Number - b.Number })
}

// entry is something to do at a time.
type entry struct {
	at  time.Duration
	seq uint64
	do  func()
}

// queue is a heap by time, then by the order of the calls of after.
type queue []entry

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(e any) { *q = append(*q, e.(entry)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = entry{}
	*q = (*q)[:last]
	return e
}

// after does something after a time.
func (g *Group) after(d time.Duration, do func()) {
	g.seq++
	heap.Push(&g.queue, entry{g.now + d, g.seq, do})
}
