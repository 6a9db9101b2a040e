package calibration

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Workload says of which run the relaxation is measured: so many peers on a grid of N points a
// side, cut as runs are. How fast it is depends on the caches that the blocks of the peers on a
// core fit, and on their shape. The zero Workload is a whole grid of 96 points a side, which fits
// none of a core's. MTU is that of messages; 0: loopback's.
// Messages are those of lockstep, or Asynchronous, over loopback or a Path.
type Workload struct {
	N, Peers, MTU int
	Asynchronous  bool
	Path          *Path
}

func (b Workload) orDefault() (Workload, error) {
	if b.N == 0 && b.Peers == 0 {
		b.N, b.Peers = 96, 1
	}
	if b.MTU == 0 {
		b.MTU = ether.MaxMTU
	}
	if b.MTU < ether.MinMTU || b.MTU > ether.MaxMTU {
		return b, fmt.Errorf("messages by an MTU of %d bytes: it should be %d to %d", b.MTU, ether.MinMTU, ether.MaxMTU)
	}
	if b.N < 2 || b.N > 1024 || b.Peers < 1 || b.Peers > b.N {
		return b, fmt.Errorf("a block of one of %d peers at n = %d: there should be 2 to 1024 points a side, and 1 to n peers", b.Peers, b.N)
	}
	return b, nil
}

func (b Workload) partition() (problem.Partition, error) {
	return problem.SlabsOrBoxes([3]int{b.N, b.N, b.N}, b.Peers, nil)
}

// String names the block.
func (b Workload) String() string {
	p, err := b.partition()
	if err != nil {
		return err.Error()
	}
	box := p.Box(0)
	return fmt.Sprintf("%d×%d×%d points", box.Hi[0]-box.Lo[0], box.Hi[1]-box.Lo[1], box.Hi[2]-box.Lo[2])
}

// turns are the peers of one core: each relaxes its block before the next does, as peers do who
// wait for each other. When there are several, a block is not in the cache any more.
type turns struct {
	peers  []*relaxer
	sweeps []sweep
}

// during has them take turns for about so long.
func (t *turns) during(d time.Duration) error {
	for begin := time.Now(); time.Since(begin) < d; {
		for _, r := range t.peers {
			s, err := r.relax()
			if err != nil {
				return err
			}
			s.parts = append([]timedPart(nil), s.parts...)
			t.sweeps = append(t.sweeps, s)
		}
	}
	return nil
}

// once has each relax its block once.
func (t *turns) once() error {
	for _, r := range t.peers {
		if _, err := r.relax(); err != nil {
			return err
		}
	}
	return nil
}

// What the rate of relaxation is measured by: rounds that take turns between one core and all
// of them, of so long each.
const (
	pass   = 20 * time.Millisecond
	rounds = 15
)

// speed is what the relaxation of a block takes.
type speed struct {
	rate             float64 // points a second, of a thread alone
	part             time.Duration
	jitter           float64
	crowding         float64
	straggle         cluster.Straggle
	packing, reading float64 // nanoseconds a byte of a face
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
		case i == 0: // caches are cold, and pages new
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

// together has all relax at once.
func together(crew []turns) error {
	errs := make([]error, len(crew))
	var all sync.WaitGroup
	for i := range crew {
		all.Go(func() { errs[i] = crew[i].during(pass) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// relaxing is what a sweep takes, most often.
func relaxing(of []sweep) float64 {
	times := make([]float64, len(of))
	for i := range of {
		times[i] = float64(of[i].relaxing)
	}
	return middle(times)
}

// perByte is what something takes for a byte of a face.
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

// mostCrowding is what a description takes.
const mostCrowding = 100

// crowding is by how much longer a thread takes for each other one, when so many that take
// alone by themselves take crowd at once.
func crowding(alone, crowd float64, threads int) float64 {
	return min(mostCrowding, max(0, (crowd/alone-1)/float64(threads-1)))
}

// jitter is the relative deviation of what sweeps take, from their quartiles: rare pauses do not
// count, which are another thing (cluster.Straggle). It is at most 1, the most that a description
// takes: where it would be more, other programs had the machine.
func jitter(of []sweep) float64 {
	if len(of) < 4 {
		return 0
	}
	logs := make([]float64, len(of))
	for i := range of {
		logs[i] = math.Log(float64(max(1, of[i].relaxing)))
	}
	low, high := quartiles(logs)
	return min(1, (high-low)/normalQuartiles)
}

// shortestPause is what a sweep must be held up for to count, if its jitter is less.
const shortestPause = 50 * time.Microsecond

// mostPauses a second are what a description takes.
const mostPauses = 1e6

// straggle is how often a thread that relaxes is held up for longer than jitter explains, four
// deviations, and for how long in the mean.
func straggle(of []sweep, jitter float64) cluster.Straggle {
	if len(of) == 0 {
		return cluster.Straggle{}
	}
	usual := relaxing(of)
	least := max(float64(shortestPause), usual*math.Expm1(4*jitter))
	relaxed, paused, times := 0.0, 0.0, 0
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
	return cluster.Straggle{PerSecond: min(mostPauses, float64(times)/relaxed*1e9), For: time.Duration(paused / float64(times))}
}

// normalQuartiles is how far the quartiles of a normal distribution are apart, in deviations.
const normalQuartiles = 1.349
