package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/finite"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/cmd/obstacle/internal/rendezvous"
)

// Session is one end's view of a session between two peers.
type Session struct {
	From         int           `json:"from"` // rank of this end
	To           int           `json:"to"`
	Name         string        `json:"name"`
	Mode         string        `json:"mode"`
	Locality     string        `json:"locality"`
	Why          string        `json:"why"`
	RTT          finite.Number `json:"rtt_seconds"` // smallest over the control channel
	Network      string        `json:"network"`
	Column       string        `json:"column"` // of Table I
	Composition  []string      `json:"composition"`
	Protection   []string      `json:"protection"` // the composite below it; empty: none
	Epoch        int           `json:"epoch"`
	Changes      uint32        `json:"changes"`            // of composition, since it was opened
	PauseSeconds float64       `json:"last_pause_seconds"` // of the last change
	Distance     string        `json:"distance,omitempty"` // "near" or "far", when the monitor has found it to be other than the locality says
	Lossy        bool          `json:"lossy"`              // the monitor has found that much is lost
	PathRTT      finite.Number `json:"path_rtt_seconds"`   // as the sessions with that peer measure it, queues included
	PathLoss     float64       `json:"path_loss"`          // share of segments sent again
	SegmentBytes int           `json:"segment_bytes"`

	MessagesSent     uint64 `json:"messages_sent"`
	MessagesReceived uint64 `json:"messages_received"`
	BytesSent        uint64 `json:"bytes_sent"`
	BytesReceived    uint64 `json:"bytes_received"`
	SegmentsSent     uint64 `json:"segments_sent"`
	SegmentsReceived uint64 `json:"segments_received"`
	Retransmitted    uint64 `json:"retransmitted"`
	Dropped          uint64 `json:"segments_dropped"`
	Overwritten      uint64 `json:"values_replaced"`
}

// SessionOf is the view of a peer of rank from.
func SessionOf(from int, h rendezvous.Session) Session {
	s := Session{
		From: from, To: h.Peer, Name: h.Name, Mode: h.Mode, Locality: h.Locality, Why: h.Why, RTT: finite.Number(h.RTTSeconds),
		Network: h.Network, Column: h.Column, Composition: h.Composition, Protection: append([]string{}, h.Protection...),
		Epoch: h.Epoch, Changes: h.Changes, PauseSeconds: h.PauseSeconds, SegmentBytes: h.SegmentBytes,
		MessagesSent: h.MessagesSent, MessagesReceived: h.MessagesReceived, BytesSent: h.BytesSent, BytesReceived: h.BytesReceived,
		SegmentsSent: h.SegmentsSent, SegmentsReceived: h.SegmentsReceived, Retransmitted: h.Retransmitted,
		Dropped: h.Dropped, Overwritten: h.Overwritten,
	}
	s.Distance, s.Lossy, s.PathRTT, s.PathLoss = h.Distance, h.Lossy, finite.Number(h.PathRTT), h.PathLoss
	if h.RTTSeconds == 0 {
		s.RTT = finite.NaN()
	}
	if h.PathRTT == 0 {
		s.PathRTT = finite.NaN()
	}
	return s
}

func sessions(o *launch.Outcome) []Session {
	all := []Session{}
	for rank, p := range o.Peers {
		for _, h := range p.Sessions {
			all = append(all, SessionOf(rank, h))
		}
	}
	return all
}

// channels writes the sessions that are alike in one line each: what for, where, and of
// what they are composed.
func channels(w io.Writer, all []Session) {
	type kind struct{ what, mode, locality, network, composition, below string }
	var order []kind
	ends, reason := map[kind]int{}, map[kind]string{} // a session has two ends
	for _, s := range all {
		what, _, _ := strings.Cut(s.Name, "/")
		k := kind{what, s.Mode, place(s), s.Network, strings.Join(s.Composition, ", "), below(s.Protection)}
		if ends[k] == 0 {
			order = append(order, k)
			reason[k] = s.Why
		} else if reason[k] != s.Why {
			reason[k] = ""
		}
		ends[k]++
	}
	slices.SortStableFunc(order, func(a, b kind) int { return -cmp.Compare(a.what, b.what) }) // halo before agree
	for i, k := range order {
		heading := ""
		if i == 0 {
			heading = "channels"
		}
		fmt.Fprintf(w, "%s\t%d %s, %s, %s, %s: %s%s\n", heading, (ends[k]+1)/2, k.what, k.mode, k.locality, k.network, k.composition, k.below)
		if reason[k] != "" && (i == 0 || reason[k] != reason[order[i-1]]) {
			fmt.Fprintf(w, "\t  %s\n", reason[k])
		}
	}
}
