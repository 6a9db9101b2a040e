package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Session is a session as one of its ends sees it.
type Session struct {
	From int `json:"from"` // rank of this end
	To   int `json:"to"`
	rendezvous.Channel
	RTT         nullable.Number `json:"rtt_seconds"`      // minimum over the control channel
	PathRTT     nullable.Number `json:"path_rtt_seconds"` // as the sessions measure it, including queueing
	Dropped     uint64          `json:"segments_dropped"`
	Overwritten uint64          `json:"values_replaced"`
}

// SessionOf returns a session of the peer of rank from.
func SessionOf(from int, h rendezvous.Session) Session {
	s := Session{
		From: from, To: h.Peer, Channel: h.Channel, RTT: nullable.Time(h.RTTSeconds), PathRTT: nullable.Time(h.PathRTT),
		Dropped: h.Dropped, Overwritten: h.Overwritten,
	}
	s.Protection = append([]string{}, h.Protection...) // [] in JSON instead of null
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

// channels writes one line for sessions with equal purpose, mode, place, network and composition.
func channels(w io.Writer, all []Session) {
	type kind struct{ what, mode, locality, network, composition, below string }
	var order []kind
	ends, reason := map[kind]int{}, map[kind]string{} // a session has two ends
	for _, s := range all {
		what, _, _ := strings.Cut(s.Name, "/")
		k := kind{what, s.Mode, place(s), s.Network, strings.Join(s.Composition, ", "), below(s.Protection)}
		why := s.Why
		if s.Locality == p2psap.SameHost.String() {
			why = whyThere(s)
		}
		if ends[k] == 0 {
			order = append(order, k)
			reason[k] = why
		} else if reason[k] != why {
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
		fmt.Fprintf(w, "%s\t%d %s, %s, %s, %s: %s%s\n",
			heading, (ends[k]+1)/2, k.what, k.mode, k.locality, k.network, k.composition, k.below)
		if reason[k] != "" && (i == 0 || reason[k] != reason[order[i-1]]) {
			fmt.Fprintf(w, "\t  %s\n", reason[k])
		}
	}
}
