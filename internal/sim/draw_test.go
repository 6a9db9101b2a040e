package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

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

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

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

// drawSteps makes some problems nonstationary, with a moving load and boundary. It draws after the
// rest, so that the other draws of a seed stay.
func drawSteps(r *rand.Rand, s *Scenario) {
	if !chance(r, 0.2) {
		return
	}
	base, heat := *s.Problem, r.Float64()
	e := &problem.Evolution{Steps: 2 + r.IntN(3), End: pick(r, 0.01, 0.1, 1)}
	e.At = func(t float64) *problem.Problem {
		q := base
		source := q.Source
		q.Source = problem.Coefficient{Of: func(x problem.Point) float64 { return source.At(x) + 5*heat*t }}
		q.Boundary = func(x problem.Point) float64 { return heat * t * x[0] / e.End / 10 }
		return &q
	}
	s.Problem = e.At(e.End)
	s.Problem.Evolution = e
	s.What += fmt.Sprintf(" in %d steps to %v", e.Steps, e.End)
	s.Reconfigure = chance(r, 0.6)
	s.Tolerance = max(s.Tolerance, 1e-4)
}

// drawRails gives some scenarios adapters that fail. It draws after the rest, so that the other
// draws of a seed stay.
func drawRails(r *rand.Rand, s *Scenario) {
	if s.Peers() < 2 || !chance(r, 0.4) {
		return
	}
	has := make([]bool, s.Peers())
	for rank := range has {
		has[rank] = chance(r, 0.85)
	}
	var failures []Failure
	for range pick(r, 0, 1, 2, 4, 8) {
		at := time.Duration(r.Int64N(int64(s.FaultsEnd) + 1))
		f := Failure{At: at, Up: at + time.Duration(1+r.IntN(60e6)), Rank: iterate.Rank(r.IntN(s.Peers())), Peer: -1,
			Cut: chance(r, 0.5)}
		if chance(r, 0.3) {
			f.Peer = iterate.Rank(r.IntN(s.Peers()))
		} else if chance(r, 0.2) {
			f.Up = 0
		}
		failures = append(failures, f)
		if chance(r, 0.3) { // the other end fails at the same time
			f.Rank = iterate.Rank(r.IntN(s.Peers()))
			failures = append(failures, f)
		}
	}
	s.Fabric = adaptersOf(has, failures)
	s.What += fmt.Sprintf(" with adapters %v, %d failures", has, len(failures))
}

// drawBalance lets planes move in some runs, in half of them with a peer whose speed changes. It
// draws after everything else, so that the other draws of a seed stay.
func drawBalance(r *rand.Rand, s *Scenario) {
	config := s.config(0, nil)
	if !chance(r, 0.5) || richardson.Balanceable(&config) != nil {
		return
	}
	s.Balance, s.Window = true, time.Nanosecond
	if chance(r, 0.5) {
		s.SpeedChanges = append(s.SpeedChanges, SpeedChange{
			At: time.Duration(r.Int64N(int64(s.FaultsEnd) + 1)), Rank: iterate.Rank(r.IntN(s.Peers())), Slow: pick(r, 1.0, 3, 10,
				30),
		})
	}
}

// drawSchwarz gives some runs the Schwarz method. It draws after everything else, so that the other
// draws of a seed stay.
func drawSchwarz(r *rand.Rand, s *Scenario) {
	if !chance(r, 0.3) {
		return
	}
	s.Method = problem.MethodConfig{
		Name:        problem.Schwarz,
		Local:       pick(r, problem.Richardson, problem.SOR, problem.Multigrid),
		Overlap:     r.IntN(problem.MaxOverlap + 1),
		InnerCycles: pick(r, 0, 1, 1, 2, 5),
		Coarse:      pick(r, -1, 0, 0, 8, 60),
	}
	if s.Scheme.Name() == iterate.Asynchronous().Name() {
		s.Method.Flexible = chance(r, 0.4)
	}
	s.Order, s.Balance = problem.Jacobi, false
	// A relaxation is many sweeps of a region larger than the box. With the drawn costs, virtual
	// time would pass with few events.
	for i := range s.Costs {
		s.Costs[i].Point = max(1, s.Costs[i].Point/relaxationSweeps)
	}
}

// relaxationSweeps is about the number of sweeps over its box that a peer's relaxation costs.
const relaxationSweeps = 10

// drawLevels gives some runs in lockstep a method of the whole grid. It draws after everything else,
// so that the other draws of a seed stay.
func drawLevels(r *rand.Rand, s *Scenario) {
	if !chance(r, 0.5) || !s.Scheme.Lockstep() || s.Method.Name == problem.Schwarz {
		return
	}
	s.Method = problem.MethodConfig{Name: pick(r, problem.SOR, problem.Multigrid)}
	if chance(r, 0.3) {
		s.Method.Omega = 1 + 0.7*r.Float64()
	}
	s.Method.Cycle = pick(r, "", "v", "w")
	s.Order, s.Balance = problem.Jacobi, false
}
