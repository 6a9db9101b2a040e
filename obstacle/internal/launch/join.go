package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// early reports whether the relaxation has not started. A peer that is lost meanwhile is replaced as any later one: an epoch
// begins in which nobody has values.
func (r *run) early() bool { return !r.started }

// beginJoining begins the time in which peers join. The parts of each process belong to the one that joins for the first
// of them.
func (r *run) beginJoining() {
	r.active, r.joining = true, true
	if r.JoinTime > 0 {
		r.joinTicks = r.ticks(r.JoinTime)
	}
	for _, m := range r.members {
		if first := r.members[m.rank-m.rank%max(1, r.Parts)]; first != m {
			m.reserved, m.awaited = true, true
			first.guests = append(first.guests, m.rank)
		}
	}
}

// when completes what is said about the end of a peer.
func (r *run) when() string {
	if r.early() {
		return " before the start"
	}
	return ""
}

// beginRelaxation lets all peers relax, which are ready.
func (r *run) beginRelaxation() {
	r.started = true
	r.add(relax{})
	for _, m := range r.members {
		m.quietTicks, m.valued = 0, true
		r.send(m, rendezvous.Start{})
	}
	if r.exact() {
		for _, l := range r.open {
			l.From = nullable.Number(0)
		}
	}
	r.limitTime()
}

// limitTime bounds the time to relax. The peers observe MaxTime themselves; the limit is for a peer that does not.
func (r *run) limitTime() {
	if r.MaxTime > 0 {
		r.timeTicks = r.ticks(r.MaxTime - r.now + StopTime)
	}
}

// allJoined ends the time to join, when all peers listen. It returns false if they cannot reach each other.
func (r *run) allJoined() bool {
	r.joining = false
	if err := r.reachable(); err != nil {
		r.fail(failure{exited, -1, err.Error()})
		return false
	}
	return true
}

// checkJoining looks, at every tick, whether the time to join is over.
func (r *run) checkJoining() {
	if r.joinTicks--; !r.joining || r.joinTicks != 0 || r.failure != nil {
		return
	}
	missing := 0
	for _, m := range r.members {
		if m.control == "" {
			missing++
		}
	}
	text := fmt.Sprintf("%d of %d peers did not join within %v (--join-timeout)", missing, len(r.members), r.JoinTime)
	if r.refusal != "" {
		text += "; the last one that failed: " + r.refusal
	}
	r.fail(failure{exited, -1, text})
}

// waitsFor reports whether a process may join for a seat by itself: the launcher has started it, or a user starts it.
func (r *run) waitsFor(m *member) bool { return r.joining && (r.Spawn == nil || m.awaited) }

// allCame reports whether as many processes have joined as the user starts, of which one is left at least. What then
// has no process is a seat of a lost peer.
func (r *run) allCame() bool {
	return r.Recovers() && r.Spawn == nil && r.joined >= len(r.members)/max(1, r.Parts) &&
		slices.ContainsFunc(r.members, func(m *member) bool { return m.conn != 0 })
}

// endedEarly handles the end of a process that has not joined. If it ended by itself, another one would, too.
func (r *run) endedEarly(m *member) {
	if status, is := errors.AsType[interface {
		error
		ExitCode() int
	}](m.exit); is && status.ExitCode() >= 0 {
		r.fail(failure{exited, m.rank, fmt.Sprintf("%s ended before the start: %s", m, exitText(m.exit))})
		return
	}
	r.processEnded(m)
}

// cannotTakePart handles a peer that says before the start that it cannot take part. While peers join, another one may
// replace a peer that was started by hand. What others report meanwhile are consequences of a panic.
func (r *run) cannotTakePart(m *member, why string, panicked bool) {
	text := fmt.Sprintf("%s cannot take part: %s", m, why)
	if r.joining && r.byHand(m) {
		r.dismiss(m, text)
		return
	}
	weight := reported
	if panicked {
		weight = exited
	}
	r.fail(failure{weight, m.rank, text})
}

// dismiss removes a peer that was started by hand and cannot take part, while peers join.
func (r *run) dismiss(m *member, why string) {
	r.refusal = why
	r.joined--
	r.warn(why+"; the run waits for a replacement", "rank", m.rank)
	r.add(retire{m})
	r.members[m.rank] = r.vacancy(m.rank)
}

// vacancy returns a seat for a process that a user starts.
func (r *run) vacancy(rank int) *member {
	m := &member{rank: rank, box: r.members[rank].box, final: r.members[rank].box}
	if parts := max(1, r.Parts); rank%parts != 0 {
		m.reserved, m.awaited = true, true
	} else {
		for i := 1; i < parts; i++ {
			m.guests = append(m.guests, rank+i)
		}
	}
	return m
}

// successor returns the member that follows a lost one.
func (r *run) successor(m *member) *member {
	if r.joining && r.byHand(m) {
		return r.vacancy(m.rank)
	}
	next := m.successor()
	if next.guests = m.guests; m.conn == 0 {
		return next
	}
	for _, g := range r.members { // parts of its process that have not joined
		if g.reserved && g.conn == 0 && g.rank-g.rank%max(1, r.Parts) == m.rank {
			g.former = processOf(m)
			g.reserved, g.awaited = false, false
		}
	}
	return next
}

// causeTime bounds the wait for the cause of a failure that may be a consequence: the exit status of a process follows the
// end of its connection.
const causeTime = 500 * time.Millisecond

// reachable returns an error if a peer of a run over several hosts listens on loopback, where the others cannot reach
// it.
func (r *run) reachable() error {
	for _, m := range r.members {
		first, _, _ := strings.Cut(m.control, ",")
		at := strings.LastIndexByte(first, ':')
		if at < 0 {
			return fmt.Errorf("%s sent an invalid control address %q: it has no port", m, m.control)
		}
		host := strings.Trim(first[:at], "[]")
		if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
			continue
		}
		for _, other := range r.members {
			if other.join.Host != m.join.Host {
				return fmt.Errorf("%s listens on loopback only, but %s is on another host: "+
					"start it with --listen and an address of its network", m, other)
			}
		}
	}
	return nil
}

// byHand reports whether a user has started the process of a peer. A peer that another peer's process runs has no process of
// its own.
func (r *run) byHand(m *member) bool { return m.child == 0 && r.Spawn == nil }
