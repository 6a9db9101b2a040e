package p2psap

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/trace"
)

// Limits bound what other peers can make a node use. Zero fields take the defaults.
type Limits struct {
	Peers          int // known peers (default 1024)
	Sessions       int // sessions, ended ones included until they are closed (default 4096)
	PendingHellos  int // accepted control connections without a hello (default 64)
	PendingOpens   int // per peer, sessions that it opened and this end did not (default 1024)
	UnackedControl int // per peer, control messages not acknowledged (default 8192)
	QueuedFrames   int // per rail, frames that wait for a busy link (default 65536)
	Composite      microproto.Limits
}

// Rail is one of a node's links and the kind of network that it leads to.
type Rail struct {
	Network Network
	Link    LinkContext
	// Compare leaves the rail unused by sessions with a peer until it was compared with the base rail, and found to
	// be faster; see Node.ToCompare.
	Compare bool
	// Standby connects the rail with a peer, and lets sessions use it, only while the base path to the peer carries
	// nothing. Synchronous keeps asynchronous sessions off it unless that is so. Both ends need not agree.
	Standby, Synchronous bool
}

// NodeConfig sets a node up. Zero durations take the defaults.
type NodeConfig struct {
	Name    string // of this peer; unique in the run
	Run     string // identity of the run: peers of different runs refuse each other
	Version string // of the program: peers of different versions refuse each other
	Catalog *microproto.Catalog
	Policy  Policy
	// Rails are the node's links, at most one of a network. Rails[0] is the base rail: every peer
	// is reached by it. The others are better, best first: two peers use
	// the best rail that both have and that is up, and the base rail otherwise. A base rail without
	// Network is Ethernet.
	Rails []Rail
	Host  string // identity of this host: equal on two nodes only if they share it; "": not known
	// SameHost reports whether the other end of a control connection has an address of this host.
	// If not, an equal Host means that one host is a copy of the other. nil: an equal Host is
	// enough.
	SameHost func(ConnID) bool
	Process  uint64 // number of this process on its host
	Cluster  string // label of this peer's cluster; different labels decide before anything else
	// Addresses are those at which other hosts reach this one, each with the prefix of its
	// network, at most 32; nil: not known. See Locate.
	Addresses []netip.Prefix
	// Incarnation distinguishes the lives of a node of one name. The numbers of sessions and ports
	// follow from it, so that frames left over from an earlier run do not fit a session of this
	// one. A caller in real time draws it at random. 0: taken from Seed.
	Incarnation uint64
	// Seed is the seed of all other random numbers: those of the micro-protocols and the jitter of
	// back-offs.
	Seed uint64
	// Protect selects the sessions whose frames are encrypted and authenticated; Entropy is the
	// source of their keys. Entropy may only be given when nobody else can read the control
	// channel.
	Protect Protection
	Entropy Entropy

	PeerTimeout time.Duration // a peer silent for longer is lost (default 10 s)
	Heartbeat   time.Duration // default PeerTimeout/8, at most 1 s
	Handshake   time.Duration // for a connection to say hello (default: DefaultHandshake)
	Linger      time.Duration // for the last transfers of a session that is closed (default 2 s)
	Monitor     MonitorConfig // when the composition follows what is measured
	Limits      Limits
	Tracer      microproto.Tracer // of every composite; nil: none
	Trace       *trace.Ring       // takes the records of this node, see package trace; nil: none
}

// Bounds of OpenOptions, bytes.
const (
	minReceiveBytes = 64 << 10
	messageCost     = 64 // of a message in the receiver's queue, beside its payload
)

// DefaultHandshake returns the default of NodeConfig.Handshake: 10 s, or the peer time-out if that is longer, and at most a
// minute. TLS and the proofs take two round trips.
func DefaultHandshake(peerTimeout time.Duration) time.Duration {
	return min(max(peerTimeout, 10*time.Second), time.Minute)
}

// check refuses configurations that cannot work and fills defaults in. The error names the field.
func (c *NodeConfig) check() error {
	switch {
	case c.Name == "" || len(c.Name) > control.MaxName:
		return fmt.Errorf("p2psap: the name of a node must have 1 to %d bytes; %q has %d",
			control.MaxName, c.Name, len(c.Name))
	case max(len(c.Run), len(c.Version), len(c.Host), len(c.Cluster)) > control.MaxName:
		return fmt.Errorf("p2psap: run, version, host and cluster may have %d bytes each", control.MaxName)
	case c.Catalog == nil || c.Policy == nil || len(c.Rails) == 0:
		return fmt.Errorf("p2psap: node %q needs a catalog, a policy and a rail", c.Name)
	case len(c.Addresses) > control.MaxAddresses:
		return fmt.Errorf("p2psap: node %q has %d addresses; %d may be given", c.Name, len(c.Addresses), control.MaxAddresses)
	case slices.ContainsFunc(c.Addresses, func(p netip.Prefix) bool { return !p.IsValid() || p.Addr().Is4In6() }):
		return fmt.Errorf("p2psap: the addresses of node %q must be IPv4 or IPv6 addresses with a prefix: %v",
			c.Name, c.Addresses)
	case c.PeerTimeout < 0 || c.Heartbeat < 0 || c.Handshake < 0 || c.Linger < 0:
		return fmt.Errorf("p2psap: the durations of node %q must not be negative", c.Name)
	}
	if err := c.Monitor.withDefaults(); err != nil {
		return err
	}
	if err := c.checkProtection(); err != nil {
		return err
	}
	if err := c.checkRails(); err != nil {
		return err
	}
	defaultTo(&c.PeerTimeout, 10*time.Second)
	defaultTo(&c.Heartbeat, min(c.PeerTimeout/8, time.Second))
	if c.Heartbeat*2 > c.PeerTimeout {
		return fmt.Errorf("p2psap: a heartbeat every %v is too rare for a peer time-out of %v: at most half of it",
			c.Heartbeat, c.PeerTimeout)
	}
	defaultTo(&c.Handshake, DefaultHandshake(c.PeerTimeout))
	defaultTo(&c.Linger, 2*time.Second)
	c.Limits.withDefaults()
	return nil
}

func (l *Limits) withDefaults() {
	defaultTo(&l.Peers, 1024)
	defaultTo(&l.Sessions, 4096)
	defaultTo(&l.PendingHellos, 64)
	defaultTo(&l.PendingOpens, 1024)
	defaultTo(&l.UnackedControl, 8192)
	defaultTo(&l.QueuedFrames, 65536)
	l.Sessions = min(l.Sessions, 1<<16)
}

func (c *NodeConfig) checkRails() error {
	if len(c.Rails) > control.MaxRails+1 {
		return fmt.Errorf("p2psap: node %q has %d rails; %d may be given", c.Name, len(c.Rails), control.MaxRails+1)
	}
	c.Rails = slices.Clone(c.Rails)
	defaultTo(&c.Rails[0].Network, Ethernet)
	for i, r := range c.Rails {
		if r.Link == nil || !r.Network.Valid() {
			return fmt.Errorf("p2psap: rail %d of node %q needs a link and a network", i, c.Name)
		}
		for _, q := range c.Rails[:i] {
			if q.Network == r.Network {
				return fmt.Errorf("p2psap: node %q has two links for network %v; give it one", c.Name, r.Network)
			}
		}
	}
	return nil
}

func defaultTo[T int | float64 | time.Duration | Network](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}
