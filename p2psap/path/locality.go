package path

import (
	"fmt"
	"net/netip"
	"time"
)

// Placement is what one end declares about where it runs.
type Placement struct {
	Host    string // identity of the host; equal on two nodes only if they share it; "": not known
	Process uint64 // number of the process on its host
	Cluster string // label given by the user; "": none
	// Addresses are those at which other hosts reach this end, each with the prefix of its
	// network; nil: not known.
	Addresses []netip.Prefix
}

// Evidence is what the two ends know about where they are. Both have the same evidence, with
// Local and Remote exchanged.
type Evidence struct {
	Local, Remote Placement
	RTT           time.Duration // smallest round trip measured between them; 0: not measured
}

// Finding is the locality of two ends and the reason for it.
type Finding struct {
	Locality Locality
	Reason   string
	RTT      time.Duration // 0: not measured
}

// Largest round trips at which peers of different hosts count as one cluster. NetworkRTT, for
// peers in one IP network, is the floor of the retransmission time-out inside a cluster: above
// it every segment would time out. NearRTT, for peers with a router between them, is half of
// that, since others may use the path too. Clusters of one machine room are 0.05 to 0.5 ms
// apart, sites more than 1 ms.
const (
	NetworkRTT = 2 * time.Millisecond
	NearRTT    = NetworkRTT / 2
)

// Locate returns the locality that the evidence shows; both ends get the same. Labels decide
// first, then the identities of hosts and processes, then the networks and the round trip.
func Locate(e Evidence) Finding {
	f := Finding{Locality: SameCluster, RTT: e.RTT}
	a, b := &e.Local, &e.Remote
	switch {
	case a.Cluster != b.Cluster:
		f.Locality = OtherCluster
		low, high := min(a.Cluster, b.Cluster), max(a.Cluster, b.Cluster)
		f.Reason = fmt.Sprintf("labels of different clusters: %s and %s", quoteLabel(low), quoteLabel(high))
	case a.Host != "" && a.Host == b.Host && a.Process == b.Process:
		f.Locality, f.Reason = SameProcess, "one process of one host"
	case a.Host != "" && a.Host == b.Host:
		f.Locality, f.Reason = SameHost, "two processes of one host"
	case a.Cluster != "":
		f.Reason = fmt.Sprintf("different hosts, both with the label %s", quoteLabel(a.Cluster))
	case !e.Measurable():
		f.Reason = "nothing is known that tells the hosts' clusters apart"
	default:
		f.compareRTT(e)
	}
	return f
}

// compareRTT decides by the networks of two hosts and the round trip between them.
func (f *Finding) compareRTT(e Evidence) {
	where, limit := "no network in common", NearRTT
	network, shared := CommonNetwork(e.Local.Addresses, e.Remote.Addresses)
	if shared {
		where, limit = fmt.Sprintf("both in %v", network), NetworkRTT
	}
	if e.RTT == 0 {
		f.Reason = "different hosts, " + where + ", no round trip measured"
		if !shared {
			f.Locality = OtherCluster
		}
		return
	}
	rtt := e.RTT.Round(time.Microsecond)
	f.Reason = fmt.Sprintf("different hosts, %s, round trip %v (near: at most %v)", where, rtt, limit)
	if e.RTT > limit {
		f.Locality = OtherCluster
	}
}

// Measurable reports whether only the networks and the round trip can decide.
func (e *Evidence) Measurable() bool {
	a, b := &e.Local, &e.Remote
	return a.Cluster == "" && b.Cluster == "" && a.Host != "" && b.Host != "" && a.Host != b.Host && e.Addressed()
}

// Addressed reports whether both ends declared their addresses.
func (e *Evidence) Addressed() bool { return len(e.Local.Addresses) > 0 && len(e.Remote.Addresses) > 0 }

func quoteLabel(s string) string {
	if s == "" {
		return "(none)"
	}
	return fmt.Sprintf("%q", s)
}

// CommonNetwork returns a network that two hosts have in common: the one with the longest
// prefix, and of those the lowest. An address that both hosts have, such as that of a
// container bridge on each, is no evidence; neither are loopback and link-local addresses.
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

// subnet reports whether a prefix names a network of neighbours.
func subnet(p netip.Prefix) bool {
	ip := p.Addr()
	return p.IsValid() && p.Bits() > 0 && !p.IsSingleIP() &&
		!ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !ip.IsUnspecified()
}
