// Package route chooses one of several routes to a peer: pairs of interfaces, one at each end. Both ends send probes over
// all routes, in rounds, and each end answers the probes of the other. A route in use is given up when its probes remain
// unanswered while those of another route are answered, or when an interface of it has lost its carrier.
//
// The times of answers are compared with each other and not with a clock: an end that was stopped, or a network that
// carries nothing at all, is no reason to change the route.
package route

import "time"

const (
	// Interval is the time between two rounds of probes, doubtInterval that while the route in use leaves some unanswered
	// and there is another one.
	Interval      = 250 * time.Millisecond
	doubtInterval = 30 * time.Millisecond
	// doubtAfter is how much later than two round trips an answer has to be for that.
	doubtAfter = 100 * time.Millisecond
	// A route is silent when another one has answered vainRounds later rounds, the last of them sent silence and a round
	// trip after the last one that this route has answered. Where each probe or its answer is lost with a probability of
	// 0.51 (30 % in each direction), that happens by chance once in 50,000 times.
	vainRounds = 16
	silence    = 500 * time.Millisecond
	// dwell is how long a better route must answer before it is used again, twice as long after each failure.
	dwell     = 2 * time.Second
	maxDwells = 5
	// history is the number of rounds whose answers count. doubtRounds is the number of unanswered ones after which
	// rounds are no longer hurried, restRounds that after which a route is probed once in restEvery rounds.
	history     = 64
	doubtRounds = 48
	restRounds  = 240
	restEvery   = 8
)

// Cause is why a route is not used.
type Cause uint8

// The causes. None stands for a route that works, or of which nothing is known yet.
const (
	None      Cause = iota
	Silent          // its probes are not answered, those of another route are
	Carrier         // the interface at this end has lost its carrier
	Withdrawn       // the other end has left it
)

// Table is the state of the routes to one peer.
type Table struct {
	routes []state
	used   int
	round  uint32                 // number of the last one, from 1
	begun  time.Duration          // when it was sent
	sent   [history]time.Duration // when the last rounds were sent
}

type state struct {
	known    bool // it was answered once
	failed   Cause
	failedAt time.Duration // answers to earlier probes say nothing
	round    uint32        // the newest that was answered
	answered time.Duration // when that was sent
	rtt      time.Duration // smoothed
	since    time.Duration // it has answered without a failure
	failures int
}

// New returns the table of that many routes, the best first, which is used at first. The first round is due an interval later:
// by then the other end knows this one.
func New(now time.Duration, routes int) *Table {
	t := &Table{begun: now}
	t.Extend(now, routes)
	return t
}

// Extend adds routes behind the others until there are as many.
func (t *Table) Extend(now time.Duration, routes int) {
	for len(t.routes) < routes {
		t.routes = append(t.routes, state{answered: now})
	}
}

// Used returns the index of the route to send on.
func (t *Table) Used() int { return t.used }

// Cause returns why a route is not usable.
func (t *Table) Cause(i int) Cause { return t.routes[i].failed }

// Known reports whether a route has ever carried probes in both directions.
func (t *Table) Known(i int) bool { return t.routes[i].known }

func (t *Table) ready(i int) bool { return t.routes[i].known && t.routes[i].failed == None }

// alternative reports whether another route than the one in use is ready.
func (t *Table) alternative() bool {
	for i := range t.routes {
		if i != t.used && t.ready(i) {
			return true
		}
	}
	return false
}

// Next returns when the next round is due.
func (t *Table) Next() time.Duration {
	next := t.begun + Interval
	u := &t.routes[t.used]
	if missed := t.round - u.round; missed > 0 && missed <= doubtRounds && t.alternative() {
		first := t.sent[(u.round+1)%history]
		next = min(next, max(t.begun+doubtInterval, first+2*u.rtt+doubtAfter))
	}
	return next
}

// Begin begins a round, whether it is due or not, and returns its number.
func (t *Table) Begin(now time.Duration) uint32 {
	t.round++
	t.begun = now
	t.sent[t.round%history] = now
	return t.round
}

// Probes reports whether a route is probed in the present round. A route that has not answered for long is not in each.
func (t *Table) Probes(i int) bool {
	return t.round-t.routes[i].round <= restRounds || t.round%restEvery == 0
}

// Answered notes an answer to the probe of a round.
func (t *Table) Answered(now time.Duration, i int, round uint32) {
	s := &t.routes[i]
	if age := t.round - round; round == 0 || age >= history || round-s.round-1 >= 1<<31 {
		return // forged, too old, or not newer than the last one
	}
	sent := t.sent[round%history]
	if s.failed != None && sent <= s.failedAt {
		return
	}
	rtt := now - sent
	if s.known {
		rtt = (7*s.rtt + rtt) / 8
	}
	if !s.known || s.failed != None {
		s.since = now
	}
	s.known, s.failed = true, None
	s.round, s.answered, s.rtt = round, sent, rtt
	t.judge(now, i)
	t.choose(now)
}

// Fail notes that the interface of a route has lost its carrier, or that the other end has left the route. An answer to a later
// probe shows that it works again.
func (t *Table) Fail(now time.Duration, i int, why Cause) {
	t.fail(now, i, why)
	t.choose(now)
}

func (t *Table) fail(now time.Duration, i int, why Cause) {
	s := &t.routes[i]
	if s.failed == None {
		s.failed = why
		s.failures++
	}
	s.failedAt = now
}

// judge fails the routes that are silent while route i answers.
func (t *Table) judge(now time.Duration, i int) {
	a := &t.routes[i]
	for j := range t.routes {
		s := &t.routes[j]
		if s.failed == None && (s.known || j == t.used) && a.round >= s.round+vainRounds &&
			a.answered >= s.answered+s.rtt+silence {
			t.fail(now, j, Silent)
		}
	}
}

// choose leaves a route that has failed for the best one that is ready, and goes back to a better one that has worked for
// long enough.
func (t *Table) choose(now time.Duration) {
	left := t.routes[t.used].failed != None
	for i := range t.routes {
		s := &t.routes[i]
		steady := i < t.used && now-s.since >= dwell<<max(0, min(s.failures-1, maxDwells))
		if t.ready(i) && i != t.used && (left || steady) {
			t.used = i
			return
		}
	}
}
