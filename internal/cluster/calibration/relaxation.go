package calibration

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/solver"
)

// Block says on which block the relaxation is measured: that of one peer of so many, who have
// a grid of N points a side in slabs. How fast it is depends on the caches that the block
// fits. The zero Block is a whole grid of 96 points a side, which fits none of a core's.
type Block struct{ N, Peers int }

func (b Block) orDefault() (Block, error) {
	if b == (Block{}) {
		return Block{N: 96, Peers: 1}, nil
	}
	if b.N < 2 || b.N > 1024 || b.Peers < 1 || b.Peers > b.N {
		return b, fmt.Errorf("a block of one of %d peers at n = %d: there should be 2 to 1024 points a side, and 1 to n peers", b.Peers, b.N)
	}
	return b, nil
}

// String names the block.
func (b Block) String() string {
	if b.Peers == 1 {
		return fmt.Sprintf("%d³ points", b.N)
	}
	return fmt.Sprintf("%d×%d×%d points", b.N, b.N, b.N/b.Peers)
}

// relaxer is a peer that is alone.
type relaxer struct {
	peer   solver.Peer
	points int
	parts  []Part
}

// newRelaxer makes a peer whose block has so many planes of n² points.
func newRelaxer(n, planes int) (*relaxer, error) {
	p := &solver.Problem{
		Name: "calibration", Dimension: 3, N: [3]int{n, n, planes}, Hi: solver.Point{1, 1, 1}, Diffusion: solver.Coefficient{Value: 1},
		// As in the reference problem it differs from point to point, so that it is read.
		Obstacle: func(p solver.Point) float64 {
			v := 0.5
			for _, x := range p {
				v -= 4 * (x - 0.5) * (x - 0.5)
			}
			return v
		},
		Boundary: func(solver.Point) float64 { return 0 },
		Source:   solver.Coefficient{Value: -1},
	}
	partition, err := solver.Slabs(p.N, 1, nil)
	if err != nil {
		return nil, err
	}
	peer, err := solver.New(solver.Config{
		Problem: p, Partition: partition, Scheme: solver.Synchronous(), Tolerance: 1e-12, CheckEvery: 1 << 30,
		Method: solver.MethodConfig{Together: 1}, // as a peer among others
	})
	if err != nil {
		return nil, err
	}
	return &relaxer{peer: peer, points: peer.Box().Points()}, nil
}

// relax relaxes the whole block so many times.
func (r *relaxer) relax(sweeps int) (time.Duration, error) {
	begin := time.Now()
	for left := sweeps * r.points; left > 0; {
		op := r.peer.Next(time.Since(begin))
		before := time.Now()
		switch op.Kind {
		case solver.OpRelax:
			r.peer.Relax(op)
			r.parts = append(r.parts, Part{op.Points, time.Since(before)})
			left -= op.Points
		default:
			return 0, fmt.Errorf("the peer to be measured wants operation %d: %w", op.Kind, op.Err)
		}
	}
	return time.Since(begin), nil
}

// What the rate of relaxation is measured by: rounds that take turns between one peer and as
// many as there are cores, of about so long each.
const (
	pass   = 20 * time.Millisecond
	rounds = 7
)

// speed is what the relaxation of a block takes.
type speed struct {
	rate     float64 // points a second, of a thread alone
	part     time.Duration
	crowding float64
	copying  float64 // nanoseconds a byte of a face
}

func relaxations(b Block, cores int) (s speed, err error) {
	crew := make([]*relaxer, max(1, min(cores, 16)))
	for i := range crew {
		if crew[i], err = newRelaxer(b.N, b.N/b.Peers); err != nil {
			return s, err
		}
	}
	layer, err := newRelaxer(b.N, 1)
	if err != nil {
		return s, err
	}
	took, err := crew[0].relax(2)
	if err != nil {
		return s, err
	}
	sweeps := int(max(1, 2*pass/max(took, 1)))
	alone, crowd := math.Inf(1), math.Inf(1)
	crew[0].parts = crew[0].parts[:0]
	for range rounds {
		if took, err = crew[0].relax(sweeps); err != nil {
			return s, err
		}
		alone = min(alone, float64(took))
		if len(crew) == 1 {
			continue
		}
		measured := len(crew[0].parts)
		if took, err = together(crew, sweeps); err != nil {
			return s, err
		}
		crowd = min(crowd, float64(took))
		crew[0].parts = crew[0].parts[:measured] // what crowded parts took is no rate of a thread alone
	}
	if _, err = layer.relax(100); err != nil {
		return s, err
	}
	if s.rate, s.part, err = Rate(append(crew[0].parts, layer.parts...)); err != nil {
		return s, err
	}
	if len(crew) > 1 {
		s.crowding = Crowding(alone, crowd, len(crew))
	}
	s.copying = copying(8 * b.N * b.N)
	return s, nil
}

// copying is what it takes to copy a byte of a face of so many, as packing one and taking one
// in do.
func copying(bytes int) float64 {
	from, to := make([]byte, bytes), make([]byte, bytes)
	var times []float64
	for range 100 {
		begin := time.Now()
		copy(to, from)
		times = append(times, float64(time.Since(begin)))
	}
	return quiet(times) / float64(bytes)
}

// Crowding is by how much longer a thread takes for each other one, when so many that take
// alone by themselves take crowd at once.
func Crowding(alone, crowd float64, threads int) float64 {
	return max(0, (crowd/alone-1)/float64(threads-1))
}

// together has all relax at once, and tells what they took on average.
func together(crew []*relaxer, sweeps int) (time.Duration, error) {
	times, errs := make([]time.Duration, len(crew)), make([]error, len(crew))
	var all sync.WaitGroup
	for i, r := range crew {
		all.Go(func() { times[i], errs[i] = r.relax(sweeps) })
	}
	all.Wait()
	sum := time.Duration(0)
	for i := range crew {
		if errs[i] != nil {
			return 0, errs[i]
		}
		sum += times[i]
	}
	return sum / time.Duration(len(crew)), nil
}
