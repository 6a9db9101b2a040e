package calibration

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Workload is the run for which the machine is measured: Peers peers on a grid of N points along
// each axis, partitioned as runs are. The speed of relaxation depends on the shape of the blocks and
// on the caches that the blocks of a core's peers fit. The zero Workload is a whole grid of 96
// points along each axis, which fits no core's caches. Messages are sent with MTU (0: that of
// loopback), synchronously or Asynchronous, over loopback or a Path.
type Workload struct {
	N, Peers, MTU int
	Asynchronous  bool
	Path          *Path
}

func (b Workload) orDefault() (Workload, error) {
	if b.N == 0 && b.Peers == 0 {
		b.N, b.Peers = 96, 1
	}
	b.MTU = cmp.Or(b.MTU, ether.MaxMTU)
	if b.MTU < ether.MinMTU || b.MTU > ether.MaxMTU {
		return b, fmt.Errorf("messages by an MTU of %d bytes: it should be %d to %d", b.MTU, ether.MinMTU, ether.MaxMTU)
	}
	if b.N < 2 || b.N > 1024 || b.Peers < 1 || b.Peers > b.N {
		return b, fmt.Errorf("a block of one of %d peers at n = %d: want 2 to 1024 points a side, and 1 to n peers",
			b.Peers, b.N)
	}
	return b, nil
}

func (b Workload) partition() (problem.Partition, error) {
	p, _, err := problem.SlabsOrBoxes([3]int{b.N, b.N, b.N}, b.Peers, nil)
	return p, err
}

// String returns the size of the block.
func (b Workload) String() string {
	p, err := b.partition()
	if err != nil {
		return err.Error()
	}
	box := p.Box(0)
	return fmt.Sprintf("%d×%d×%d points", box.Hi[0]-box.Lo[0], box.Hi[1]-box.Lo[1], box.Hi[2]-box.Lo[2])
}

// turns are the peers of one core. They relax their blocks in turn, as peers that wait for each
// other do. With several peers, a block has left the caches when its turn comes.
type turns struct {
	peers  []*relaxer
	sweeps []sweep
}

// during lets the peers take turns for about so long.
func (t *turns) during(d time.Duration) error {
	for begin := time.Now(); time.Since(begin) < d; {
		for _, r := range t.peers {
			s, err := r.relax()
			if err != nil {
				return err
			}
			s.parts = slices.Clone(s.parts)
			t.sweeps = append(t.sweeps, s)
		}
	}
	return nil
}

// once lets each peer relax its block once.
func (t *turns) once() error {
	for _, r := range t.peers {
		if _, err := r.relax(); err != nil {
			return err
		}
	}
	return nil
}

// The rate is measured in rounds of this length, in turn on one core and on all cores.
const (
	pass   = 20 * time.Millisecond
	rounds = 15
)

// speed describes the relaxation of a block.
type speed struct {
	rate             float64 // points per second of one thread alone
	part             time.Duration
	jitter           float64
	crowding         float64
	straggle         cluster.Straggle
	packing, reading float64 // nanoseconds per byte of a face
}

func relaxations(b Workload, peers []*relaxer, cores int) (s speed, err error) {
	crew := make([]turns, min(cores, len(peers)))
	for i, r := range peers {
		if t := &crew[i%len(crew)]; len(t.peers) < perCore(b, cores) {
			t.peers = append(t.peers, r)
		}
	}
	var alone, crowd []sweep
	for i := range rounds + 1 {
		err := crew[0].during(pass)
		if err == nil && len(crew) > 1 {
			alone = append(alone, crew[0].sweeps...)
			crew[0].sweeps = nil
			err = together(crew)
		}
		for j := range crew {
			crowd = append(crowd, crew[j].sweeps...)
			crew[j].sweeps = nil
		}
		switch {
		case err != nil:
			return s, err
		case i == 0: // caches are cold and pages are new
			alone, crowd = nil, nil
		case len(crew) == 1:
			alone, crowd = append(alone, crowd...), nil
		}
	}
	if s.rate, s.part, err = rate(alone); err != nil {
		return s, err
	}
	s.jitter = jitter(alone)
	s.straggle = straggle(alone, s.jitter)
	if len(crew) > 1 {
		s.crowding = crowding(relaxing(alone), relaxing(crowd), len(crew))
		s.straggle = straggle(crowd, s.jitter)
	}
	s.packing = perByte(alone, func(s *sweep) time.Duration { return s.packing })
	s.reading = perByte(alone, func(s *sweep) time.Duration { return s.reading })
	return s, nil
}

// together lets the peers of all cores relax at the same time.
func together(crew []turns) error {
	errs := make([]error, len(crew))
	var all sync.WaitGroup
	for i := range crew {
		all.Go(func() { errs[i] = crew[i].during(pass) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// relaxing returns the median time of a sweep.
func relaxing(of []sweep) float64 {
	times := make([]float64, len(of))
	for i := range of {
		times[i] = float64(of[i].relaxing)
	}
	return middle(times)
}

// perByte returns the median time per byte of a face.
func perByte(of []sweep, took func(*sweep) time.Duration) float64 {
	var each []float64
	for i := range of {
		if of[i].bytes > 0 {
			each = append(each, float64(took(&of[i]))/float64(of[i].bytes))
		}
	}
	if len(each) == 0 {
		return 0
	}
	return middle(each)
}

// mostCrowding is the bound of a description.
const mostCrowding = 100

// crowding returns the relative increase of a thread's time for each other thread, if a sweep takes
// alone on one core and crowd on so many cores at once.
func crowding(alone, crowd float64, threads int) float64 {
	return min(mostCrowding, max(0, (crowd/alone-1)/float64(threads-1)))
}

// jitter returns the relative deviation of the times of sweeps, from their quartiles, so that rare
// pauses do not count (see straggle). It is at most 1, the bound of a description; other programs
// used the machine if it would be more.
func jitter(of []sweep) float64 {
	if len(of) < 4 {
		return 0
	}
	logs := make([]float64, len(of))
	for i := range of {
		logs[i] = math.Log(float64(max(1, of[i].relaxing)))
	}
	slices.Sort(logs)
	quartiles := stat.Quantile(0.75, stat.Empirical, logs, nil) - stat.Quantile(0.25, stat.Empirical, logs, nil)
	return min(1, quartiles/normalQuartiles)
}

// shortestPause is the shortest interruption that counts as a pause, if jitter explains less.
const shortestPause = 50 * time.Microsecond

// mostPauses is the bound of a description, per second.
const mostPauses = 1e6

// straggle returns the rate and the mean length of interruptions that jitter does not explain: of
// more than four deviations.
func straggle(of []sweep, jitter float64) cluster.Straggle {
	if len(of) == 0 {
		return cluster.Straggle{}
	}
	usual := relaxing(of)
	least := max(float64(shortestPause), usual*math.Expm1(4*jitter))
	var relaxed, paused float64
	times := 0
	for i := range of {
		took := float64(of[i].relaxing)
		if took > usual+least {
			paused += took - usual
			took = usual
			times++
		}
		relaxed += took
	}
	if times == 0 {
		return cluster.Straggle{}
	}
	return cluster.Straggle{PerSecond: min(mostPauses, float64(times)/relaxed*1e9),
		For: time.Duration(paused / float64(times))}
}

// normalQuartiles is the distance of a normal distribution's quartiles, in deviations.
const normalQuartiles = 1.349
