package launch

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// The launcher itself may be stopped, by its user or with its machine. Messages that arrive meanwhile are unread, so
// by the clock all peers would seem silent. The launcher therefore measures timeouts in ticks, which do not elapse
// while it is stopped, and it handles arrived messages between two ticks.

// maxTick bounds the interval of ticks.
const maxTick = 100 * time.Millisecond

// minTick bounds it, too: a tick takes the launcher a few microseconds.
const minTick = 5 * time.Millisecond

// tickEvery returns the interval of ticks. It takes up to three of them to notice that a silence was too long. That
// may add a seventh to the peer timeout and a twentieth to suspect, 0 for none.
func tickEvery(timeout, suspect time.Duration) time.Duration {
	tick := min(timeout/20, maxTick)
	if suspect > 0 {
		tick = min(tick, suspect/64)
	}
	return max(tick, minTick)
}

func (r *run) ticks(d time.Duration) int { return int(d/r.tick) + 2 }

// silentFor counts a tick and reports whether more than most ticks have passed since the last message. A blocked peer
// cannot send one.
func (m *member) silentFor(blocked bool, most int) bool {
	if m.quietTicks++; blocked {
		m.quietTicks = 0
	}
	return m.quietTicks > most
}

// suspects reports whether a silent peer counts as lost before PeerTimeout, because its host is silent, too, or its
// process is stopped. Another process is late rather than lost: the end of one is noticed at once. If no peer is heard,
// none is suspected: nobody would be left that has values, and it may be the launcher's host that was cut off.
func (r *run) suspects(m *member) bool {
	if !r.Recovers() || m.quietTicks <= r.ticks(r.Suspect/2) {
		return false
	}
	if m.child == 0 {
		r.send(m, rendezvous.Probe{})
	}
	r.add(look{m})
	if m.quietTicks <= r.ticks(r.Suspect) || r.hearsNobody() {
		return false
	}
	switch s := m.seen; {
	case s == nil:
		return false
	case m.child != 0:
		return s.stopped
	default:
		return !s.known || s.silent > r.Suspect/2
	}
}

// listen notes whether any peer is heard, at every tick. When one is heard again after none was, the others get as much
// time again as all were silent: TCP repeats what was lost in intervals that double.
func (r *run) listen() {
	unheard := 0
	for _, m := range r.members {
		if !m.done() && (m.conn == 0 || m.quietTicks > r.ticks(r.Suspect/2)) {
			unheard++
		}
	}
	switch {
	case unheard == len(r.members):
		r.deafTicks++
	case r.deafTicks > 0:
		for _, m := range r.members {
			if m.quietTicks > r.ticks(r.Suspect/2) {
				m.quietTicks = -r.deafTicks
			}
		}
		r.deafTicks, r.deaf = 0, false
	}
}

// hearsNobody reports whether all peers are silent, before any has sent its results. It logs that once, unless all are
// processes that the launcher has started: no network is between them.
func (r *run) hearsNobody() bool {
	apart := slices.ContainsFunc(r.members, func(m *member) bool { return m.child == 0 })
	if r.deafTicks > 0 && !r.deaf && apart {
		r.deaf = true
		r.warn("no peer is heard, this host may be cut off: waiting for the peer timeout",
			"suspect", r.Suspect, "peer.timeout", r.PeerTimeout)
	}
	return r.deafTicks > 0
}

func (m *member) silence(timeout time.Duration) string {
	return fmt.Sprintf("%s has been silent for more than %v (--peer-timeout)", m, timeout)
}

// heardBeats is the number of heartbeats within which a peer is heard that is connected.
const heardBeats = 10

// noteSevered says with which peer another one exchanges nothing, unless this process does not hear it, either.
func (r *run) noteSevered(m *member, c *rendezvous.Severed) {
	if c != nil && (r.active || c.Rank < 0 || c.Rank >= len(r.members) || c.Rank == m.rank ||
		r.members[c.Rank].quietTicks > r.ticks(heardBeats*BeatEvery(r.PeerTimeout))) {
		return
	}
	before := m.severed
	if m.severed = c; c == nil && before != nil {
		r.change(severed{m.rank, ""})
		r.info("a peer exchanges values with all its neighbours again", "rank", m.rank)
	}
	if c == nil || before != nil && *before == *c {
		return
	}
	q, then := r.members[c.Rank], "ends"
	if r.Recovers() {
		then = "goes on without one of them"
	}
	text := fmt.Sprintf("%s and %s exchange nothing, although both reach this process: %s; unless a path comes up, the run %s after "+
		"%v (--peer-timeout)", m, q, c.Why, then, r.PeerTimeout)
	r.change(severed{m.rank, text})
	if q.severed == nil || q.severed.Rank != m.rank {
		r.warn(text, "rank", m.rank, "other", q.rank)
	}
}
