// Package traces reads the trace files of a run together, and writes what they hold in the formats of other programs.
package traces

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/trace"
)

// Set is what the files of a run hold. Nodes are in the order of the files.
type Set struct {
	Nodes []*trace.Node
	// Offsets are what has to be added to the instants of each node for the time of all, in nanoseconds. The earliest
	// record is at 0.
	Offsets []int64
	// Uncertain is by how much the clock of a node may be wrong against the one that it was compared with, in
	// nanoseconds; −1: it was only compared by the clock of its host.
	Uncertain []int64
	Messages  []Message
	Truncated []string // names of files that end early
}

// Message is a message whose beginning and end are both recorded.
type Message struct {
	From, To     int // nodes
	Sent, Unread int // records: Send at From, Receive at To
}

// Check returns why Read refuses a file that starts with these bytes.
func Check(preamble []byte) error {
	if err := trace.CheckPreamble(preamble); !errors.Is(err, trace.ErrTruncated) {
		return err
	}
	return nil // Read notes that it ends early
}

// Read reads the files of these names by read, whose errors name the file.
func Read(names []string, read func(name string) ([]byte, error)) (*Set, error) {
	s := &Set{}
	for _, name := range names {
		b, err := read(name)
		if err != nil {
			return nil, err
		}
		nodes, err := trace.Parse(b)
		if errors.Is(err, trace.ErrTruncated) {
			s.Truncated = append(s.Truncated, name)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.Nodes = append(s.Nodes, nodes...)
	}
	if len(s.Nodes) == 0 {
		return nil, fmt.Errorf("%s: no node was recorded", names[0])
	}
	s.match()
	s.align()
	return s, nil
}

// Of returns a set of nodes.
func Of(nodes ...*trace.Node) *Set {
	s := &Set{Nodes: nodes}
	s.match()
	s.align()
	return s
}

// Time returns the time of a record in nanoseconds since the earliest of all.
func (s *Set) Time(node int, r *trace.Record) int64 { return r.At + s.Offsets[node] }

// messageKey identifies a message. number counts the messages of a tag where each arrives once; elsewhere it is the
// label.
type messageKey struct {
	run, session, from, to string
	tag                    uint32
	asynchronous           bool
	number                 uint64
}

func (s *Set) key(n *trace.Node, r *trace.Record) messageKey {
	of := n.Session(r.Session)
	k := messageKey{run: n.Run, session: of.Name, from: n.Name, to: of.Peer, tag: r.Tag, number: uint64(r.Value)}
	if l := n.Layout(r.Session, r.Epoch); l != nil && l.Asynchronous {
		k.asynchronous, k.number = true, r.Number
	}
	if r.Kind == trace.Receive {
		k.from, k.to = k.to, k.from
	}
	return k
}

// match finds the messages.
func (s *Set) match() {
	type at struct{ node, record int }
	sent := map[messageKey]at{}
	for i, n := range s.Nodes {
		for j := range n.Records {
			if r := &n.Records[j]; r.Kind == trace.Send {
				sent[s.key(n, r)] = at{i, j}
			}
		}
	}
	for i, n := range s.Nodes {
		for j := range n.Records {
			r := &n.Records[j]
			if r.Kind != trace.Receive {
				continue
			}
			if from, ok := sent[s.key(n, r)]; ok && from.node != i {
				s.Messages = append(s.Messages, Message{from.node, i, from.record, j})
			}
		}
	}
}

// clockPair is what is known of the difference of two nodes' offsets.
type clockPair struct {
	low, high     int64 // by messages, which arrive after they were sent
	ping, off     int64 // half of the shortest round trip of the control channel, or by one clock, and the difference
	bounds, pings bool
}

// sameHostError is by how much the clocks of two processes of one host differ, at most.
const sameHostError = 1000

// estimate returns the difference of the offsets and how wrong it may be; false: nothing is known.
func (c *clockPair) estimate() (difference, wrong int64, ok bool) {
	both := c.bounds && c.low != minInstant && c.high != maxInstant && c.low <= c.high
	switch {
	case c.pings && both:
		return min(max(c.off, c.low), c.high), min(c.ping, (c.high-c.low)/2), true
	case c.pings && c.bounds && c.low <= c.high: // messages passed one way
		return min(max(c.off, c.low), c.high), c.ping, true
	case c.pings:
		return c.off, c.ping, true
	case both:
		return c.low + (c.high-c.low)/2, (c.high - c.low) / 2, true
	}
	return 0, 0, false
}

const (
	maxInstant = 1 << 62
	minInstant = -maxInstant
)

// align computes the offsets. Beginning with the first node, it adds the node whose clock is known best against one
// that was added before. Nodes that nothing was exchanged with have the clocks of their hosts.
func (s *Set) align() {
	n := len(s.Nodes)
	s.Offsets, s.Uncertain = make([]int64, n), make([]int64, n)
	if n == 0 {
		return
	}
	pairs := s.clockPairs()
	done := make([]bool, n)
	done[0] = true
	for range n - 1 {
		best, from, off, wrong := -1, 0, int64(0), int64(maxInstant)
		for i := range n {
			for j := range n {
				if !done[i] || done[j] {
					continue
				}
				if c := pairs[[2]int{i, j}]; c != nil {
					if d, w, ok := c.estimate(); ok && w < wrong {
						best, from, off, wrong = j, i, d, w
					}
				}
			}
		}
		if best < 0 {
			best = slices.Index(done, false)
			off, wrong = s.Nodes[best].Began-s.Nodes[0].Began, -1
		}
		done[best] = true
		s.Offsets[best], s.Uncertain[best] = s.Offsets[from]+off, wrong
	}
	first := int64(maxInstant)
	for i, node := range s.Nodes {
		if node.Virtual {
			s.Offsets[i], s.Uncertain[i] = node.Began, 0
		}
		if len(node.Records) > 0 {
			first = min(first, node.Records[0].At+s.Offsets[i])
		}
	}
	if first < maxInstant {
		for i := range s.Offsets {
			s.Offsets[i] -= first
		}
	}
}

// clockPairs returns what is known of every ordered pair of nodes.
func (s *Set) clockPairs() map[[2]int]*clockPair {
	pairs := map[[2]int]*clockPair{}
	of := func(i, j int) *clockPair {
		c := pairs[[2]int{i, j}]
		if c == nil {
			c = &clockPair{low: minInstant, high: maxInstant}
			pairs[[2]int{i, j}] = c
		}
		return c
	}
	for _, m := range s.Messages {
		d := s.Nodes[m.From].Records[m.Sent].At - s.Nodes[m.To].Records[m.Unread].At
		c := of(m.From, m.To)
		c.low, c.bounds = max(c.low, d), true
		c = of(m.To, m.From)
		c.high, c.bounds = min(c.high, -d), true
	}
	s.pingPairs(of)
	for i, a := range s.Nodes {
		for j, b := range s.Nodes {
			if i != j && a.Host != "" && a.Host == b.Host && !a.Virtual {
				c := of(i, j)
				c.ping, c.off, c.pings = sameHostError, b.Began-a.Began, true
			}
		}
	}
	return pairs
}

// pingPairs adds the round trips of which both ends are recorded.
func (s *Set) pingPairs(of func(i, j int) *clockPair) {
	type key struct {
		run, from, to string
		number        uint64
	}
	type end struct {
		node int
		at   int64
	}
	reflected := map[key]end{}
	for i, n := range s.Nodes {
		for _, p := range n.Pings {
			if !p.Asked {
				reflected[key{n.Run, p.Peer, n.Name, p.Number}] = end{i, p.Reflected}
			}
		}
	}
	for i, n := range s.Nodes {
		for _, p := range n.Pings {
			e, ok := reflected[key{n.Run, n.Name, p.Peer, p.Number}]
			if !p.Asked || !ok || p.Answered < p.Sent || p.Answered == 0 || e.node == i {
				continue
			}
			half := (p.Answered - p.Sent) / 2
			d := p.Sent + half - e.at
			for _, c := range [...]struct {
				*clockPair
				d int64
			}{{of(i, e.node), d}, {of(e.node, i), -d}} {
				if !c.pings || half < c.ping {
					c.ping, c.off, c.pings = half, c.d, true
				}
			}
		}
	}
}
