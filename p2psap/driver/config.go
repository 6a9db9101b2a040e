package driver

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/trace"
)

// Config sets a node up. Name, Rails, Catalog and Policy are required.
type Config struct {
	Name string // of this peer; unique in the run
	// Rails are the node's links, at most one of a network. Rails[0] is the base rail, by which every peer is
	// reached. The others are better, best first; peers that have them too are reached by them while they are
	// up. A base rail without Network is Ethernet. See p2psap.NodeConfig.
	Rails []Rail
	// Listen is the control channel's TCP address, "host:port". Port 0 or an empty string take any free port,
	// of PortLow to PortHigh when they are set.
	Listen            string
	PortLow, PortHigh int

	Catalog *microproto.Catalog
	Policy  p2psap.Policy
	Cluster string // label of this peer's cluster
	Run     string // peers of different runs refuse each other
	Version string // of the program; peers of different versions refuse each other

	// Identity makes the control channel TLS, closed to everyone who does not know the run's secret. Protect
	// selects the sessions whose frames are protected, by default those between hosts.
	Identity *Identity
	Protect  p2psap.Protection
	// Plain leaves the node unprotected, without an Identity: whoever can reach its ports can take part in the
	// run, and whoever is on the path can read and change everything. Without Identity it must be set.
	Plain bool

	PeerTimeout time.Duration // a peer silent for longer is lost; 0: 10 s
	Heartbeat   time.Duration // 0: PeerTimeout/8, at most 1 s
	// BusyPoll is how long a call that has to wait polls the link without pause before it waits at the link; 0:
	// where there is more than one processor, 20 µs, or twice the usual time to an arrival if that is at most
	// 200 µs; negative: it does not poll.
	BusyPoll  time.Duration
	Linger    time.Duration        // bounds the wait for last transfers when closing; 0: 2 s
	Handshake time.Duration        // for a control connection to say hello; 0: p2psap.DefaultHandshake
	Monitor   p2psap.MonitorConfig // when a composition follows what is measured
	Limits    p2psap.Limits
	// Seed is the seed of the micro-protocols' random numbers; 0: from the system. Session numbers, ports, keys
	// and the node's incarnation always come from the system.
	Seed   uint64
	Log    *slog.Logger // nil logs nothing
	Tracer microproto.Tracer
	Trace  *trace.Ring // takes the records of the node; nil: none. See Node.Snapshot
}

// core fills defaults in and returns the configuration of the core.
func (c *Config) core() (p2psap.NodeConfig, error) {
	c.Handshake, c.Linger = cmp.Or(c.Handshake, p2psap.DefaultHandshake(c.PeerTimeout)), cmp.Or(c.Linger, 2*time.Second)
	c.Limits.PendingHellos = cmp.Or(c.Limits.PendingHellos, 64)
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	var entropy p2psap.Entropy
	switch {
	case c.Identity != nil && c.Plain:
		return p2psap.NodeConfig{}, fmt.Errorf("driver: node %q has an Identity and is Plain: choose one", c.Name)
	case c.Identity != nil:
		entropy = func(b []byte) { _, _ = rand.Read(b) }
	case c.Protect == p2psap.ProtectAuto || c.Protect == p2psap.ProtectAlways:
		return p2psap.NodeConfig{}, fmt.Errorf(
			"driver: node %q: protection %v needs an Identity: the keys travel over the control channel", c.Name, c.Protect)
	case !c.Plain:
		return p2psap.NodeConfig{}, fmt.Errorf("driver: node %q has no Identity: "+
			"make one with driver.NewSaltedIdentity from a secret that all peers have, "+
			"or set Config.Plain to leave the node open to everybody who can reach it", c.Name)
	}
	var rails []p2psap.Rail
	for _, r := range c.Rails {
		rails = append(rails, p2psap.Rail{
			Network: r.Network, Link: r.Link, Compare: r.Compare, Standby: r.Standby, Synchronous: r.Synchronous,
		})
	}
	return p2psap.NodeConfig{
		Protect: c.Protect, Entropy: entropy,
		Name: c.Name, Run: c.Run, Version: c.Version, Catalog: c.Catalog, Policy: c.Policy,
		Rails: rails, Host: hostID(), Process: processID(), Cluster: c.Cluster,
		Addresses: reachable(c.Listen), Incarnation: binary.NativeEndian.Uint64(b[8:]) | 1,
		Seed:        cmp.Or(c.Seed, binary.NativeEndian.Uint64(b[:])),
		PeerTimeout: c.PeerTimeout, Heartbeat: c.Heartbeat, Handshake: c.Handshake, Linger: c.Linger,
		Monitor: c.Monitor, Limits: c.Limits, Tracer: c.Tracer, Trace: c.Trace,
	}, nil
}

func (c *Config) listen() (net.Listener, error) {
	host, port, err := "", "0", error(nil)
	if c.Listen != "" {
		if host, port, err = net.SplitHostPort(c.Listen); err != nil {
			return nil, fmt.Errorf("driver: control address %q: want HOST:PORT: %w", c.Listen, err)
		}
	}
	if (port == "0" || port == "") && c.PortLow != 0 {
		if c.PortLow < 1 || c.PortHigh > 65535 || c.PortLow > c.PortHigh {
			return nil, fmt.Errorf("driver: port range %d-%d: must be LOW-HIGH within 1-65535", c.PortLow, c.PortHigh)
		}
		for p := c.PortLow; p <= c.PortHigh; p++ {
			var l net.Listener
			if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p))); err == nil {
				return l, nil
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				break
			}
		}
		return nil, fmt.Errorf("driver: no control port of %d-%d on %q can be used: %w", c.PortLow, c.PortHigh, host, err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("driver: control address %s is in use by another program: "+
			"choose another port, or 0 for any: %w", c.Listen, err)
	}
	if err != nil {
		return nil, fmt.Errorf("driver: control address %q: %w", c.Listen, err)
	}
	return l, nil
}
