package p2psap

import (
	"fmt"
	"net/netip"
	"time"
)

// Place is what one end says of where it is.
type Placement struct {
	Host    string // equal on two nodes only if they share a host; "": not known
	Process uint64 // of this process on its host
	Cluster string // label that the user gave; "": none
	// Addresses are those at which other hosts reach this one, each with its
	// network's prefix; nil: not known.
	Addresses []netip.Prefix
}

// Evidence is all that is known of where two peers are. Both ends have the same,
// but for the order of the two places.
type Evidence struct {
	Local, Remote Placement
	RTT           time.Duration // the smallest round trip measured between them; 0: not measured
}

// Finding is where the two ends are, and why that is believed.
type Finding struct {
	Locality Locality
	Reason   string
	RTT      time.Duration // 0: not measured
}

// Round trips up to which peers of different hosts count as one cluster. Above the
// RTO floor of the intra-cluster columns (2 ms) every segment would time out there,
// so that is the bound between peers in one network. Where a router is between them
// others may use the path too, and half of it has to do: clusters of one machine
// room are 0.05 to 0.5 ms apart, sites more than 1.
const (
	NetworkRTT = IntraRTOFloor     // in one network
	NearRTT    = IntraRTOFloor / 2 // behind a router
)

// Locate judges evidence. It is pure, and gives both ends the same answer. What was
// declared decides first, then what can be known for sure, then what was measured.
func Locate(e Evidence) Finding {
	f := Finding{Locality: SameCluster, RTT: e.RTT}
	a, b := &e.Local, &e.Remote
	switch {
	case a.Cluster != b.Cluster:
		f.Locality = OtherCluster
		f.Reason = fmt.Sprintf("labels of different clusters: %s and %s", label(min(a.Cluster, b.Cluster)), label(max(a.Cluster, b.Cluster)))
	case a.Host != "" && a.Host == b.Host && a.Process == b.Process:
		f.Locality, f.Reason = SameProcess, "one process of one host"
	case a.Host != "" && a.Host == b.Host:
		f.Locality, f.Reason = SameHost, "two processes of one host"
	case a.Cluster != "":
		f.Reason = fmt.Sprintf("different hosts, both with the label %s", label(a.Cluster))
	case !e.undecided():
		f.Reason = "nothing is known that tells the hosts' clusters apart"
	default:
		f.measured(e)
	}
	return f
}

// measured judges the networks and the round trip between two hosts.
func (f *Finding) measured(e Evidence) {
	network, shared := CommonNetwork(e.Local.Addresses, e.Remote.Addresses)
	where, limit := "no network in common", NearRTT
	if shared {
		where, limit = fmt.Sprintf("both in %v", network), NetworkRTT
	}
	rtt := e.RTT.Round(time.Microsecond)
	switch {
	case e.RTT == 0:
		f.Reason = "different hosts, " + where + ", no round trip measured"
		if !shared {
			f.Locality = OtherCluster
		}
	case e.RTT <= limit:
		f.Reason = fmt.Sprintf("different hosts, %s, round trip %v (near: at most %v)", where, rtt, limit)
	default:
		f.Locality = OtherCluster
		f.Reason = fmt.Sprintf("different hosts, %s, round trip %v (near: at most %v)", where, rtt, limit)
	}
}

// undecided tells that nothing but the networks and the round trip can decide.
func (e *Evidence) undecided() bool {
	a, b := &e.Local, &e.Remote
	return a.Cluster == "" && b.Cluster == "" && a.Host != "" && b.Host != "" && a.Host != b.Host && e.addressed()
}

// addressed tells that both ends have said which addresses they have.
func (e *Evidence) addressed() bool { return len(e.Local.Addresses) > 0 && len(e.Remote.Addresses) > 0 }

func label(s string) string {
	if s == "" {
		return "(none)"
	}
	return fmt.Sprintf("%q", s)
}

// CommonNetwork finds a network that two hosts have in common: the one of the longest
// prefix, and of those the lowest. An address that both have (the bridge of containers
// on each, say) belongs to two networks of one number, and is no evidence; nor are
// loopback and link-local addresses, which every host has.
func CommonNetwork(a, b []netip.Prefix) (netip.Prefix, bool) {
	var best netip.Prefix
	for _, p := range a {
		for _, q := range b {
			if !subnet(p) || !subnet(q) || p.Addr() == q.Addr() || !p.Contains(q.Addr()) || !q.Contains(p.Addr()) {
				continue
			}
			n := p.Masked()
			if q.Bits() > p.Bits() {
				n = q.Masked()
			}
			if !best.IsValid() || n.Bits() > best.Bits() || n.Bits() == best.Bits() && n.Addr().Less(best.Addr()) {
				best = n
			}
		}
	}
	return best, best.IsValid()
}

// subnet tells whether a prefix can say anything about neighbours.
func subnet(p netip.Prefix) bool {
	ip := p.Addr()
	return p.IsValid() && p.Bits() > 0 && !p.IsSingleIP() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !ip.IsUnspecified()
}
