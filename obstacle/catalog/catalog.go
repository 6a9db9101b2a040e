// Package catalog holds what the program obstacle knows by name: micro-protocols, optional rows of Table I, congestion
// controllers, problems and links. A main package of your own adds to a Set before it runs the program; every flag
// that takes such a name accepts what was added and lists it in its errors.
package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems"
)

// Set is all that a program knows by name. All processes of a run must have the same.
type Set struct {
	// Protocols are the micro-protocols that channels are composed of, and the optional rows of Table I: --congestion
	// takes the rows of group ctp.GroupCongestion, --rows those without a group. See microproto.Catalog.AddRow.
	Protocols *microproto.Catalog
	// Problems are those that obstacle problems lists.
	Problems *problems.Catalog
	// Links are the networks of --network, the one to prefer first. "ether" and "ib" have flags of their own and no
	// Open.
	Links Of[Link]
}

// New returns a Set of what this module provides.
func New() *Set {
	s := &Set{Protocols: ctp.Catalog(), Problems: problems.Builtins()}
	s.Links.entries = []entry[Link]{
		{"ether", "UDP", Link{Network: p2psap.Ethernet}},
		{"ib", "InfiniBand", Link{Network: p2psap.InfiniBand}},
	}
	return s
}

// Link is a kind of network. Peers open theirs beside UDP, which reaches every peer.
type Link struct {
	// Network chooses the columns of Table I. A peer has at most one link of each.
	Network p2psap.Network
	// Open opens the link of one peer. With --network auto, an error leaves the link out; the log holds it.
	Open func(LinkConfig) (microproto.Link, error)
}

// LinkConfig says what a link is opened for.
type LinkConfig struct {
	Name         string            // of the peer; unique in the run
	Run          string            // identifies the run
	Listen       string            // address given by --listen; empty: all
	Neighbours   int               // number of peers that this one exchanges messages with
	MessageBytes int               // size of the longest message
	Log          func(line string) // for news of the link
}

// Optional returns the rows that --congestion and --rows add behind those of Table I, in this order.
func (s *Set) Optional(congestion string, rows []string) ([]p2psap.OptionalRow, error) {
	c, err := s.row("congestion", ctp.GroupCongestion, congestion)
	if err != nil {
		return nil, err
	}
	var out []p2psap.OptionalRow
	if len(c.Columns) > 0 { // otherwise the controller of the table
		out = append(out, c)
	}
	for i, name := range rows {
		r, err := s.row("rows", "", name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(rows[:i], name) {
			return nil, fmt.Errorf("--rows %s is given twice", name)
		}
		out = append(out, r)
	}
	return out, nil
}

func (s *Set) row(flag, group, name string) (p2psap.OptionalRow, error) {
	r, err := s.Protocols.Row(group, name)
	if err != nil {
		err = Unknown(flag, name, s.Protocols.Labels(group))
	}
	return r, err
}

// Flag returns the flag that adds a micro-protocol to the compositions of Table I: --congestion NAME or --rows NAME.
func (s *Set) Flag(protocol string) string {
	for _, r := range slices.Concat(s.Protocols.Rows(ctp.GroupCongestion), s.Protocols.Rows("")) {
		switch {
		case r.Protocol != protocol || len(r.Columns) == 0:
		case r.Group == "":
			return "--rows " + r.Label
		default:
			return "--congestion " + r.Label
		}
	}
	return ""
}

// Names returns the names of all that peers of one run must have alike.
func (s *Set) Names() []string {
	return slices.Concat(s.Protocols.Names(), s.Protocols.Labels(""), s.Protocols.Labels(ctp.GroupCongestion), s.Problems.Names(), s.Links.Names())
}

// Of holds values by name. Its zero value is empty.
type Of[T any] struct{ entries []entry[T] }

type entry[T any] struct {
	name, help string
	value      T
}

// Add lists a value with one line of help. A name may hold neither commas nor spaces. A name twice is an error.
func (c *Of[T]) Add(name, help string, v T) error {
	if name == "" || strings.ContainsAny(name, ", \t\n") {
		return fmt.Errorf("catalog: name %q: want a word without commas and spaces", name)
	}
	if slices.Contains(c.Names(), name) {
		return fmt.Errorf("catalog: %q was added twice", name)
	}
	c.entries = append(c.entries, entry[T]{name, help, v})
	return nil
}

// Names returns the names in the order in which they were added.
func (c *Of[T]) Names() []string {
	names := make([]string, len(c.entries))
	for i, e := range c.entries {
		names[i] = e.name
	}
	return names
}

// Lookup returns the value of a name that a flag was given. The error of an unknown name lists the known ones.
func (c *Of[T]) Lookup(flag, name string) (T, error) {
	for _, e := range c.entries {
		if e.name == name {
			return e.value, nil
		}
	}
	var none T
	return none, Unknown(flag, name, c.Names())
}

// Unknown returns the error of a flag's value that is not one of the known words.
func Unknown(flag, word string, known []string) error {
	return fmt.Errorf("--%s %q%s: want %s", flag, word, spelling.Suggest(word, known), Words(known))
}

// Words lists words for a sentence: "a, b or c".
func Words(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}
