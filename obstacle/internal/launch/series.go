package launch

import (
	"errors"
	"fmt"
	"sync"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Step describes the end of a time step.
type Step struct {
	Step     int             `json:"step"`
	Time     float64         `json:"time"`
	Sweeps   []uint64        `json:"sweeps"`            // by rank
	Residual nullable.Number `json:"relative_residual"` // as the peers agreed
}

// Pair holds the iterates at the start and the end of a time step, assembled [z][y][x], from which its residual is
// computed.
type Pair struct {
	Step        int // 0: none
	Before, End []float64
}

// maxList bounds the number of steps in an outcome; of more, equally spaced ones are listed.
const maxList = 1000

// series assembles the ends of time steps from the blocks of the peers. A peer may be one step ahead of another, so
// the ring holds the current step and the last two complete ones.
type series struct {
	problem *problem.Problem
	peers   int
	onStep  func(m int, t float64, u []float64) // called with every complete step; may be nil

	mu       sync.Mutex
	advanced *sync.Cond
	ring     [3][]float64 // by step mod 3
	owned    *ownership   // of the current step
	current  Step
	arrived  int // number of blocks of the current step that arrived
	done     int // number of complete steps, with those before the run
	first    int // number of complete steps before the run
	every    int // interval of the list
	list     []Step
	worst    Step
	pair     Pair // of the worst step
	closed   bool

	epoch     int
	suspended []bool // by rank: the peer has not begun the epoch yet, so its blocks are dropped
}

// newSeries returns a series that starts with the end of the last step before the run, or u(0). It is nil for a
// stationary problem.
func newSeries(p *Plan) (*series, error) {
	steps := p.Problem.Steps()
	if steps == 0 {
		return nil, nil
	}
	s := &series{
		problem: p.Problem, peers: p.Partition.Peers(), onStep: p.Steps, every: 1 + steps/maxList,
		done: p.After, first: p.After, owned: newOwnership(p), suspended: make([]bool, p.Partition.Peers()),
	}
	s.advanced = sync.NewCond(&s.mu)
	u, err := p.Problem.InitialValues(s.done, problem.Box{Hi: p.Problem.N}, p.Initial)
	if err != nil {
		return nil, err
	}
	for i := range s.ring {
		if s.ring[i] = u; i != s.done%len(s.ring) {
			s.ring[i] = make([]float64, p.Problem.Points())
		}
	}
	s.begin()
	if s.onStep != nil {
		s.onStep(s.done, p.Problem.Evolution.Time(s.done), u)
	}
	return s, nil
}

// begin starts the step after the last complete one. The lock is held.
func (s *series) begin() {
	m := s.done + 1
	s.current = Step{Step: m, Time: s.problem.Evolution.Time(m), Sweeps: make([]uint64, s.peers)}
	s.arrived = 0
	s.owned.reset()
}

var errSeries = errors.New("block of an unexpected time step")

// put writes a part of a peer's block at the end of step m. It blocks while there is no room for step m.
func (s *series) put(m, rank int, offset int64, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.await(m, rank); err != nil || s.suspended[rank] {
		return err
	}
	return blocks.Put(s.ring[m%len(s.ring)], s.problem.N, s.owned.box(rank), offset, data)
}

// declare sets a peer's box at the end of step m. It blocks as put does.
func (s *series) declare(m, rank int, box problem.Box) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.await(m, rank); err != nil || s.suspended[rank] {
		return err
	}
	return s.owned.declare(rank, box)
}

// await blocks until step m is the current one, or the peer is suspended. The lock is held.
func (s *series) await(m, rank int) error {
	for m > s.done+1 && !s.closed && !s.suspended[rank] {
		s.advanced.Wait()
	}
	if s.suspended[rank] && !s.closed {
		return nil
	}
	if s.closed || m != s.done+1 || m > s.problem.Steps() {
		return errSeries
	}
	return nil
}

// complete notes that a peer's block of step m is complete. The last block completes the step.
func (s *series) complete(rank int, m rendezvous.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended[rank] && !s.closed {
		return nil
	}
	if s.closed || m.Step != s.done+1 {
		return errSeries
	}
	s.current.Sweeps[rank], s.current.Residual = m.Sweeps, m.Residual
	if s.arrived++; s.arrived < s.peers {
		return nil
	}
	if gaps := s.owned.unowned(func(int) bool { return true }); s.owned.config.Balance && len(gaps) > 0 {
		return fmt.Errorf("no peer sent planes %d to %d of time step %d", gaps[0].Lo[s.owned.axis],
			gaps[0].Hi[s.owned.axis], m.Step)
	}
	step := s.current
	s.done = step.Step
	if s.worst.Step == 0 || step.Residual > s.worst.Residual {
		s.worst = step
		s.pair.Step = step.Step
		s.pair.Before = append(s.pair.Before[:0], s.at(s.done-1)...)
		s.pair.End = append(s.pair.End[:0], s.at(s.done)...)
	}
	if step.Step%s.every == 0 || step.Step == s.problem.Steps() {
		s.list = append(s.list, step)
	}
	if s.onStep != nil {
		s.onStep(s.done, step.Time, s.at(s.done))
	}
	s.begin()
	s.advanced.Broadcast()
	return nil
}

// restart begins an epoch: all peers go on from the last complete step, whose number it returns. Their blocks are dropped
// until resume.
func (s *series) restart(epoch int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = epoch
	for r := range s.suspended {
		s.suspended[r] = true
	}
	s.begin()
	s.advanced.Broadcast()
	return s.done
}

// resume states that a peer has begun an epoch, and returns the number of the step whose block it sends next.
func (s *series) resume(rank, epoch int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch == s.epoch {
		s.suspended[rank] = false
	}
	return s.done + 1
}

// over reports whether every step is complete.
func (s *series) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done == s.problem.Steps()
}

// newest returns the end of the last complete step, which is not changed before the next one is complete.
func (s *series) newest() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(s.done)
}

// stepDone handles a peer's message that its block of a time step, of which at bytes have arrived, is complete.
func (r *run) stepDone(m *member, s rendezvous.Step, step int, at int64) error {
	if r.series == nil || s.Step != step {
		return fmt.Errorf("unexpected end of time step %d: the next is %d", s.Step, step)
	}
	if all := blocks.Bytes(r.series.owned.box(m.rank)); at == 0 || at != all {
		return fmt.Errorf("end of time step %d after %d of %d bytes", s.Step, at, all)
	}
	return r.series.complete(m.rank, s)
}

// at returns the assembled end of one of the last two complete steps.
func (s *series) at(m int) []float64 { return s.ring[m%len(s.ring)] }

// close ends all blocking calls.
func (s *series) close() {
	s.mu.Lock()
	s.closed = true
	s.advanced.Broadcast()
	s.mu.Unlock()
}

// summarize writes the steps to an outcome. Its vector is the end of the last complete step.
func (s *series) summarize(o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.U, o.Missing = s.at(s.done), nil
	o.Steps, o.StepList, o.Worst = s.done, s.list, s.pair
	if s.done > s.first {
		o.Last = Pair{Step: s.done, Before: s.at(s.done - 1), End: o.U}
	}
}
