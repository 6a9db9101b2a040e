package p2psap

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// Node is one peer: its associations with other peers, its sessions and their composites. The
// package documentation states how to drive it.
type Node struct {
	run          uint16
	lastPort     uint16
	lastGen      uint16
	reschedule   bool // the timer heap and peersDue have to be computed anew
	closed       bool
	recording    bool       // there is a NodeConfig.Trace; here it is in the cache line that every call reads
	sessions     []*session // by index, which is the low half of the session's number; nil: free
	rails        []*rail.Rail
	peersDue     microproto.Instant // a peer or connection has something to do, possibly later
	timers       timers             // of the sessions
	advanced     microproto.Instant // last call of Advance
	scratch      []microproto.Output
	out          []Output
	coalescing   []SessionID // sessions with messages in the coalescing buffer
	associations *control.Associations
	peers        []*peer // by control.Peer.Number
	catalog      uint64  // fingerprint
	line         sharedLine
	counters     NodeCounters
	rand         *rand.Rand
	config       NodeConfig
}

// NodeCounters count what a node refused, and why.
type NodeCounters struct {
	FramesIn           uint64
	FramesMalformed    uint64 // too short, of another version, or without a sender
	FramesOtherRun     uint64 // of another run
	FramesUnknown      uint64 // of no session, or from another peer than the session's
	FramesOtherEpoch   uint64 // of an epoch that is over
	FramesUnprotected  uint64 // unprotected in a protected session, or the other way round
	FramesForged       uint64 // in a protected session, not from its other end, or altered
	FramesReplayed     uint64 // in a protected session, received before
	FramesBeforeWindow uint64 // in a protected session, too late to tell whether they are replays
	FramesDropped      uint64 // outgoing, beyond the bound of queued frames; or no memory to encrypt or decrypt them
	FramesNoPath       uint64 // outgoing, on a path that is down; synchronous ones are sent again on another
	FramesReplaced     uint64 // outgoing, replaced by a newer value of the same segment
	ControlIn          uint64
	ControlMalformed   uint64
	ControlDuplicate   uint64 // received before, or a pong that was not expected
	ControlStale       uint64 // on a connection that was closed or replaced
	HandshakesExpired  uint64 // connections closed because nothing came in time, or for a newer one
	PeersRefused       uint64 // peers that do not match
	Reconnects         uint64
}

// NewNode returns a node without peers. The error names what is missing or wrong in c.
func NewNode(c NodeConfig) (*Node, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	n := &Node{
		config: c, recording: c.Trace != nil, run: runTag(c.Run), catalog: catalogFingerprint(c.Catalog),
		peersDue: microproto.Never,
		rand:     rand.New(rand.NewPCG(c.Seed, 0x70327073617031)),
	}
	for i, r := range c.Rails {
		added := &rail.Rail{Number: i, Network: r.Network, Link: r.Link, Compare: r.Compare && i > 0,
			Standby: r.Standby && i > 0, Synchronous: r.Synchronous}
		added.Window.BodiesStay = r.Link.Caps(microproto.ModeSynchronous).Reliable
		n.rails = append(n.rails, added)
	}
	numbers := n.rand
	if c.Incarnation != 0 {
		numbers = rand.New(rand.NewPCG(control.Incarnation(c.Incarnation, ""), 0)) // no peer has that name
	}
	n.lastPort, n.lastGen = uint16(numbers.Uint32()), uint16(numbers.Uint32())
	if c.Incarnation == 0 {
		n.config.Incarnation = n.rand.Uint64() | 1
	}
	n.associations = control.NewAssociations(control.Config{
		Name: c.Name, Incarnation: n.config.Incarnation,
		PeerTimeout: c.PeerTimeout, Heartbeat: c.Heartbeat, Handshake: c.Handshake,
		Peers: c.Limits.Peers, PendingHellos: c.Limits.PendingHellos, Unacked: c.Limits.UnackedControl,
		Rand: n.rand,
	}, (*controlHost)(n))
	return n, nil
}

// catalogFingerprint returns a hash of the names that a catalog lists.
func catalogFingerprint(c *microproto.Catalog) uint64 {
	h := fnv.New64a()
	for _, name := range c.Names() {
		_, _ = h.Write([]byte(name))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// Name returns NodeConfig.Name.
func (n *Node) Name() string { return n.config.Name }

// Counters returns the counters.
func (n *Node) Counters() NodeCounters {
	out, c := n.counters, &n.associations.Counters
	out.ControlIn = c.In
	out.ControlMalformed = c.Malformed
	out.ControlDuplicate = c.Duplicate
	out.ControlStale = c.Stale
	out.HandshakesExpired = c.Expired
	out.PeersRefused = c.Refused
	out.Reconnects = c.Reconnect
	return out
}

// Drain appends the outputs to dst, in their order, and removes them from the node.
func (n *Node) Drain(dst []Output) []Output {
	for _, r := range n.rails {
		n.counters.FramesDropped += uint64(r.Window.Flatten(r.Link))
	}
	for i := range n.out {
		if o := &n.out[i]; o.Kind == OutActivity {
			if s := n.session(o.Session); s != nil {
				s.notified = false
			}
		}
	}
	dst = append(dst, n.out...)
	clear(n.out)
	n.out = n.out[:0]
	return dst
}

// Advance does what is due at now: timers, heartbeats, dialling, the loss of silent peers.
func (n *Node) Advance(now microproto.Instant) {
	// If this process itself stood still, messages may lie unread: the silence of the others
	// cannot be judged yet.
	if gap := now.Sub(n.advanced); n.advanced != 0 && gap > 2*n.config.Heartbeat {
		n.associations.Excuse(now, gap-n.config.Heartbeat)
	}
	n.advanced = max(now, 1)
	if n.Deadline(); now >= n.peersDue {
		n.advancePeers(now)
	}
	for _, index := range n.timers.popDue(now) {
		if s := n.sessions[index]; s != nil {
			n.advanceSession(now, s)
			n.schedule(s)
		}
	}
}

func (n *Node) advancePeers(now microproto.Instant) {
	n.reschedule = true
	n.associations.Advance(now)
}

// Deadline returns when Advance has something to do next; microproto.Never: nothing.
func (n *Node) Deadline() microproto.Instant {
	if n.reschedule {
		n.rescheduleAll()
	}
	return min(n.timers.First(), n.peersDue)
}

// Goodbye ends every session at once and says goodbye to every peer, which then counts this node as
// closed and not as lost. The node accepts nothing afterwards.
func (n *Node) Goodbye(now microproto.Instant) {
	if n.closed {
		return
	}
	n.closed, n.reschedule = true, true
	for _, s := range n.sessions {
		if s != nil {
			n.end(now, s, ErrClosed)
		}
	}
	n.associations.Close(now)
	for _, r := range n.rails {
		r.Window.Clear()
	}
}

func (n *Node) report(k OutputKind, s *session, err error) {
	n.out = append(n.out, Output{Kind: k, Session: s.id, Peer: s.peer.Name, Err: err})
}

// refused returns the error of a session whose two ends do not match.
func (s *session) refused(reason string) error {
	return &RefusedError{Peer: s.peer.Name, Session: s.options.Name, Reason: reason}
}

// cut shortens an error's text to what a control message can hold.
func cut(err error) string {
	text := err.Error()
	return text[:min(len(text), control.MaxReason)]
}

func (s *session) wrap(err error) error {
	return fmt.Errorf("session %q with %q: %w", s.options.Name, s.peer.Name, err)
}
