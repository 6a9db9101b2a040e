package topology

import (
	"fmt"
	"net/netip"
	"strings"
)

// Clusters are the names of the clusters, in the file's order.
func (t *Topology) Clusters() []string { return append([]string(nil), t.clusters...) }

// Cluster finds the cluster of a host by its name and its addresses. Of networks that
// hold an address the narrowest counts; a name without dots in the file also stands for
// that host in any domain. A host that is in no cluster, or in two, is an error that
// says so.
func (t *Topology) Cluster(host string, addresses []netip.Addr) (string, error) {
	found := t.named(host)
	for _, ip := range addresses {
		if e, in := t.holding(ip.Unmap().WithZone("")); in {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return "", &Error{t.file, 0, fmt.Sprintf("the host %q (%s) is in no cluster: add its name, an address or its network", host, listed(addresses))}
	}
	for _, e := range found[1:] {
		if e.cluster != found[0].cluster {
			return "", &Error{t.file, e.line, fmt.Sprintf("the host %q (%s) is in the clusters %q (%s, line %d) and %q (%s): a host is in one",
				host, listed(addresses), found[0].cluster, found[0].text, found[0].line, e.cluster, e.text)}
		}
	}
	return found[0].cluster, nil
}

// named finds the entries of a host's name: itself, before its first part.
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

// holding finds the narrowest network that holds an address.
func (t *Topology) holding(ip netip.Addr) (entry, bool) {
	var best entry
	for _, e := range t.entries {
		if e.prefix.IsValid() && e.prefix.Contains(ip) && (!best.prefix.IsValid() || e.prefix.Bits() > best.prefix.Bits()) {
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
