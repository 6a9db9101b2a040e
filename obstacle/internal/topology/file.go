// Package topology reads files that say which hosts form a cluster.
package topology

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of a file.
const (
	maxFileBytes = 64 << 10
	maxNameBytes = 255 // of a cluster
)

// Error is what is wrong with a file, and where. Its text is "FILE:LINE: reason".
type Error struct {
	File   string
	Line   int // 0: the whole file
	Reason string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// entry puts a host, or all hosts of a network, into a cluster.
type entry struct {
	text    string
	prefix  netip.Prefix // not valid: text is a host's name
	cluster string
	line    int
}

// Topology is a file that has been read. It does not change.
type Topology struct {
	file     string
	clusters []string // in the file's order
	entries  []entry
}

// Read reads a file. Errors about its content are of type *Error.
func Read(name string) (*Topology, error) {
	f, err := os.Stat(name)
	if err == nil && f.Size() > maxFileBytes {
		return nil, &Error{name, 0, fmt.Sprintf("%d bytes; a topology file has at most %d", f.Size(), maxFileBytes)}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("topology file: %w", err)
	}
	return Parse(name, text)
}

// Parse understands a text; name is that of its file, for messages.
func Parse(name string, text []byte) (*Topology, error) {
	root, err := document(name, text)
	if err != nil {
		return nil, err
	}
	t := &Topology{file: name}
	top, err := t.mapping(root, "the file", "a mapping with the key clusters")
	if err != nil {
		return nil, err
	}
	for _, v := range top {
		if key := v.Key.String(); key != "clusters" {
			return nil, t.errorf(v.Key, "the key %q is not known; there is clusters", key)
		}
		clusters, err := t.mapping(v.Value, "clusters", "a mapping from the names of clusters to lists of hosts")
		if err != nil {
			return nil, err
		}
		for _, c := range clusters {
			if err := t.addCluster(c); err != nil {
				return nil, err
			}
		}
	}
	if len(t.clusters) == 0 {
		return nil, t.errorf(root, "no cluster: want clusters: {NAME: [HOST, …], …}")
	}
	return t, nil
}

// document returns the value of a text that holds one YAML document.
func document(name string, text []byte) (ast.Node, error) {
	whole := &Error{File: name}
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), []byte("\r\n"), []byte("\n"))
	switch {
	case len(text) > maxFileBytes:
		whole.Reason = fmt.Sprintf("%d bytes; a topology file has at most %d", len(text), maxFileBytes)
		return nil, whole
	case !utf8.Valid(text) || bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		whole.Reason = "a topology file is UTF-8 text without control characters"
		return nil, whole
	}
	tree, err := parser.ParseBytes(text, 0)
	var located yaml.Error
	switch {
	case errors.As(err, &located):
		if at := located.GetToken(); at != nil && at.Position != nil {
			whole.Line = at.Position.Line
		}
		whole.Reason = "this is not YAML: " + located.GetMessage()
		return nil, whole
	case err != nil:
		whole.Reason = fmt.Sprintf("this is not YAML: %v", err)
		return nil, whole
	case len(tree.Docs) != 1 || tree.Docs[0].Body == nil:
		whole.Reason = "a topology file holds one document, clusters: {NAME: [HOST, …], …}"
		return nil, whole
	}
	return tree.Docs[0].Body, nil
}

func (t *Topology) errorf(at ast.Node, format string, args ...any) error {
	return &Error{t.file, lineOf(at), fmt.Sprintf(format, args...)}
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// mapping is what a node holds if it is a mapping.
func (t *Topology) mapping(n ast.Node, what, want string) ([]*ast.MappingValueNode, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	}
	return nil, t.errorf(n, "%s is %s; want %s", what, kind(n), want)
}

func kind(n ast.Node) string {
	if n == nil {
		return "nothing"
	}
	return "a " + strings.ToLower(n.Type().YAMLName())
}

// word is the text of a plain value: a host or an address may look like a number.
func word(n ast.Node) (string, bool) {
	s, is := n.(ast.ScalarNode)
	if !is || n.Type() == ast.NullType || n.GetToken() == nil {
		return "", false
	}
	_, block := s.(*ast.LiteralNode)
	return strings.TrimSpace(n.GetToken().Value), !block
}

func (t *Topology) addCluster(v *ast.MappingValueNode) error {
	name, plain := word(v.Key)
	switch {
	case !plain || name == "" || len(name) > maxNameBytes:
		return t.errorf(v.Key, "the name of a cluster has 1 to %d bytes", maxNameBytes)
	case contains(t.clusters, name):
		return t.errorf(v.Key, "the cluster %q stands twice", name)
	}
	list, is := v.Value.(*ast.SequenceNode)
	if !is || len(list.Values) == 0 {
		return t.errorf(v.Value, "the hosts of the cluster %q are %s; want a list with at least one", name, kind(v.Value))
	}
	t.clusters = append(t.clusters, name)
	for _, n := range list.Values {
		if err := t.addHost(name, n); err != nil {
			return err
		}
	}
	return nil
}

func (t *Topology) addHost(cluster string, n ast.Node) error {
	text, plain := word(n)
	if !plain || text == "" || len(text) > maxNameBytes || strings.ContainsAny(text, " \t\n") {
		return t.errorf(n, "a host of the cluster %q is not a word; want a name, an address or a network as 10.1.0.0/16", cluster)
	}
	e := entry{text: text, cluster: cluster, line: lineOf(n)}
	if ip, err := netip.ParseAddr(text); err == nil {
		ip = ip.Unmap().WithZone("")
		e.prefix = netip.PrefixFrom(ip, ip.BitLen())
	} else if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return t.errorf(n, "%q is not a network; want ADDRESS/BITS, as 10.1.0.0/16", text)
		}
		e.prefix = p.Masked()
	}
	for _, known := range t.entries {
		same := known.prefix == e.prefix && (e.prefix.IsValid() || strings.EqualFold(known.text, text))
		switch {
		case same && known.cluster != cluster:
			return t.errorf(n, "%s is in the clusters %q (line %d) and %q: a host is in one", text, known.cluster, known.line, cluster)
		case same:
			return t.errorf(n, "%s stands twice in the cluster %q (line %d)", text, cluster, known.line)
		}
	}
	t.entries = append(t.entries, e)
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
