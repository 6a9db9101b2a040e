package launch

import (
	"errors"
	"fmt"
	"sync"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Step is how a time step ended.
type Step struct {
	Step     int
	Sweeps   []uint64 // by rank
	Residual float64  // relative, as the peers agreed
}

// Pair is a time step's beginning and end, assembled [z][y][x]: what its residual is
// judged by.
type Pair struct {
	Step        int // 0: none
	Before, End []float64
}

// maxList bounds the list of steps that an outcome holds: of more, every so many.
const maxList = 1000

// series assembles the ends of time steps as the peers' blocks come. A peer can be a
// step ahead of another, no more: so there is room for the last complete step, the one
// before it, which it is judged by, and the one that is coming.
type series struct {
	problem *problem.Problem
	peers   int
	took    func(m int, t float64, u []float64) // sees every complete step; may be nil

	mu     sync.Mutex
	moved  *sync.Cond
	ring   [3][]float64 // by step mod 3
	claims *claims      // of the coming step
	coming Step
	came   int // peers whose block of the coming step is here
	done   int // complete steps
	every  int // of the list
	list   []Step
	worst  Step
	pair   Pair // of the worst step
	over   bool
}

// newSeries begins with u(0); nil for a stationary problem.
func newSeries(p *Plan) (*series, error) {
	steps := p.Problem.Steps()
	if steps == 0 {
		return nil, nil
	}
	s := &series{problem: p.Problem, peers: p.Partition.Peers(), took: p.Steps, every: 1 + steps/maxList, claims: newClaims(p)}
	s.moved = sync.NewCond(&s.mu)
	var err error
	if s.ring[0], err = verify.AtStart(p.Problem, p.Initial); err != nil {
		return nil, err
	}
	for i := 1; i < len(s.ring); i++ {
		s.ring[i] = make([]float64, p.Problem.Points())
	}
	s.begin()
	if s.took != nil {
		s.took(0, 0, s.ring[0])
	}
	return s, nil
}

// begin makes room for the step after the last complete one. The lock is held.
func (s *series) begin() {
	s.coming, s.came = Step{Step: s.done + 1, Sweeps: make([]uint64, s.peers)}, 0
	s.claims.reset()
}

var errSeries = errors.New("a block of a time step that is not the peer's next")

// put places a piece of a peer's block at the end of step m. It waits while m is
// further ahead than there is room for.
func (s *series) put(m, rank int, offset int64, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.await(m); err != nil {
		return err
	}
	return blocks.Put(s.ring[m%len(s.ring)], s.problem.N, s.claims.box(rank), offset, data)
}

// claim takes a peer's word for its box at the end of step m; it waits as put does.
func (s *series) claim(m, rank int, box problem.Box) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.await(m); err != nil {
		return err
	}
	return s.claims.claim(rank, box)
}

// await waits until step m is coming. The lock is held.
func (s *series) await(m int) error {
	for m > s.done+1 && !s.over {
		s.moved.Wait()
	}
	if s.over || m != s.done+1 || m > s.problem.Steps() {
		return errSeries
	}
	return nil
}

// bytes are those of a peer's block of the coming step.
func (s *series) bytes(rank int) int64 { return blocks.Bytes(s.claims.box(rank)) }

// complete notes that a peer's block of step m is whole; the last one completes it.
func (s *series) complete(rank int, m rendezvous.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || m.Step != s.done+1 {
		return errSeries
	}
	s.coming.Sweeps[rank], s.coming.Residual = m.Sweeps, float64(m.Residual)
	if s.came++; s.came < s.peers {
		return nil
	}
	if gaps := s.claims.gaps(func(int) bool { return true }); s.claims.config.Balance && len(gaps) > 0 {
		return fmt.Errorf("at the end of time step %d no peer has the planes %d to %d", m.Step, gaps[0].Lo[s.claims.axis], gaps[0].Hi[s.claims.axis])
	}
	step := s.coming
	s.done = step.Step
	if s.worst.Step == 0 || step.Residual > s.worst.Residual {
		s.worst = step
		s.pair = Pair{Step: step.Step, Before: append(s.pair.Before[:0], s.at(s.done-1)...), End: append(s.pair.End[:0], s.at(s.done)...)}
	}
	if step.Step%s.every == 0 || step.Step == s.problem.Steps() {
		s.list = append(s.list, step)
	}
	if s.took != nil {
		s.took(s.done, s.problem.Evolution.Time(s.done), s.at(s.done))
	}
	s.begin()
	s.moved.Broadcast()
	return nil
}

// stepDone takes a peer's word that its block of a time step, of which at bytes have
// come, is whole.
func (r *run) stepDone(m *member, s rendezvous.Step, step int, at int64) error {
	if r.series == nil || s.Step != step {
		return fmt.Errorf("it says that time step %d is complete, its next is %d", s.Step, step)
	}
	if all := r.series.bytes(m.rank); at == 0 || at != all {
		return fmt.Errorf("it says that time step %d is complete, with %d of %d bytes", s.Step, at, all)
	}
	return r.series.complete(m.rank, s)
}

// at is the assembled end of one of the last two complete steps.
func (s *series) at(m int) []float64 { return s.ring[m%len(s.ring)] }

// close lets nobody wait any more.
func (s *series) close() {
	s.mu.Lock()
	s.over = true
	s.moved.Broadcast()
	s.mu.Unlock()
}

// sum puts the steps into an outcome: its vector is the end of the last complete one,
// whatever became of the peers since.
func (s *series) sum(o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.U, o.Missing = s.at(s.done), nil
	o.Steps, o.StepList, o.Worst = s.done, s.list, s.pair
	if s.done > 0 {
		o.Last = Pair{Step: s.done, Before: s.at(s.done - 1), End: o.U}
	}
}
