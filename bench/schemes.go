package main

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/sim"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// pointTime is what a point costs a peer of these experiments: 0.4 GLUP/s, what the
// memory of one core allows (part kernels measures it).
const pointTime = 2.5 // nanoseconds

// experiment is a run in virtual time: the real protocol, the real numerics, a model of
// the network and of the time that a point takes.
type experiment struct {
	n, peers int
	sites    int           // the peers stand in as many sites, one behind the other
	apart    time.Duration // one way between sites
	near     time.Duration // one way within a site
	jitter   time.Duration // on top of it, at random; 0: a quarter of it
	slow     map[int]float64
	scheme   func(clusters []int) iterate.Scheme
	method   problem.MethodConfig
	boxes    bool
	tol      float64
	seed     uint64
}

// played is the outcome of an experiment.
type played struct {
	seconds float64 // virtual
	sweeps  float64 // points relaxed / points
	iterate float64 // largest number of iterates of a peer
}

func fixed(s iterate.Scheme) func([]int) iterate.Scheme {
	return func([]int) iterate.Scheme { return s }
}

func (e experiment) run() (played, error) {
	p, err := membrane(e.n)
	if err != nil {
		return played{}, err
	}
	s := &sim.Scenario{
		Seed: 2*e.seed + 2, Problem: p, What: fmt.Sprintf("membrane %d³", e.n), Tolerance: e.tol, MTU: 9000, Method: e.method,
		Repeat: 4 * max(e.near, e.apart), Patience: 24 * time.Hour, Large: true,
	}
	s.Partition, err = problem.Slabs(p.N, e.peers, nil)
	if e.boxes {
		s.Partition, err = problem.Boxes(p.N, e.peers)
	}
	if err != nil {
		return played{}, err
	}
	clusters := make([]int, e.peers)
	for r := range clusters {
		clusters[r] = r * max(1, e.sites) / e.peers
	}
	if e.sites > 1 {
		s.Clusters = clusters
		s.Sites = &sim.Sites{Of: clusters, Apart: e.apart - e.near}
	}
	s.Scheme = e.scheme(clusters)
	if e.jitter == 0 {
		e.jitter = e.near / 4
	}
	s.After = mptest.Faults{Delay: e.near, Jitter: e.jitter}
	s.Faults, s.Control = s.After, sim.ControlFaults{Delay: e.near}
	for r := range e.peers {
		// Whole nanoseconds a point would be too coarse: what is slow is a factor.
		s.Costs = append(s.Costs, sim.Cost{Point: 1, Slow: pointTime * max(1, e.slow[r]), Send: 2 * time.Microsecond})
	}
	r, err := sim.Play(s, ctp.Catalog(), p2psap.TablePolicy{})
	if err != nil {
		return played{}, err
	}
	if r.Outcomes[0].Reason != iterate.Converged {
		return played{}, fmt.Errorf("the run ended because it %v", r.Outcomes[0].Reason)
	}
	v := played{seconds: r.Virtual.Seconds(), sweeps: float64(r.Points) / float64(p.Points())}
	for _, o := range r.Outcomes {
		v.iterate = max(v.iterate, float64(o.Sweeps))
	}
	return v, nil
}

// pair runs the same under two schemes and reports both and their ratio.
func (b *bench) pair(ctx context.Context, name string, one, two experiment, target float64) error {
	var first, second []float64
	var sweeps [2][]float64
	rounds := min(b.rounds, 3)
	if one.n > 100 {
		rounds = 1 // minutes, and one seed is one result
	}
	for seed := range rounds {
		for i, x := range []experiment{one, two} {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.seed = uint64(seed)
			v, err := x.run()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			sweeps[i] = append(sweeps[i], v.sweeps)
			if i == 0 {
				first = append(first, v.seconds)
			} else {
				second = append(second, v.seconds)
			}
		}
	}
	ratio := over("schemes", name+": virtual time, synchronous / asynchronous", "ratio", ratios(first, second))
	if target > 0 {
		ratio = ratio.atLeast(target)
	}
	b.report.add(over("schemes", name+": synchronous", "s", first), over("schemes", name+": synchronous", "sweep equivalents", sweeps[0]),
		over("schemes", name+": asynchronous", "s", second), over("schemes", name+": asynchronous", "sweep equivalents", sweeps[1]), ratio)
	return nil
}

// with changes what two experiments share.
func (e experiment) with(scheme func([]int) iterate.Scheme, m problem.MethodConfig) experiment {
	e.scheme, e.method = scheme, m
	return e
}

// schemes compares the schemes of iteration in virtual time.
func schemes(ctx context.Context, b *bench) error {
	sync, async := fixed(iterate.Synchronous()), fixed(iterate.Asynchronous())
	point := problem.MethodConfig{Name: problem.Richardson}
	if err := b.staleness(ctx); err != nil {
		return err
	}
	imbalance := experiment{n: 64, peers: 16, near: 50 * time.Microsecond, slow: map[int]float64{8: 5}, tol: 1e-6}
	if err := b.pair(ctx, "64³, 16 peers, one in the middle 5 times slower, Richardson", imbalance.with(sync, point), imbalance.with(async, point), 2.5); err != nil {
		return err
	}
	far := experiment{n: 128, peers: 4, sites: 2, near: 50 * time.Microsecond, apart: 10 * time.Millisecond, tol: 1e-4}
	if err := b.pair(ctx, "128³, two sites, round trip 20 ms, 2 peers each, to 1e-4, Richardson", far.with(sync, point), far.with(async, point), 4); err != nil {
		return err
	}
	boxes := imbalance
	boxes.boxes = true
	schwarz := problem.MethodConfig{Name: problem.Schwarz, Overlap: 2}
	if err := b.pair(ctx, "64³, 16 peers, one in the middle 5 times slower, Schwarz", boxes.with(sync, schwarz), boxes.with(async, schwarz), 0); err != nil {
		return err
	}
	far.tol = 1e-6
	if err := b.pair(ctx, "128³, two sites, round trip 20 ms, 2 peers each, to 1e-6, best method: multigrid against Schwarz",
		far.with(sync, problem.MethodConfig{Name: problem.Multigrid}), far.with(async, schwarz), 0); err != nil {
		return err
	}
	return b.pair(ctx, "128³, two sites, round trip 20 ms, 2 peers each, to 1e-6, Schwarz", far.with(sync, schwarz), far.with(async, schwarz), 0)
}

// staleness is what it costs to read values up to four sweeps old: in the iteration
// itself, every age from 0 to 4 as likely, and over a network whose way takes half a sweep
// to three and a half.
func (b *bench) staleness(ctx context.Context) error {
	prob, err := membrane(64)
	if err != nil {
		return err
	}
	slabs, err := problem.Slabs(prob.N, 8, nil)
	if err != nil {
		return err
	}
	boxes, err := problem.Boxes(prob.N, 8)
	if err != nil {
		return err
	}
	if err := b.stale(ctx, "64³, 8 slabs", prob, slabs); err != nil {
		return err
	}
	if err := b.stale(ctx, "64³, 8 boxes", prob, boxes); err != nil {
		return err
	}
	return b.delayed(ctx)
}

// stale reports the sweeps of an iteration with values of ages that are drawn, against
// those of the synchronous one, and the mean age.
func (b *bench) stale(ctx context.Context, name string, p *problem.Problem, part problem.Partition) error {
	var more, age []float64
	fresh, err := (&sim.Stale{Problem: p, Partition: part, Tolerance: 1e-6}).Run()
	if err != nil {
		return err
	}
	for seed := range min(b.rounds, 3) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		old, err := (&sim.Stale{Problem: p, Partition: part, Tolerance: 1e-6, Most: 4, Seed: uint64(seed)}).Run()
		if err != nil {
			return err
		}
		more = append(more, 100*(float64(old.Sweeps)/float64(fresh.Sweeps)-1))
		age = append(age, old.Age)
	}
	name += ", values 0 to 4 sweeps old, every age as likely"
	b.report.add(over("schemes", name+": mean age", "sweeps", age), over("schemes", name+": more sweeps than synchronous", "%", more).atMost(10))
	return nil
}

// delayed is delay:4 over a network, whole runs with all that belongs to them: looking for
// the end, measuring, and the sweeps until everyone has heard of it.
func (b *bench) delayed(ctx context.Context) error {
	for _, boxes := range []bool{false, true} {
		var more []float64
		e := experiment{n: 64, peers: 8, tol: 1e-6, boxes: boxes}
		sweep := time.Duration(pointTime * float64(e.n*e.n*e.n/e.peers))
		for seed := range min(b.rounds, 3) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			e.near, e.jitter, e.seed = sweep/2, 3*sweep, uint64(seed)
			one, err := e.with(fixed(iterate.Synchronous()), problem.MethodConfig{}).run()
			if err != nil {
				return err
			}
			two, err := e.with(fixed(iterate.BoundedDelay(4)), problem.MethodConfig{}).run()
			if err != nil {
				return err
			}
			more = append(more, 100*(two.sweeps/one.sweeps-1))
		}
		what := "slabs"
		if boxes {
			what = "boxes"
		}
		b.report.add(over("schemes", "64³, 8 "+what+", delay:4 over ways of half a sweep to three and a half: more sweeps than synchronous", "%", more).atMost(10))
	}
	return nil
}

func membrane(n int) (*problem.Problem, error) {
	b, err := problems.Lookup("membrane")
	if err != nil {
		return nil, err
	}
	return b.Make([3]int{n, n, n})
}
