package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Scenario describes a run; Draw draws one from a seed.
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

	Adapters []bool    // by rank: whether it has an adapter; nil: none has
	Failures []Failure // of adapters

	Sites    *Sites        // nil: one site
	Remote   []RemotePeer  // peers that are far from all others
	Large    bool          // too large for the sequential method: only the residual is checked
	Patience time.Duration // bound on the virtual time; 0: 30 s

	Protect p2psap.Protection // of every session; each peer is on its own host
	Attack  float64           // probability per frame that an attacker injects one
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
		"calm at %v, %d cuts, control breaks %.3f%s, adapters %v that fall %d times",
		s.What, s.Peers(), s.Partition.Cuts, s.method(), s.Scheme.Name(), s.Order, s.Tolerance, s.Every, s.Lag, s.MaxSweeps,
		s.Faults, s.FaultsEnd, len(s.Cuts), s.Control.Break, stop, s.Adapters, len(s.Failures))
}

// Draw returns the scenario of a seed.
func Draw(seed uint64) (*Scenario, error) {
	r := rand.New(rand.NewPCG(seed, 0x73696d))
	s := &Scenario{Seed: seed}
	s.Problem, s.What = drawProblem(r)
	var err error
	if s.Partition, err = drawPartition(r, s.Problem); err != nil {
		return nil, fmt.Errorf("sim: seed %d: %w", seed, err)
	}
	drawMethod(r, s)
	drawFaults(r, s)
	drawCosts(r, s)
	drawClusters(r, s)
	drawSteps(r, s)
	drawRails(r, s)
	drawBalance(r, s)
	drawSchwarz(r, s)
	drawLevels(r, s)
	return s, nil
}

// drawClusters makes some runs hybrid. It draws after the rest, so that the other draws of a seed
// stay.
func drawClusters(r *rand.Rand, s *Scenario) {
	if chance(r, 0.15) {
		s.Clusters = problem.Clusters(s.Partition, 1+r.IntN(s.Peers()))
		s.Scheme = iterate.Hybrid(s.Clusters)
	}
}

// label returns the declared cluster of a rank; "" if none is declared.
func (s *Scenario) label(r iterate.Rank) string {
	if s.Clusters == nil {
		return ""
	}
	return fmt.Sprint(s.Clusters[r])
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

// drawProblem draws a small obstacle problem of any dimension with contact, most of them with a
// known bound on ‖A⁻¹‖.
func drawProblem(r *rand.Rand) (*problem.Problem, string) {
	dim := pick(r, 1, 2, 3, 3)
	p := &problem.Problem{Name: "drawn", Dimension: dim, N: [3]int{1, 1, 1}, Diffusion: problem.Coefficient{Value: 1}}
	most := [...]int{0, 24, 12, 8}[dim]
	least := [...]int{0, 4, 3, 3}[dim]
	if chance(r, 0.1) {
		most += most / 2
	}
	n := least + r.IntN(most-least+1)
	for a := range dim {
		p.N[a], p.Hi[a] = n, 1
		if chance(r, 0.3) {
			p.N[a] = least + r.IntN(most-least+1)
		}
	}
	height, steep := 0.3+0.3*r.Float64(), 2+3*r.Float64()
	p.Obstacle = func(q problem.Point) float64 {
		v := height
		for a := range dim {
			v -= steep * (q[a] - 0.5) * (q[a] - 0.5)
		}
		return v
	}
	p.Boundary = func(problem.Point) float64 { return 0 }
	what := fmt.Sprintf("membrane %v", p.N[:dim])
	switch r.IntN(6) {
	case 0:
		p.Source.Of = func(q problem.Point) float64 { return 6 * math.Cos(5*q[0]+q[1]) }
		what += " with a load"
	case 1:
		p.Upper = func(q problem.Point) float64 { return max(0.65, height+0.05) - 0.2*q[0]*q[0] + 0.2 }
		p.Source.Value = 12
		what += " under a ceiling"
	case 2:
		p.Reaction.Value = 3
		what += " with reaction"
	case 3:
		p.Diffusion.Of = func(q problem.Point) float64 { return 1 + 0.5*q[0] + 0.3*math.Sin(3*q[dim-1]) }
		what += " of varying stiffness"
	}
	return p, what
}

// drawPartition draws slabs, boxes, a tensor grid or uneven slabs for 1 to 8 peers.
func drawPartition(r *rand.Rand, p *problem.Problem) (problem.Partition, error) {
	peers := pick(r, 1, 2, 2, 3, 4, 4, 5, 6, 8)
	slow := p.Dimension - 1
	switch r.IntN(4) {
	case 0:
		return problem.Slabs(p.N, min(peers, p.N[slow]), nil)
	case 1:
		weights := make([]float64, min(peers, p.N[slow]))
		for i := range weights {
			weights[i] = 0.2 + r.Float64()
		}
		return problem.Slabs(p.N, len(weights), weights)
	case 2:
		if part, err := problem.Boxes(p.N, peers); err == nil {
			return part, nil
		}
		return problem.Slabs(p.N, min(peers, p.N[slow]), nil)
	}
	// The tensor product of uneven cuts.
	var part problem.Partition
	left := peers
	for a := range 3 {
		k := 1
		if a < p.Dimension && left > 1 {
			k = min(1+r.IntN(min(left, 3)), p.N[a])
		}
		left /= k
		part.Cuts[a] = drawCuts(r, p.N[a], k)
	}
	return part, part.Validate(p.N)
}

// drawCuts cuts n points into k parts of at least one.
func drawCuts(r *rand.Rand, n, k int) []int {
	cuts := []int{0}
	for i := 1; i < k; i++ {
		room := n - (k - i) - cuts[i-1] // leaves one point for each of the other parts
		cuts = append(cuts, cuts[i-1]+1+r.IntN(max(1, room)))
	}
	return append(cuts, n)
}

func drawMethod(r *rand.Rand, s *Scenario) {
	s.Scheme = pick(r, iterate.Synchronous(), iterate.Synchronous(), iterate.Asynchronous(), iterate.Asynchronous(),
		iterate.BoundedDelay(0), iterate.BoundedDelay(1), iterate.BoundedDelay(1+r.IntN(8)))
	s.Order = pick(r, problem.Jacobi, problem.Jacobi, problem.InTurn)
	s.Tolerance = pick(r, 1e-2, 1e-3, 1e-4, 1e-6)
	s.Every = iterate.Iteration(pick(r, 0, 1, 2, 5, 8, 20))
	if s.Every > 0 {
		s.Lag = 1 + iterate.Iteration(r.IntN(int(s.Every)))
	}
	if chance(r, 0.1) {
		s.MaxSweeps = iterate.Iteration(1 + r.IntN(60))
	}
	s.Repeat = time.Duration(1+r.IntN(10)) * time.Millisecond
	s.MTU = pick(r, 128, 256, 1280, 1400, 9000)
	if chance(r, 0.05) {
		s.Stop = Stop{At: time.Duration(1 + r.IntN(100e6)), Rank: iterate.Rank(r.IntN(s.Peers())), Why: iterate.Interrupted}
	}
}

// drawCosts makes a sweep of an even share take from a twentieth of a message's delay to five times
// the delay, so that either peers wait for messages or messages for peers.
func drawCosts(r *rand.Rand, s *Scenario) {
	share := float64(s.Problem.Points()) / float64(s.Peers())
	sweep := float64(s.After.Delay) * math.Pow(10, 2*r.Float64()-1.3)
	for range s.Peers() {
		c := Cost{Point: time.Duration(1 + sweep/share), Slow: 1, Send: time.Duration(r.IntN(3000))}
		if chance(r, 0.3) {
			c.Slow = 1 + 20*r.Float64()*r.Float64()
		}
		s.Costs = append(s.Costs, c)
	}
}

func drawFaults(r *rand.Rand, s *Scenario) {
	delay := time.Duration(10+r.IntN(500)) * time.Microsecond
	s.After = mptest.Faults{Delay: delay, Jitter: delay / 4}
	s.Faults = s.After
	s.FaultsEnd = time.Duration(r.IntN(400)) * time.Millisecond
	s.Control = ControlFaults{Delay: delay}
	if chance(r, 0.15) {
		return // a clean network
	}
	s.Faults.Jitter = time.Duration(r.Int64N(int64(4 * delay)))
	s.Faults.Loss = pick(r, 0, 0.01, 0.1, 0.3) * r.Float64()
	s.Faults.Duplicate = pick(r, 0, 0.2) * r.Float64()
	s.Faults.Reorder = pick(r, 0, 0.3) * r.Float64()
	if chance(r, 0.3) {
		s.Faults.Capacity = 8 + r.IntN(64)
	}
	s.Control.Break = pick(r, 0, 0.05, 0.3) * r.Float64()
	s.Control.Refuse = pick(r, 0, 0.5) * r.Float64()
	for range pick(r, 0, 0, 1, 3) {
		from := time.Duration(r.Int64N(int64(s.FaultsEnd) + 1))
		s.Cuts = append(s.Cuts, Cut{
			From: from, To: min(from+time.Duration(r.IntN(150))*time.Millisecond, s.FaultsEnd),
			Split: iterate.Rank(r.IntN(s.Peers() + 1)),
		})
	}
}
