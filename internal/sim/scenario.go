package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Scenario describes a run.
type Scenario struct {
	Seed      uint64
	Problem   *problem.Problem
	What      string // describes the problem
	Partition problem.Partition
	Scheme    iterate.Scheme
	Order     problem.Order
	Method    problem.MethodConfig
	Tolerance float64
	Every     iterate.Iteration // problem.Config.CheckEvery
	Lag       iterate.Iteration
	MaxSweeps iterate.Iteration
	Repeat    time.Duration

	Reconfigure bool          // at boundaries of time steps
	Balance     bool          // planes move between the peers
	Window      time.Duration // for measuring speeds; 0: the solver's default

	Clusters     []int  // by rank: sessions between clusters use the inter-cluster columns; nil: one cluster
	Costs        []Cost // by rank
	SpeedChanges []SpeedChange
	MTU          int

	Faults    mptest.Faults // of every link, until FaultsEnd
	After     mptest.Faults // from then on
	FaultsEnd time.Duration
	Cuts      []Cut
	Control   ControlFaults
	Stop      Stop

	Fabric func(*Cluster) fabric // nil: no peer has an adapter

	Sites    *Sites        // nil: one site
	Remote   []RemotePeer  // peers that are far from all others
	Patience time.Duration // bound on the virtual time; 0: 30 s

	Protect p2psap.Protection // of every session; each peer is on its own host
}

// Cost is the time of a peer's operations.
type Cost struct {
	Point time.Duration // per point relaxed at full speed
	Slow  float64       // factor, ≥ 1
	Send  time.Duration // per message sent
}

// SpeedChange changes a peer's speed during a run.
type SpeedChange struct {
	At   time.Duration // virtual time
	Rank iterate.Rank
	Slow float64 // the factor from then on
}

// costAt returns the cost of a rank's operations at a time.
func (s *Scenario) costAt(r iterate.Rank, now time.Duration) Cost {
	c, since := s.Costs[r], time.Duration(-1)
	for _, h := range s.SpeedChanges {
		if h.Rank == r && h.At <= now && h.At > since {
			c.Slow, since = h.Slow, h.At
		}
	}
	return c
}

// Relax returns the time of relaxing n points, at least a nanosecond so that virtual time passes.
func (c Cost) Relax(n int) time.Duration {
	return max(1, time.Duration(float64(n)*float64(c.Point)*c.Slow))
}

// RemotePeer adds Delay to everything that a peer sends and receives, data and control.
type RemotePeer struct {
	Rank  iterate.Rank
	Delay time.Duration
}

// Cut is a network partition: from From until To nothing passes between the ranks below Split and
// the others.
type Cut struct {
	From, To time.Duration
	Split    iterate.Rank
}

// ControlFaults are the faults of control connections until FaultsEnd. Like TCP, they are reliable
// and ordered while they exist.
type ControlFaults struct {
	Delay  time.Duration // one way, plus up to as much again
	Break  float64       // per message: the connection breaks, and messages in transit are lost
	Refuse float64       // per dial: it fails
}

// Stop is a request for an early end.
type Stop struct {
	At   time.Duration // since the peer's first operation; 0: there is no request
	Rank iterate.Rank
	Why  iterate.Reason
}

// Peers returns the number of peers.
func (s *Scenario) Peers() int { return s.Partition.Peers() }

// Sites adds a delay between ranks of different sites.
type Sites struct {
	Of    []int         // by rank
	Apart time.Duration // one way, in addition to that of all messages
}

// distance returns the additional delay between two ranks.
func (s *Scenario) distance(a, b iterate.Rank) time.Duration {
	var d time.Duration
	if s.Sites != nil && s.Sites.Of[a] != s.Sites.Of[b] {
		d = s.Sites.Apart
	}
	for _, f := range s.Remote {
		if f.Rank == a || f.Rank == b {
			d += f.Delay
		}
	}
	return d
}

// String describes the scenario in one line.
func (s *Scenario) String() string {
	stop := ""
	if s.Stop.At > 0 {
		stop = fmt.Sprintf(", stopped at %v by %d", s.Stop.At, s.Stop.Rank)
	}
	if s.Balance {
		stop += fmt.Sprintf(", planes move, speeds change %v", s.SpeedChanges)
	}
	return fmt.Sprintf("%s, %d peers %v, %s, %s, %v, tolerance %.0e, check every %d after %d, at most %d sweeps; %v; "+
		"faults end at %v, %d cuts, control breaks %.3f%s",
		s.What, s.Peers(), s.Partition.Cuts, s.method(), s.Scheme.Name(), s.Order, s.Tolerance, s.Every, s.Lag, s.MaxSweeps,
		s.Faults, s.FaultsEnd, len(s.Cuts), s.Control.Break, stop)
}

// label returns the declared cluster of a rank; "" if none is declared.
func (s *Scenario) label(r iterate.Rank) string {
	if s.Clusters == nil {
		return ""
	}
	return fmt.Sprint(s.Clusters[r])
}

func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

// method describes the method.
func (s *Scenario) method() string {
	m := &s.Method
	switch {
	case s.ofGrid():
		return fmt.Sprintf("%s, omega %.3f, cycle %q", m.Name, m.Omega, m.Cycle)
	case m.Name != problem.Schwarz:
		return problem.Richardson
	}
	return fmt.Sprintf("schwarz of %s, overlap %d, work %d, coarse %d, flexible %v",
		m.Local, m.Overlap, m.InnerCycles, m.Coarse, m.Flexible)
}

// ofGrid reports whether the method is one of the whole grid. Then the reference is a run of one
// peer.
func (s *Scenario) ofGrid() bool {
	return s.Method.Name == problem.SOR || s.Method.Name == problem.Multigrid
}
