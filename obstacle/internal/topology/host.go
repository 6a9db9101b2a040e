package topology

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/internal/yamldoc"
)

// Clusters returns the names of the clusters, in the order of the file.
func (t *Topology) Clusters() []string { return slices.Clone(t.clusters) }

// Cluster returns the cluster of a host by its name and its addresses. If several networks of the file hold an address,
// the narrowest one applies. A name without dots in the file matches that host in any domain. It returns an error for a
// host in no cluster or in several.
func (t *Topology) Cluster(host string, addresses []netip.Addr) (string, error) {
	found := t.named(host)
	for _, ip := range addresses {
		if e, in := t.holding(ip.Unmap().WithZone("")); in {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return "", yamldoc.Source{File: t.file}.Errorf("the host %q (%s) is in no cluster: add its name, an "+
			"address or its network", host, listed(addresses))
	}
	for _, e := range found[1:] {
		if e.cluster != found[0].cluster {
			return "", yamldoc.Source{File: t.file, Line: e.line}.Errorf(
				"the host %q (%s) is in the clusters %q (%s, line %d) and %q (%s): a host belongs to one cluster",
				host, listed(addresses), found[0].cluster, found[0].text, found[0].line, e.cluster, e.text)
		}
	}
	return found[0].cluster, nil
}

// named returns the entry of the host's name, or else of its first label.
func (t *Topology) named(host string) []entry {
	short, _, _ := strings.Cut(host, ".")
	for _, name := range []string{host, short} {
		for _, e := range t.entries {
			if !e.prefix.IsValid() && strings.EqualFold(e.text, name) {
				return []entry{e}
			}
		}
	}
	return nil
}

// holding returns the narrowest network that contains an address.
func (t *Topology) holding(ip netip.Addr) (entry, bool) {
	var best entry
	for _, e := range t.entries {
		if e.prefix.Contains(ip) && (!best.prefix.IsValid() || e.prefix.Bits() > best.prefix.Bits()) {
			best = e
		}
	}
	return best, best.prefix.IsValid()
}

func listed(addresses []netip.Addr) string {
	if len(addresses) == 0 {
		return "no address"
	}
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}
