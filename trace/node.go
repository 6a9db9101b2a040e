package trace

import (
	"reflect"
	"slices"
)

// Node is what was recorded of a node.
type Node struct {
	Name, Run, Program, Cluster string
	Host                        string   // identity of the host; "": not known
	Rails                       []string // the networks of the node's rails, by index
	Virtual                     bool     // in virtual time
	// Began is instant 0 in nanoseconds of Unix time, Wall that of instant At, when the snapshot was made. They come
	// from the clock of the host, which may be wrong by much more than a round trip. In virtual time, Began is relative
	// to the first relaxation of the run.
	Began, Wall, At int64
	Overwritten     uint64 // records that the ring has lost

	Sessions []Session // index 0 stands for no session
	Texts    []string  // index 0 is ""
	Layouts  []Layout
	Pings    []Ping
	Records  []Record // by addition, which is the order of time
	Frames   [][]byte // the first bytes of the segments, by record; nil if none were kept
}

// Session is one end of a session. Its name is the same at both ends.
type Session struct{ Name, Peer string }

// Layout describes the frames of a session in one epoch, and how they are made.
type Layout struct {
	Session      uint16
	Epoch        uint8
	Asynchronous bool
	WAN          bool // the composition is one between clusters
	Sealed       bool // frames are encrypted between the nodes; those that are kept are not
	Network      string
	Locality     string
	Column       string   // of the table of compositions
	Protocols    []string // from top to bottom
	Fields       []Field  // of the header, by offset
	HeaderBytes  int
	Local        uint32 // number of the session in frames that arrive
	Remote       uint32 // in frames that leave
}

// Field is a field of a header.
type Field struct {
	Protocol, Name string
	Offset, Length int
}

// Ping is a round trip over the control channel, of which a node sees one end. The end that asked has Sent and
// Answered, the other end has Reflected. Number and the names of both ends identify it.
type Ping struct {
	Peer   string
	Number uint64
	// Asked reports that this node sent it.
	Asked                     bool
	Sent, Answered, Reflected int64 // instants of this node; 0: not known
}

type layoutKey struct {
	session uint16
	epoch   uint8
}

type pingKey struct {
	peer   string
	number uint64
	asked  bool
}

func (n *Node) clone() Node {
	c := *n
	c.Sessions, c.Texts = slices.Clone(n.Sessions), slices.Clone(n.Texts)
	c.Layouts, c.Pings = slices.Clone(n.Layouts), slices.Clone(n.Pings)
	return c
}

// Text returns the text of that number, "" if there is none.
func (n *Node) Text(i uint32) string {
	if uint64(i) < uint64(len(n.Texts)) {
		return n.Texts[i]
	}
	return ""
}

// Session returns the session of that index; zero if there is none.
func (n *Node) Session(i uint16) Session {
	if int(i) < len(n.Sessions) {
		return n.Sessions[i]
	}
	return Session{}
}

// Layout returns the layout of a session's epoch, nil if it is not known.
func (n *Node) Layout(session uint16, epoch uint8) *Layout {
	for i := len(n.Layouts) - 1; i >= 0; i-- {
		if l := &n.Layouts[i]; l.Session == session && l.Epoch == epoch {
			return l
		}
	}
	return nil
}

// Text returns the number of a text, 0 if there are too many texts.
func (r *Ring) Text(s string) uint32 {
	if i, ok := r.texts[s]; ok {
		return i
	}
	if len(r.node.Texts) >= maxTexts {
		return 0
	}
	s = s[:min(len(s), maxText)]
	i := uint32(len(r.node.Texts))
	r.node.Texts = append(r.node.Texts, s)
	r.texts[s] = i
	return i
}

// Session returns the index of a session with a peer, 0 if there are too many.
func (r *Ring) Session(name, peer string) uint16 {
	s := Session{name, peer}
	if i, ok := r.sessions[s]; ok {
		return i
	}
	if len(r.node.Sessions) >= maxSessions {
		return 0
	}
	i := uint16(len(r.node.Sessions))
	r.node.Sessions = append(r.node.Sessions, s)
	r.sessions[s] = i
	return i
}

// Layout adds the layout of an epoch and returns its index, -1 if there are too many.
func (r *Ring) Layout(l Layout) int {
	k := layoutKey{l.Session, l.Epoch}
	if i, ok := r.layouts[k]; ok && l.equal(&r.node.Layouts[i]) {
		return i
	}
	if len(r.node.Layouts) >= maxLayouts {
		return -1
	}
	i := len(r.node.Layouts)
	r.node.Layouts = append(r.node.Layouts, l)
	r.layouts[k] = i
	return i
}

func (l *Layout) equal(m *Layout) bool { return reflect.DeepEqual(l, m) }

// PingSent, PingAnswered and PingReflected record a ping of the control channel.
func (r *Ring) PingSent(at int64, peer string, number uint64) {
	if p := r.ping(peer, number, true); p != nil {
		p.Sent = at
	}
}

// PingAnswered records that the answer to a ping of this node has arrived.
func (r *Ring) PingAnswered(at int64, peer string, number uint64) {
	if p := r.ping(peer, number, true); p != nil {
		p.Answered = at
	}
}

// PingReflected records that this node answers a ping of a peer.
func (r *Ring) PingReflected(at int64, peer string, number uint64) {
	if p := r.ping(peer, number, false); p != nil {
		p.Reflected = at
	}
}

// ping returns the entry of a ping, nil if there are too many.
func (r *Ring) ping(peer string, number uint64, asked bool) *Ping {
	k := pingKey{peer, number, asked}
	i, ok := r.pings[k]
	if !ok {
		if len(r.node.Pings) >= maxPings {
			return nil
		}
		i = len(r.node.Pings)
		r.node.Pings = append(r.node.Pings, Ping{Peer: peer, Number: number, Asked: asked})
		r.pings[k] = i
	}
	return &r.node.Pings[i]
}
