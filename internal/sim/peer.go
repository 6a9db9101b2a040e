package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// peer is one peer of a cluster, and the virtual.World of its host.
type peer struct {
	*virtual.Host
	c      *Cluster
	rank   iterate.Rank
	node   *p2psap.Node
	worker problem.Peer
	cost   Cost
	points uint64
}

// anyOrder is an Executor with another order of the pieces in every call.
type anyOrder struct{ rand *rand.Rand }

// For calls f in a random cyclic order.
func (e anyOrder) For(n int, f func(int)) {
	if n == 0 {
		return
	}
	start := e.rand.IntN(n)
	for i := range n {
		f((start + n - i) % n)
	}
}

func newPeer(c *Cluster, rank iterate.Rank) (*peer, error) {
	s := c.Scenario
	p := &peer{c: c, rank: rank, cost: s.Costs[rank]}
	var err error
	rails := p.rails()
	p.node, err = p2psap.NewNode(p2psap.NodeConfig{
		Name: virtual.NameOf(rank), Run: "sim", Version: "sim", Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{},
		Rails:   rails,
		Monitor: p2psap.MonitorConfig{RailDwell: 4 * s.After.Delay}, Cluster: s.label(rank), Host: virtual.NameOf(rank),
		Process: uint64(rank) + 1, Seed: c.rand.Uint64(),
		Tracer: tracer{c}, Linger: time.Minute, Protect: s.Protect, Entropy: s.entropy(rank),
	})
	if err != nil {
		return nil, err
	}
	p.worker, err = solver.New(s.config(rank, anyOrder{rand.New(rand.NewPCG(s.Seed, uint64(rank)))}))
	if err != nil {
		return nil, err
	}
	p.Host = virtual.NewHost(p, virtual.Config{
		Config: exchange.Config{Rank: rank, Peer: p.worker}, Node: p.node, Rails: len(rails),
	})
	return p, nil
}

// entropy returns the source of a peer's keys; nil without protection.
func (s *Scenario) entropy(rank iterate.Rank) p2psap.Entropy {
	if s.Protect == p2psap.ProtectDefault {
		return nil
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x656e74726f7079+uint64(rank)))
	return func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
}

// tracer passes records to the cluster's tracer, which may be set later.
type tracer struct{ c *Cluster }

func (t tracer) Trace(now microproto.Instant, r microproto.TraceRecord) {
	if t.c.Tracer != nil {
		t.c.Tracer.Trace(now, r)
	}
}

// config returns the solver's configuration of one rank.
func (s *Scenario) config(rank iterate.Rank, e problem.Executor) problem.Config {
	return problem.Config{
		Problem: s.Problem, Partition: s.Partition, Rank: rank, Scheme: s.Scheme, Order: s.Order, Method: s.Method,
		Executor:  e,
		Tolerance: s.Tolerance, MaxSweeps: s.MaxSweeps, CheckEvery: s.Every, Lag: s.Lag, Repeat: s.Repeat,
		Reconfigure: s.Reconfigure, Balance: s.Balance, BalanceWindow: s.Window,
	}
}

// sessionOf returns the kind of the session of a frame to this peer; "" if there is none.
func (p *peer) sessionOf(frame []byte) (name string) {
	if len(frame) < p2psap.HeaderBytes {
		return ""
	}
	of := p2psap.SessionID(binary.BigEndian.Uint32(frame[4:]))
	p.Sessions(func(id p2psap.SessionID, halo bool) {
		switch {
		case id != of:
		case halo:
			name = "halo"
		default:
			name = "agree"
		}
	})
	return name
}
