package p2psap

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// LinkContext is what the core needs of a microproto.Link: everything but the
// sending and receiving of frames, which is the shell's.
type LinkContext interface {
	microproto.FrameSource
	Caps(m microproto.Mode) microproto.Caps
	Offer(peer string) ([]byte, error)
	Accept(remote []byte) (microproto.LinkAddr, error)
}

// Limits bound what other peers can make a node use. Zero fields take the defaults.
type Limits struct {
	Peers          int // known peers (default 1024)
	Sessions       int // sessions, ended ones included until they are closed (default 4096)
	PendingHellos  int // control connections that have not said hello (default 64)
	PendingOpens   int // per peer, sessions that it has opened and this end has not (default 1024)
	UnackedControl int // per peer, control messages not acknowledged (default 8192)
	QueuedFrames   int // frames waiting for a busy link (default 65536)
	Composite      microproto.Limits
}

// SessionTracer is a Tracer that tells the composites of different sessions apart:
// each gets what Session returns for its name.
type SessionTracer interface {
	microproto.Tracer
	Session(name string) microproto.Tracer
}

// NodeConfig sets a node up. Zero durations take the defaults.
type NodeConfig struct {
	Name    string // of this peer; unique in the run
	Run     string // identity of the run: peers of different runs refuse each other
	Version string // of the program: peers of different versions refuse each other
	Catalog *microproto.Catalog
	Policy  Policy
	// Rails are the node's links, at most one of a network. Rails[0] is the base rail: every
	// peer has it, and it does not go down. The others are better, best first: two peers use
	// the best rail that both have and that is up, and the base rail otherwise. A base rail
	// without Network is Ethernet.
	Rails []Rail
	Host  string // identity of this host: equal on two nodes only if they share it; "": unknown
	// Here reports whether the other end of a control connection is at an address of this
	// host; elsewhere an equal Host means a copy of this one. nil: an equal Host is enough.
	SameHost func(ConnID) bool
	Process  uint64 // of this process on its host
	Cluster  string // label of this peer's cluster; labels that differ decide before anything else
	// Addresses are those at which other hosts reach this one, each with the prefix
	// of its network, at most 32; nil: not known. See Locate.
	Addresses []netip.Prefix
	// Incarnation tells lives of a node of one name apart, and its session numbers and
	// ports follow from it: a shell draws it at random, so that frames left over from an
	// earlier run do not fit a session of this one. 0: taken from Seed.
	Incarnation uint64
	// Seed is of all other chances: the micro-protocols' and the jitter of back-offs.
	Seed uint64
	// Protect says which sessions are encrypted and authenticated; Entropy is where
	// their keys come from. It may only be given when nobody else can read the
	// control channel.
	Protect Protection
	Entropy Entropy

	PeerTimeout time.Duration // a peer silent for longer is lost (default 10 s)
	Heartbeat   time.Duration // default PeerTimeout/8, at most 1 s
	Handshake   time.Duration // for a connection to say hello (default 5 s)
	Linger      time.Duration // for the last transfers of a session that is closed (default 2 s)
	Monitor     MonitorConfig // when the composition follows what is measured
	Limits      Limits
	Tracer      microproto.Tracer // of every composite; nil: off; see SessionTracer
	// Crowd tells that thousands of sessions take turns in this process, as those of a
	// simulation: their composites look ahead, see microproto.Composite.LookAhead.
	Crowd bool
}

// Back-off of control connections, and how long the end with the lower name
// leaves the dialling to the other.
const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	dialGrace    = time.Second
)

// Bounds of what an OpenOptions may ask for, bytes.
const (
	maxSlotBytes    = 1 << 30
	maxReceiveBytes = 1 << 34
	minReceiveBytes = 64 << 10
	messageCost     = 64 // what a message takes of the queue beside its payload
)

// Node is one peer: its control conversations, its sessions and their composites.
// It is a state machine: every entry point takes now and runs to completion, what
// is to be done comes back from Drain and Frames. It is not safe for concurrent use.
type Node struct {
	run      uint16
	lastPort uint16
	lastGen  uint16
	replans  bool // the agenda and peersDue have to be made anew
	closed   bool
	sessions []*session // nil: free; a session's index is the low half of its number
	rails    []*rail
	peersDue microproto.Instant // when a peer or connection has something to do, or earlier: frames put it off
	agenda   agenda             // of the sessions
	advanced microproto.Instant // when Advance ran last
	scratch  []microproto.Output
	out      []Output
	call     call
	doing    calls
	counters NodeCounters
	gathers  []SessionID // sessions in which messages wait for company
	peers    []*peer
	conns    []*conn
	catalog  uint64
	rand     *rand.Rand
	config   NodeConfig
}

// NodeCounters count what a node refused, and why.
type NodeCounters struct {
	FramesIn           uint64
	FramesMalformed    uint64 // too short, another version, or no peer
	FramesOtherRun     uint64 // of another run
	FramesUnknown      uint64 // of a session that is not there, or another peer's
	FramesOtherEpoch   uint64 // of an epoch that is over
	FramesUnprotected  uint64 // unprotected, of a session that is protected; or the other way round
	FramesForged       uint64 // of a protected session, but not from its other end, or changed on the way
	FramesReplayed     uint64 // of a protected session, seen before
	FramesBeforeWindow uint64 // of a protected session, too late to tell whether it was seen before
	FramesDropped      uint64 // out, past the bound of waiting frames; or for want of memory to seal or open them
	FramesNoPath       uint64 // out, by a rail that is down; what is synchronous is sent again by another
	FramesReplaced     uint64 // out, by a newer value of the same segment
	ControlIn          uint64
	ControlMalformed   uint64
	ControlDuplicate   uint64 // seen before; or the answer to a ping that nobody waits for
	ControlStale       uint64 // on a connection that had been replaced
	HandshakesExpired  uint64 // connections closed for saying nothing in time, or too many at once
	PeersRefused       uint64 // peers that do not match
	Reconnects         uint64
}

// NewNode checks the configuration. The error names what is missing or wrong.
func NewNode(c NodeConfig) (*Node, error) {
	switch {
	case c.Name == "" || len(c.Name) > maxNameBytes:
		return nil, fmt.Errorf("p2psap: the name of a node must have 1 to %d bytes; %q has %d", maxNameBytes, c.Name, len(c.Name))
	case len(c.Run) > maxNameBytes || len(c.Version) > maxNameBytes || len(c.Host) > maxNameBytes || len(c.Cluster) > maxNameBytes:
		return nil, fmt.Errorf("p2psap: run, version, host and cluster may have %d bytes each", maxNameBytes)
	case c.Catalog == nil || c.Policy == nil || len(c.Rails) == 0:
		return nil, fmt.Errorf("p2psap: node %q needs a catalog, a policy and a rail", c.Name)
	case len(c.Addresses) > maxAddresses:
		return nil, fmt.Errorf("p2psap: node %q has %d addresses; %d may be given", c.Name, len(c.Addresses), maxAddresses)
	case slices.ContainsFunc(c.Addresses, func(p netip.Prefix) bool { return !p.IsValid() || p.Addr().Is4In6() }):
		return nil, fmt.Errorf("p2psap: the addresses of node %q must be IPv4 or IPv6 addresses with a prefix: %v", c.Name, c.Addresses)
	case c.PeerTimeout < 0 || c.Heartbeat < 0 || c.Handshake < 0 || c.Linger < 0:
		return nil, fmt.Errorf("p2psap: the durations of node %q must not be negative", c.Name)
	}
	if err := c.Monitor.withDefaults(); err != nil {
		return nil, err
	}
	if err := checkProtection(&c); err != nil {
		return nil, err
	}
	if err := checkRails(&c); err != nil {
		return nil, err
	}
	defaultTo(&c.PeerTimeout, 10*time.Second)
	defaultTo(&c.Heartbeat, min(c.PeerTimeout/8, time.Second))
	if c.Heartbeat*2 > c.PeerTimeout {
		return nil, fmt.Errorf("p2psap: a heartbeat every %v is too rare for a peer time-out of %v: at most half of it", c.Heartbeat, c.PeerTimeout)
	}
	defaultTo(&c.Handshake, 5*time.Second)
	defaultTo(&c.Linger, 2*time.Second)
	l := &c.Limits
	defaultTo(&l.Peers, 1024)
	defaultTo(&l.Sessions, 4096)
	defaultTo(&l.PendingHellos, 64)
	defaultTo(&l.PendingOpens, 1024)
	defaultTo(&l.UnackedControl, 8192)
	defaultTo(&l.QueuedFrames, 65536)
	l.Sessions = min(l.Sessions, 1<<16)
	n := &Node{
		config: c, run: runTag(c.Run), catalog: catalogFingerprint(c.Catalog),
		rand: rand.New(rand.NewPCG(c.Seed, 0x70327073617031)),
	}
	n.peersDue = microproto.Never
	n.makeCalls()
	n.addRails()
	numbers := n.rand
	if c.Incarnation != 0 {
		numbers = rand.New(rand.NewPCG(n.incarnation(""), 0)) // no peer has that name
	}
	n.lastPort, n.lastGen = uint16(numbers.Uint32()), uint16(numbers.Uint32())
	if n.config.Incarnation == 0 {
		n.config.Incarnation = n.rand.Uint64() | 1
	}
	return n, nil
}

func defaultTo[T int | float64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Name is NodeConfig.Name.
func (n *Node) Name() string { return n.config.Name }

// Counters tells what was refused.
func (n *Node) Counters() NodeCounters { return n.counters }

// Drain appends the outputs to dst, in their order, and empties them.
func (n *Node) Drain(dst []Output) []Output {
	for _, r := range n.rails {
		n.counters.FramesDropped += uint64(r.queue.flatten(r.link))
	}
	for i := range n.out {
		if o := &n.out[i]; o.Kind == OutActivity {
			if s := n.session(o.Session); s != nil {
				s.touched = false
			}
		}
	}
	dst = append(dst, n.out...)
	clear(n.out)
	n.out = n.out[:0]
	return dst
}

// Advance does what is due at now: timers, heartbeats, dialling, silence.
func (n *Node) Advance(now microproto.Instant) {
	// If this process itself stood still (stopped, suspended), messages may lie
	// unread: the others' silence cannot be judged yet.
	if gap := now.Sub(n.advanced); n.advanced != 0 && gap > 2*n.config.Heartbeat {
		for _, p := range n.peers {
			p.heard = min(now, p.heard.Add(gap-n.config.Heartbeat))
		}
	}
	n.advanced = max(now, 1)
	if n.Deadline(); now >= n.peersDue {
		n.advancePeers(now)
	}
	for _, place := range n.agenda.take(now) {
		if s := n.sessions[place]; s != nil {
			n.advanceSession(now, s)
			n.plan(s)
		}
	}
}

func (n *Node) advancePeers(now microproto.Instant) {
	n.replans = true
	for i := len(n.conns) - 1; i >= 0; i-- {
		if c := n.conns[i]; c.peer == nil && now >= c.until {
			n.counters.HandshakesExpired++
			n.hangup(now, c, fmt.Errorf("p2psap: no hello within %v", n.config.Handshake))
		}
	}
	for _, p := range n.peers {
		n.advancePeer(now, p)
	}
}

// Deadline is when Advance has something to do next.
func (n *Node) Deadline() microproto.Instant {
	if n.replans {
		n.replan()
	}
	return min(n.agenda.first(), n.peersDue)
}

// Goodbye ends every session at once and tells every peer, which then counts this
// node as closed and not as lost. The node takes nothing afterwards.
func (n *Node) Goodbye(now microproto.Instant) {
	if n.closed {
		return
	}
	n.closed, n.replans = true, true
	for _, s := range n.sessions {
		if s != nil {
			n.end(now, s, ErrClosed)
		}
	}
	for _, p := range n.peers {
		if p.state == PeerUp {
			n.post(p, kindGoodbye, nil)
		}
		p.state, p.err = PeerClosed, ErrClosed
		n.partWays(p)
	}
	for len(n.conns) > 0 {
		n.hangup(now, n.conns[len(n.conns)-1], ErrClosed)
	}
	for _, r := range n.rails {
		r.queue.clear()
	}
}
