package launch

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// seat gives a peer that has joined its place, or sends it away.
func (r *run) seat(conn *rendezvous.Conn, j rendezvous.Join) {
	rank := -1
	for _, m := range r.members {
		if m.conn == nil && (j.Seat == m.rank || j.Seat < 0) {
			rank = m.rank
			break
		}
	}
	if rank < 0 {
		why := fmt.Sprintf("the run has its %d peers already", len(r.members))
		if j.Seat >= 0 {
			why = fmt.Sprintf("no free place of rank %d in a run of %d peers", j.Seat, len(r.members))
		}
		r.Log.Warn().Msg(conn.Refuse(why).Error())
		conn.Close()
		return
	}
	if mine := r.problemHash(); j.ProblemHash != "" && j.ProblemHash != mine {
		why := fmt.Sprintf("different problems: the run solves %s (%.16s), this peer was started for %s (%.16s)", r.Spec.Name(), mine, j.Problem, j.ProblemHash)
		r.Log.Warn().Msg(conn.Refuse(why).Error())
		conn.Close()
		return
	}
	label, err := r.label(rank, conn, j)
	if err != nil {
		r.Log.Warn().Msg(conn.Refuse(err.Error()).Error())
		conn.Close()
		return
	}
	w := rendezvous.Welcome{Rank: rank, Run: r.name, Key: r.key[:], MTU: r.MTU, PeerTimeoutMS: r.PeerTimeout.Milliseconds(), Seed: r.Seed, Cluster: label, Protect: r.Protect, Congestion: r.Congestion, Rows: r.Rows, Rails: r.RailsOf(rank)}
	if err := conn.Send(w); err != nil {
		conn.Close()
		return
	}
	m := r.members[rank]
	m.conn, m.join, m.label, m.quiet = conn, j, label, 0
	m.out, m.attended = make(chan rendezvous.Message, outbox), make(chan struct{})
	m.written = make(chan struct{})
	r.Log.Info().Int("rank", rank).Str("host", j.Host).Int("pid", j.Pid).Msg("peer joined")
	go m.write()
	go r.attend(m)
}

// problemHash is the fingerprint of the run's problem in hexadecimal.
func (r *run) problemHash() string { return fmt.Sprintf("%x", r.Spec.Fingerprint()) }

// label is the declared cluster of a peer that joins; the address from which it has
// come is one of its own.
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
