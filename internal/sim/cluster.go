package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Cluster runs a scenario.
type Cluster struct {
	Scenario *Scenario
	// Filter is called with every data frame that is sent. If it returns false, the frame is lost.
	// nil: no filter.
	Filter func(now microproto.Instant, from, to iterate.Rank, session string, frame []byte) bool
	// Watch is called before every event; nil: never. It must not change anything.
	Watch func(now microproto.Instant)
	// Tracer traces every composite; nil: none.
	Tracer microproto.Tracer

	clock       *mptest.Clock
	rand        *rand.Rand
	peers       []*peer
	links       []*mptest.Link // by pair, see link
	connections map[connectionEnd]connectionEnd
	carried     map[connectionEnd]microproto.Instant // when the newest message on a control connection arrives
	lastID      p2psap.ConnID
	memory      mptest.Frames
	fabric      fabric // nil: no peer has an adapter
	railed      uint64 // frames received by adapters
	moves       uint64 // of sessions between rails
	events      uint64
	ended       microproto.Instant // when the last session was closed
	fault       error

	stepped func(p *peer, r *iterate.StepResult)            // called at the end of a time step; nil: never
	tap     func(from, to iterate.Rank, f microproto.Frame) // called with every data frame that is sent; nil: never
}

// Bounds of a run. A run beyond them counts as one that does not end.
const (
	maxEvents  = 2e6
	maxVirtual = microproto.Instant(30 * time.Second)
)

// New returns a cluster.
func New(s *Scenario) (*Cluster, error) {
	c := &Cluster{
		Scenario: s, clock: mptest.NewClock(), rand: rand.New(rand.NewPCG(s.Seed, 0x636c7573746572)),
		connections: map[connectionEnd]connectionEnd{}, carried: map[connectionEnd]microproto.Instant{},
		memory: mptest.Frames{Headroom: 16},
	}
	if s.Fabric != nil {
		c.fabric = s.Fabric(c)
	}
	for lo, hi := range s.pairs {
		c.links = append(c.links, mptest.NewLink(c.clock, c.rand.Uint64(), s.at(s.Faults, lo, hi)))
	}
	for rank := range iterate.Rank(s.Peers()) {
		p, err := newPeer(c, rank)
		if err != nil {
			return nil, fmt.Errorf("sim: rank %d: %w", rank, err)
		}
		c.peers = append(c.peers, p)
	}
	for lo, hi := range s.pairs {
		l := c.link(lo, hi)
		l.Receive(0, func(f microproto.Frame) { c.arrive(lo, hi, f) })
		l.Receive(1, func(f microproto.Frame) { c.arrive(hi, lo, f) })
	}
	c.plan()
	return c, nil
}

// pairs yields every two ranks.
func (s *Scenario) pairs(yield func(lo, hi iterate.Rank) bool) {
	for hi := range iterate.Rank(s.Peers()) {
		for lo := range hi {
			if !yield(lo, hi) {
				return
			}
		}
	}
}

// link returns the link of two ranks; the lower one is its end 0.
func (c *Cluster) link(a, b iterate.Rank) *mptest.Link {
	lo, hi := min(a, b), max(a, b)
	return c.links[int(hi)*(int(hi)-1)/2+int(lo)]
}

// plan schedules the events of the scenario.
func (c *Cluster) plan() {
	s := c.Scenario
	for i := range s.Cuts {
		cut := s.Cuts[i]
		c.clock.At(microproto.Instant(cut.From), func() { c.partition(cut.Split, true) })
		c.clock.At(microproto.Instant(cut.To), func() { c.partition(cut.Split, false) })
	}
	c.clock.At(microproto.Instant(s.FaultsEnd), func() {
		for lo, hi := range s.pairs {
			c.link(lo, hi).SetFaults(s.at(s.After, lo, hi))
			c.cut(lo, hi, false)
		}
	})
	if c.fabric != nil {
		c.fabric.plan()
	}
	for _, p := range c.peers {
		c.clock.After(time.Duration(c.rand.IntN(5e6)), p.Start)
	}
}

// at returns the faults of the link between two ranks.
func (s *Scenario) at(f mptest.Faults, a, b iterate.Rank) mptest.Faults {
	f.Delay += s.distance(a, b)
	return f
}

func (c *Cluster) partition(split iterate.Rank, cut bool) {
	for lo, hi := range c.Scenario.pairs {
		if lo < split && hi >= split {
			c.cut(lo, hi, cut)
		}
	}
}

// cut cuts or restores both directions between two ranks.
func (c *Cluster) cut(a, b iterate.Rank, cut bool) {
	c.link(a, b).Partition(0, cut)
	c.link(a, b).Partition(1, cut)
}

// reachable returns when two ranks can reach each other; now if they can.
func (c *Cluster) reachable(a, b iterate.Rank) microproto.Instant {
	t := c.clock.Now()
	for _, cut := range c.Scenario.Cuts {
		lo, hi := min(a, b), max(a, b)
		if lo < cut.Split && hi >= cut.Split && t >= microproto.Instant(cut.From) && t < microproto.Instant(cut.To) {
			t = microproto.Instant(cut.To)
		}
	}
	return t
}

func (c *Cluster) faultsOver() bool { return c.clock.Now() >= microproto.Instant(c.Scenario.FaultsEnd) }

// Run runs the scenario until every peer has closed its sessions.
func (c *Cluster) Run() error {
	longer := max(1, c.Scenario.Problem.Steps())
	most, longest := maxEvents*uint64(longer), maxVirtual*microproto.Instant(longer)
	if p := c.Scenario.Patience; p > 0 {
		most, longest = 100*maxEvents, microproto.Instant(p)
	}
	for c.fault == nil && !c.over() {
		if c.events++; c.events > most || c.clock.Now() > longest {
			return fmt.Errorf("sim: no end after %d events, at %v: %s", c.events, time.Duration(c.clock.Now()), c.state())
		}
		if c.Watch != nil {
			c.Watch(c.clock.Now())
		}
		if !c.clock.Step() {
			return fmt.Errorf("sim: stuck at %v, nothing is left to happen: %s", time.Duration(c.clock.Now()), c.state())
		}
	}
	if c.fault != nil {
		return c.fault
	}
	c.ended = c.clock.Now()
	for _, p := range c.peers {
		p.node.Goodbye(c.clock.Now())
		p.Settle()
	}
	for range 1 << 20 {
		if c.fault != nil || !c.clock.Step() {
			break
		}
	}
	return c.fault
}

func (c *Cluster) over() bool {
	return !slices.ContainsFunc(c.peers, func(p *peer) bool { return p.Phase != virtual.Closed })
}

func (c *Cluster) fail(p *peer, err error) {
	if c.fault == nil && err != nil {
		c.fault = fmt.Errorf("sim: rank %d at %v: %w; %s", p.rank, time.Duration(c.clock.Now()), err, c.state())
	}
}

func (c *Cluster) state() string {
	out := ""
	for _, p := range c.peers {
		out += fmt.Sprintf("[%d: phase %d, sweep %d, %v] ", p.rank, p.Phase, p.worker.Progress().Sweep, p.worker.Outcome())
	}
	return out
}

// arrive passes a frame from a link to its receiver.
func (c *Cluster) arrive(to, from iterate.Rank, f microproto.Frame) {
	f.Peer = addrOf(from)
	p := c.peers[to]
	p.node.Input(c.clock.Now(), 0, f)
	p.Settle()
}

// addrOf returns a rank's address at the links.
func addrOf(r iterate.Rank) microproto.LinkAddr { return microproto.LinkAddr(r + 1) }

// trainBytes bounds a train of a UDP link.
const trainBytes = 65507

// linkAdapter is one peer's LinkContext.
type linkAdapter struct {
	c    *Cluster
	rank iterate.Rank
}

func (k linkAdapter) Acquire(n int) microproto.Frame { return k.c.memory.Acquire(n) }

func (k linkAdapter) Caps(microproto.Mode) microproto.Caps {
	c := microproto.Caps{MTU: k.c.Scenario.MTU, Headroom: k.c.memory.Headroom, Batch: 16}
	// The links of every other seed accept trains, and split them at random. A filter needs single
	// frames.
	if k.c.Scenario.Seed%2 == 0 && k.c.Filter == nil {
		c.Train = trainBytes
		if k.c.Scenario.Seed%4 == 0 {
			c.Gather = 1
		}
	}
	return c
}

func (k linkAdapter) Offer(string) ([]byte, error) { return []byte{'s', byte(k.rank)}, nil }

func (k linkAdapter) Accept(remote []byte) (microproto.LinkAddr, error) {
	if len(remote) != 2 || remote[0] != 's' || int(remote[1]) >= len(k.c.peers) {
		return 0, errors.New("sim: not an offer of this cluster")
	}
	return addrOf(iterate.Rank(remote[1])), nil
}
