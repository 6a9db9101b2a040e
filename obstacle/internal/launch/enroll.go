package launch

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// enroll assigns a rank to a peer that joins, keeps the peer as a spare one, or refuses it.
func (r *run) enroll(c *caller) {
	if r.banned[joined(&c.join)] {
		r.add(refuse{conn: c.conn, why: "this process has sent what no peer of the run sends"})
		return
	}
	if c.join.Standing != nil {
		r.reseat(c)
		return
	}
	if r.returning { // its place may be that of a peer that returns
		r.add(refuse{conn: c.conn, why: "the peers of the run return first", later: true})
		return
	}
	if r.expects(c) {
		return
	}
	waits := r.waits(c.join)
	if waits {
		c.join.Rank = -1
	}
	if s := r.spareOf(c.join, waits && r.joining); s != nil {
		s.caller = *c
		r.spares = append(r.spares, s)
		r.tellSpare(s)
		r.info("spare peer joined", "host", c.join.Host, "pid", c.join.Pid)
		return
	}
	rank, label, err := r.place(c)
	if err != nil {
		r.add(refuse{conn: c.conn, why: err.Error()})
		return
	}
	m := r.members[rank]
	r.seat(m, c, label)
	if r.joining && m.child == 0 {
		r.joined++
		if slices.ContainsFunc(r.open, func(l *Loss) bool { return l.Rank == m.rank }) {
			r.by(m, "process of "+m.String())
		}
	}
}

// tellSpare sends a spare peer the addresses of the keepers. It joins there if this process is lost.
func (r *run) tellSpare(s *member) {
	r.send(s, rendezvous.Spare{Keepers: r.term.Keepers})
}

// MaxSpares bounds the spare peers that wait.
const MaxSpares = 1024

// waits reports whether the rank for which a peer asks is taken, and the peer is content to be a spare one then.
func (r *run) waits(j rendezvous.Join) bool {
	rank := j.Rank * max(1, r.Parts)
	return j.OrSpare && j.Rank >= 0 && (rank >= len(r.members) || r.members[rank].conn != 0)
}

// spareOf returns the member for a peer that joins and is not needed now, nil if it is needed or cannot be a spare one.
// All ranks are expected to be taken by others if so stated.
func (r *run) spareOf(j rendezvous.Join, othersCome bool) *member {
	for i, s := range r.starting {
		if s.rank == j.Rank {
			r.starting = slices.Delete(r.starting, i, i+1)
			return s
		}
	}
	free := !othersCome && slices.ContainsFunc(r.members, func(m *member) bool { return m.conn == 0 && !m.reserved })
	if free || j.Rank >= 0 || !r.Recovers() || len(r.spares) >= MaxSpares ||
		j.ProblemHash != "" && j.ProblemHash != r.Fingerprint {
		return nil
	}
	return &member{rank: len(r.members)}
}

// seat welcomes a process as a peer of the run.
func (r *run) seat(m *member, c *caller, label string) {
	m.seated = r.epoch
	r.welcome(m, c, rendezvous.Welcome{
		Rank: m.rank, Epoch: r.epoch, Run: r.name, Key: r.key, Cluster: label, Rails: r.RailsOf(m.rank), Spec: r.Spec,
		Keepers: r.term.Keepers,
	})
	if !r.early() {
		r.send(m, rendezvous.Start{})
	}
}

// welcome uses a connection for a peer.
func (r *run) welcome(m *member, c *caller, w rendezvous.Welcome) {
	m.caller, m.awaited, m.reserved = *c, false, false
	if _, known := r.slow[processOf(m)]; !known && r.Parts > 1 {
		r.slow[processOf(m)] = r.Slowdown[m.rank/r.Parts]
	}
	m.label = w.Cluster
	m.quietTicks = 0
	r.add(welcome{m, w})
	r.info("peer joined", "rank", m.rank, "host", m.join.Host, "pid", m.join.Pid)
	for _, rank := range m.guests {
		r.send(m, rendezvous.Host{Rank: rank})
	}
	m.guests = nil
}

// refused handles a peer whose connection has ended before it was welcome.
func (r *run) refused(m *member, why error) {
	r.warn("a peer cannot take part", "error", why, "rank", m.rank)
	switch h := r.handoverTo(m); {
	case r.members[m.rank] != m: // its place was given away
	case h != nil: // the part stays
		r.add(retire{m})
		r.handing = slices.DeleteFunc(r.handing, func(o *handover) bool { return o == h })
		r.members[m.rank] = h.from
		r.advance()
	case r.active && !r.returning:
		r.add(retire{m})
		if r.joining && m.child == 0 {
			r.joined--
			r.members[m.rank] = r.vacancy(m.rank)
			return
		}
		next := m.successor()
		next.attempts, next.former, next.carried = m.attempts-1, m.former, m.carried
		r.members[m.rank] = next
		r.replace(next)
		for _, q := range r.members {
			if q.host == m && q.conn == 0 {
				q.attempts--
				r.replace(q)
			}
		}
	default: // it may come again
		m.caller = caller{}
	}
}

// place returns the rank and the declared cluster of a peer that joins, or why it cannot take part. Users count
// processes.
func (r *run) place(c *caller) (rank int, label string, err error) {
	j := &c.join
	want := j.Rank
	if r.Spawn == nil && !slices.ContainsFunc(r.members, func(m *member) bool { return processOf(m) == joined(j) }) {
		want *= max(1, r.Parts)
	}
	rank = slices.IndexFunc(r.members, func(m *member) bool {
		return m.conn == 0 && (want == m.rank || want < 0 && !m.reserved)
	})
	mine := r.Fingerprint
	switch {
	case rank < 0 && j.Rank >= 0:
		err = fmt.Errorf("rank %d is taken or invalid in a run of %d peers", j.Rank, len(r.members)/max(1, r.Parts))
	case rank < 0:
		err = fmt.Errorf("all %d peers of the run have joined", len(r.members)/max(1, r.Parts))
	case j.ProblemHash != "" && j.ProblemHash != mine:
		err = fmt.Errorf("different problems: the run solves %s (%.16s), this peer was started for %s (%.16s)",
			r.Spec.Problem, mine, j.Problem, j.ProblemHash)
	default:
		label, err = r.label(rank, c)
	}
	return rank, label, err
}

// label returns the declared cluster of a peer that joins. The address from which it connected counts as one of its
// own.
func (r *run) label(rank int, c *caller) (string, error) {
	if r.Label == nil {
		return "", nil
	}
	at := slices.Clone(c.join.Addresses)
	if from, err := netip.ParseAddrPort(c.remote); err == nil {
		if ip := from.Addr().Unmap().WithZone(""); !ip.IsLoopback() && !slices.Contains(at, ip) {
			at = append(at, ip)
		}
	}
	return r.Label(rank, c.join.Host, at)
}
