// Package topology reads files that assign hosts to clusters.
package topology

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/yamldoc"
)

const (
	maxFileBytes = 64 << 10
	maxNameBytes = 255 // of a cluster or a host
)

// Error describes an invalid file. Its text is "FILE:LINE: KEY: REASON".
type Error = yamldoc.Error

// entry assigns a host, or all hosts of a network, to a cluster.
type entry struct {
	text    string
	prefix  netip.Prefix // invalid if text is the name of a host
	cluster string
	line    int
}

// Topology is the content of a file. It does not change.
type Topology struct {
	file     string
	clusters []string // in the order of the file
	entries  []entry
}

// Read reads a file. Its errors are of type *Error.
func Read(name string) (*Topology, error) {
	text, err := input.ReadFile(name, maxFileBytes)
	if err != nil {
		return nil, &Error{File: name, Reason: err.Error()}
	}
	return Parse(name, text)
}

// Parse parses the text of a file; errors contain its name.
func Parse(name string, text []byte) (*Topology, error) {
	root, err := yamldoc.Parse(name, "topology file", text, maxFileBytes)
	if err != nil {
		return nil, err
	}
	top, err := yamldoc.Mapping(yamldoc.Source{File: name}, root, "clusters")
	if err != nil {
		return nil, err
	}
	names, lists, err := top[0].Named("clusters")
	if err != nil {
		return nil, err
	}
	t := &Topology{file: name}
	for i, cluster := range names {
		if err := t.addCluster(cluster, lists[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Topology) addCluster(name string, e yamldoc.Entry) error {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return e.Errorf("the name of a cluster has 1 to %d bytes", maxNameBytes)
	case slices.Contains(t.clusters, name):
		return e.Errorf("the file has two clusters of this name")
	}
	hosts, err := e.List("hosts")
	if err != nil {
		return err
	}
	if len(hosts) == 0 {
		return e.Errorf("there should be at least one host")
	}
	t.clusters = append(t.clusters, name)
	for _, host := range hosts {
		if err := t.addHost(name, host); err != nil {
			return err
		}
	}
	return nil
}

func (t *Topology) addHost(cluster string, at yamldoc.Entry) error {
	text := word(at.Value)
	if text == "" || len(text) > maxNameBytes || strings.ContainsAny(text, " \t\n") {
		return at.Errorf("want a name, an address or a network such as 10.1.0.0/16, not %s", yamldoc.Kind(at.Value))
	}
	e := entry{text: text, cluster: cluster, line: at.Line}
	if ip, err := netip.ParseAddr(text); err == nil {
		ip = ip.Unmap().WithZone("")
		e.prefix = netip.PrefixFrom(ip, ip.BitLen())
	} else if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return at.Errorf("%q is not a network: want ADDRESS/BITS, such as 10.1.0.0/16", text)
		}
		e.prefix = p.Masked()
	}
	for _, known := range t.entries {
		same := known.prefix == e.prefix && (e.prefix.IsValid() || strings.EqualFold(known.text, text))
		switch {
		case same && known.cluster != cluster:
			return at.Errorf("%s is also in cluster %q (line %d): a host belongs to one cluster", text, known.cluster,
				known.line)
		case same:
			return at.Errorf("%s is already in this cluster (line %d)", text, known.line)
		}
	}
	t.entries = append(t.entries, e)
	return nil
}

// word returns the text of a plain value, "" for other values. Hosts and addresses may look like numbers.
func word(n ast.Node) string {
	s, is := n.(ast.ScalarNode)
	if _, block := s.(*ast.LiteralNode); !is || block || n.Type() == ast.NullType || n.GetToken() == nil {
		return ""
	}
	return strings.TrimSpace(n.GetToken().Value)
}
