// Package catalog holds what the program obstacle knows by name: micro-protocols, optional rows of Table I,
// congestion controllers, methods, schemes, problems and links. A main package of your own adds to a Set before it
// runs the program; every flag that takes such a name accepts what was added and lists it in its errors.
package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/stream"
)

// Set is all that a program knows by name. All processes of a run must have the same.
type Set struct {
	// Protocols are the micro-protocols of sessions. Its rows of group "" are the values of --rows, those of
	// ctp.GroupCongestion the values of --congestion.
	Protocols *microproto.Catalog
	// Methods are the values of --method.
	Methods *solver.Catalog
	// Schemes are the values of --scheme.
	Schemes Of[Scheme]
	// Problems are those that obstacle problems lists: obstacle problems and iterations.
	Problems *problems.Catalog
	// Links are the values of --network, the network to prefer first. Of those of New only stream has an Open.
	Links Of[Link]
}

// New returns a Set of what this module provides.
func New() *Set {
	s := &Set{Protocols: ctp.Catalog(), Methods: solver.Methods(), Problems: problems.Builtins()}
	s.Schemes.entries = []entry[Scheme]{
		{"sync", "relaxation k reads iterate k", fixed(iterate.Synchronous())},
		{"async", "a relaxation reads the newest values", fixed(iterate.Asynchronous())},
		{"delay", "as delay:K, relaxation k reads iterates from k−K on", delay},
		{"hybrid", "synchronous within a cluster, asynchronous between", hybrid},
	}
	s.Links.entries = []entry[Link]{
		{"ether", "UDP", Link{Network: p2psap.Ethernet}},
		{"memory", "memory of one process", Link{Network: p2psap.Memory}},
		{"shm", "shared memory of one host", Link{Network: p2psap.SharedMemory}},
		{"ib", "InfiniBand", Link{Network: p2psap.InfiniBand}},
		{"stream", "kernel TCP", Link{Network: p2psap.Stream, Open: openStream, Compare: true, Synchronous: true}},
	}
	return s
}

// Link is a kind of network. Peers open theirs beside UDP, which reaches every peer.
type Link struct {
	// Network chooses the columns of Table I. A peer has at most one link of each.
	Network p2psap.Network
	// Open opens the link of one peer. With --network auto, an error leaves the link out; the log holds it.
	Open func(LinkConfig) (microproto.Link, error)
	// Compare: with --network auto, peers on different hosts of a cluster compare the link with UDP when they meet, and
	// use it only where it is faster; see driver.Rail. Where there is nothing to compare, the link stands by.
	Compare bool
	// Synchronous links are for synchronous sessions. Asynchronous ones use them only where UDP carries nothing.
	Synchronous bool
}

func openStream(c LinkConfig) (microproto.Link, error) {
	return stream.Open(stream.Config{
		Name: c.Name, Listen: c.Listen, PortLow: c.PortLow, PortHigh: c.PortHigh, ListenLate: c.Standby, Log: c.Log,
	})
}

// LinkConfig says what a link is opened for.
type LinkConfig struct {
	Name         string            // of the peer; unique in the run
	Run          string            // identifies the run
	Listen       string            // host given by --listen; empty: all addresses
	PortLow      int               // first port of --port-range; 0: any port
	PortHigh     int               // the last one
	Neighbours   int               // number of peers that this one exchanges messages with
	MessageBytes int               // size of the longest message
	Standby      bool              // the link is used only where UDP carries nothing
	Log          func(line string) // for news of the link
}

// Optional returns the rows that --congestion and --rows add to those of Table I, in this order. rows have the form
// NAME:key=value:…, where the values replace those of microproto.Row.Options.
func (s *Set) Optional(congestion string, rows []string) ([]p2psap.OptionalRow, error) {
	c, err := s.row("congestion", ctp.GroupCongestion, congestion)
	if err != nil {
		return nil, err
	}
	var out []p2psap.OptionalRow
	if len(c.Columns) > 0 { // otherwise it is the controller of the table
		out = append(out, c)
	}
	var names []string
	for _, row := range rows {
		name, settings, _ := strings.Cut(row, ":")
		r, err := s.row("rows", "", name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("--rows %s is given twice", name)
		}
		names = append(names, name)
		if r.Options, err = setOptions(row, r.Options, settings); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// setOptions returns a row's options with the settings key=value:… of a user. Values are integers or durations, which
// become nanoseconds.
func setOptions(row string, of microproto.Options, settings string) (microproto.Options, error) {
	if settings == "" {
		return of, nil
	}
	out := maps.Clone(of)
	for _, s := range strings.Split(settings, ":") {
		key, text, is := strings.Cut(s, "=")
		if _, known := of[key]; !is || !known {
			keys := "it has no options"
			if len(of) > 0 {
				keys = "its options are " + strings.Join(slices.Sorted(maps.Keys(of)), ", ")
			}
			return nil, fmt.Errorf("--rows %s: %q is no key=value of an option of the row; %s", row, s, keys)
		}
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			d, e := time.ParseDuration(text)
			if e != nil {
				return nil, fmt.Errorf("--rows %s: %s is %q: want an integer, or a duration such as 2ms", row, key, text)
			}
			value = int64(d)
		}
		out[key] = value
	}
	return out, nil
}

func (s *Set) row(flag, group, label string) (microproto.Row, error) {
	r, err := s.Protocols.Row(group, label)
	if err != nil {
		err = Unknown(flag, label, s.Protocols.Labels(group))
	}
	return r, err
}

// Flag returns the flag that adds a micro-protocol to the compositions of Table I, "" if none does.
func (s *Set) Flag(protocol string) string {
	for group, flag := range map[string]string{"": "--rows ", ctp.GroupCongestion: "--congestion "} {
		for i, r := range s.Protocols.Rows(group) {
			if r.Protocol == protocol && len(r.Columns) > 0 {
				return flag + s.Protocols.Labels(group)[i]
			}
		}
	}
	return ""
}

// Names returns the names of all that peers of one run must have alike.
func (s *Set) Names() []string {
	return slices.Concat(s.Protocols.Names(), s.Protocols.Labels(""), s.Protocols.Labels(ctp.GroupCongestion),
		s.Methods.Names(), s.Schemes.Names(), s.Problems.Names(), s.Links.Names())
}

// Of holds values by name. Its zero value is empty.
type Of[T any] struct{ entries []entry[T] }

type entry[T any] struct {
	name, help string
	value      T
}

// Add lists a value with one line of help. A name may hold neither commas nor spaces. A name twice is an error.
func (c *Of[T]) Add(name, help string, v T) error {
	if name == "" || strings.ContainsAny(name, ", ") || spelling.Visible(name) != name {
		return fmt.Errorf("catalog: name %q: want a word that can be printed, without commas and spaces", name)
	}
	if slices.Contains(c.Names(), name) {
		return fmt.Errorf("catalog: %q was added twice", name)
	}
	c.entries = append(c.entries, entry[T]{name, help, v})
	return nil
}

// Names returns the names in the order in which they were added.
func (c *Of[T]) Names() []string {
	return c.each(func(e entry[T]) string { return e.name })
}

// Help returns the lines of help, "name: help", in the same order.
func (c *Of[T]) Help() []string {
	return c.each(func(e entry[T]) string { return e.name + ": " + e.help })
}

func (c *Of[T]) each(text func(entry[T]) string) []string {
	out := make([]string, len(c.entries))
	for i, e := range c.entries {
		out[i] = text(e)
	}
	return out
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
