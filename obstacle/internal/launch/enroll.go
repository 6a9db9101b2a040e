package launch

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// enroll assigns a rank to a peer that joins, keeps the peer as a spare one, or refuses it.
func (r *run) enroll(conn *rendezvous.Conn, j rendezvous.Join) {
	if j.Standing != nil {
		r.reseat(conn, j)
		return
	}
	if r.returning { // its place may be that of a peer that returns
		_ = conn.Send(rendezvous.Refuse{Reason: "the peers of the run return first", Later: true})
		conn.Close()
		return
	}
	if r.expects(conn, j) {
		return
	}
	waits := r.waits(j)
	if waits {
		j.Rank = -1
	}
	if s := r.spareOf(j, waits && r.joining); s != nil {
		s.conn, s.join = conn, j
		r.spares = append(r.spares, s)
		r.tellSpare(s)
		r.Log.Info().Str("host", j.Host).Int("pid", j.Pid).Msg("spare peer joined")
		return
	}
	rank, label, err := r.place(conn, j)
	if err != nil {
		r.Log.Warn().Msg(conn.Refuse(err.Error()).Error())
		conn.Close()
		return
	}
	m := r.members[rank]
	if r.seat(m, conn, j, label) != nil {
		conn.Close()
		return
	}
	if r.joining && m.child == nil {
		r.joined++
		r.by(m, "process of "+m.String())
	}
}

// tellSpare sends a spare peer the addresses of the keepers. It joins there if this process is lost.
func (r *run) tellSpare(s *member) {
	if s.conn.Send(rendezvous.Spare{Keepers: r.term.Keepers}) != nil {
		s.conn.Close()
	}
}

// MaxSpares bounds the spare peers that wait.
const MaxSpares = 1024

// waits reports whether the rank for which a peer asks is taken, and the peer is content to be a spare one then.
func (r *run) waits(j rendezvous.Join) bool {
	rank := j.Rank * max(1, r.Parts)
	return j.OrSpare && j.Rank >= 0 && (rank >= len(r.members) || r.members[rank].conn != nil)
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
	free := !othersCome && slices.ContainsFunc(r.members, func(m *member) bool { return m.conn == nil && !m.reserved })
	if free || j.Rank >= 0 || !r.Recovers() || len(r.spares) >= MaxSpares ||
		j.ProblemHash != "" && j.ProblemHash != r.Fingerprint {
		return nil
	}
	return &member{rank: len(r.members)}
}

// seat welcomes a process as a peer of the run.
func (r *run) seat(m *member, conn *rendezvous.Conn, j rendezvous.Join, label string) error {
	m.seated = r.epoch
	err := r.welcome(m, conn, j, rendezvous.Welcome{
		Rank: m.rank, Epoch: r.epoch, Run: r.name, Key: r.key[:], Cluster: label, Rails: r.RailsOf(m.rank), Spec: r.Spec,
		Keepers: r.term.Keepers,
	})
	if err == nil && !r.early() {
		m.notify(rendezvous.Start{})
	}
	return err
}

// welcome uses a connection for a peer.
func (r *run) welcome(m *member, conn *rendezvous.Conn, j rendezvous.Join, w rendezvous.Welcome) error {
	if r.server != nil {
		w.Reconnect, w.Addresses = r.server.Lasting(conn)
	}
	if err := conn.Send(w); err != nil {
		return err
	}
	m.conn, m.awaited, m.reserved = conn, false, false
	m.join = j
	if _, known := r.slow[processOf(m)]; !known && r.Parts > 1 {
		r.slow[processOf(m)] = r.Slowdown[m.rank/r.Parts]
	}
	m.label = w.Cluster
	m.quietTicks = 0
	m.out = make(chan rendezvous.Message, outbox)
	m.served = make(chan struct{})
	m.written = make(chan struct{})
	r.Log.Info().Int("rank", m.rank).Str("host", j.Host).Int("pid", j.Pid).Msg("peer joined")
	go m.write(m.out)
	go r.serve(m)
	for _, rank := range m.guests {
		m.notify(rendezvous.Host{Rank: rank})
	}
	m.guests = nil
	return nil
}

// place returns the rank and the declared cluster of a peer that joins, or why it cannot take part. Users count
// processes.
func (r *run) place(conn *rendezvous.Conn, j rendezvous.Join) (rank int, label string, err error) {
	want := j.Rank
	if r.Spawn == nil && !slices.ContainsFunc(r.members, func(m *member) bool { return processOf(m) == joined(&j) }) {
		want *= max(1, r.Parts)
	}
	rank = slices.IndexFunc(r.members, func(m *member) bool {
		return m.conn == nil && (want == m.rank || want < 0 && !m.reserved)
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
		label, err = r.label(rank, conn, j)
	}
	return rank, label, err
}

// label returns the declared cluster of a peer that joins. The address from which it connected counts as one of its
// own.
func (r *run) label(rank int, conn *rendezvous.Conn, j rendezvous.Join) (string, error) {
	if r.Label == nil {
		return "", nil
	}
	at := slices.Clone(j.Addresses)
	if from, err := netip.ParseAddrPort(conn.Remote()); err == nil {
		if ip := from.Addr().Unmap().WithZone(""); !ip.IsLoopback() && !slices.Contains(at, ip) {
			at = append(at, ip)
		}
	}
	return r.Label(rank, j.Host, at)
}
