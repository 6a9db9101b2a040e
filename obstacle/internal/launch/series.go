package launch

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
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
	Step        int       // 0: none
	Before, End []float64 `json:"-"`
}

// maxList bounds the number of steps in an outcome; of more, equally spaced ones are listed.
const maxList = 1000

// series assembles the ends of time steps from the blocks of the peers. A peer may be one step ahead of another, so
// the ring holds the current step and the last two complete ones.
//
// In a process that leads the run after the loss of its leader no end is known, until it has collected that of one step
// from the peers.
type series struct {
	problem *problem.Problem
	peers   int
	onStep  func(m int, t float64, u []float64) // called with every complete step; may be nil

	mu       sync.Mutex
	advanced *sync.Cond
	ring     [3][]float64 // by step mod 3
	owned    *ownership   // of the current step
	current  Step
	arrived  int           // number of blocks of the current step that arrived
	boxes    []problem.Box // by rank, at the end of the newest complete step
	next     []int         // by rank: the step whose block comes next
	done     int           // number of complete steps, with those before the run
	first    int           // the first step whose end is known, or will be when done is first
	every    int           // interval of the list
	list     []Step
	worst    Step
	pair     Pair // of the worst step
	closed   bool

	epoch     int
	suspended []bool // by rank: the peer has not begun the epoch yet, so its blocks are dropped
	delivered []bool // by rank: the block of the current step is complete
}

// newSeries returns a series that starts with the end of the last step before the run, or u(0). It is nil for a
// stationary problem.
func newSeries(p *Plan) (*series, error) {
	s := emptySeries(p)
	if s == nil {
		return nil, nil
	}
	if err := s.start(p.After, p.Initial, false); err != nil {
		return nil, err
	}
	if s.onStep != nil {
		s.onStep(s.done, p.Problem.Evolution.Time(s.done), s.at(s.done))
	}
	return s, nil
}

// emptySeries returns a series in which no end is known. It drops all blocks. It is nil for a stationary problem.
func emptySeries(p *Plan) *series {
	steps, peers := p.Problem.Steps(), p.Partition.Peers()
	if steps == 0 {
		return nil
	}
	s := &series{
		problem: p.Problem, peers: peers, onStep: p.Steps, every: 1 + steps/maxList, done: -1,
		owned: newOwnership(p), next: make([]int, peers), boxes: make([]problem.Box, peers), suspended: make([]bool, peers), delivered: make([]bool, peers),
	}
	s.advanced = sync.NewCond(&s.mu)
	s.suspend(true)
	for i := range s.ring {
		s.ring[i] = make([]float64, p.Problem.Points())
	}
	return s
}

// start begins after step m, whose end is u; nil: u(0) of the problem. If it is suspended, blocks are dropped until resume.
func (s *series) start(m int, u []float64, suspended bool) error {
	u, err := s.problem.InitialValues(m, problem.Box{Hi: s.problem.N}, u)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring[m%len(s.ring)] = u
	for r := range s.boxes {
		s.boxes[r] = s.owned.config.Partition.Box(iterate.Rank(r))
	}
	s.first, s.list, s.worst, s.pair = m, nil, Step{}, Pair{}
	s.follow(m, suspended)
	return nil
}

// collect awaits the end of step m from every peer, and then those of the steps after it.
func (s *series) collect(m int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = m
	s.follow(m-1, false)
}

// follow awaits the step after m from every peer. The lock is held.
func (s *series) follow(m int, suspended bool) {
	s.done = m
	for r := range s.next {
		s.next[r] = m + 1
	}
	s.begin()
	s.suspend(suspended)
}

// suspend drops the blocks of all peers, or accepts them again. The lock is held.
func (s *series) suspend(all bool) {
	for r := range s.suspended {
		s.suspended[r] = all
	}
	s.advanced.Broadcast()
}

// missing returns the ranks whose blocks are needed for the first end that is known, nil if one is. The lock
// is held.
func (s *series) missing() (ranks []int) {
	for r, has := range s.delivered {
		if s.done < s.first && !has {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// begin starts the step after the last complete one. The lock is held.
func (s *series) begin() {
	m := s.done + 1
	s.current = Step{Step: m, Time: s.problem.Evolution.Time(m), Sweeps: make([]uint64, s.peers)}
	s.arrived = 0
	clear(s.delivered)
	s.owned.reset()
}

var errSeries = errors.New("block of an unexpected time step")

// put writes a part of a peer's block at the end of its next step. It blocks while there is no room for the step.
func (s *series) put(rank int, offset int64, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.await(rank); err != nil || s.suspended[rank] {
		return err
	}
	return blocks.Put(s.ring[s.next[rank]%len(s.ring)], s.problem.N, s.owned.box(rank), offset, data)
}

// declare sets a peer's box at the end of its next step. It blocks as put does.
func (s *series) declare(rank int, box problem.Box) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.await(rank); err != nil || s.suspended[rank] {
		return err
	}
	return s.owned.declare(rank, box)
}

// await blocks until a peer's next step is the current one, or the peer is suspended. The lock is held.
func (s *series) await(rank int) error {
	for s.next[rank] > s.done+1 && !s.closed && !s.suspended[rank] {
		s.advanced.Wait()
	}
	if s.suspended[rank] && !s.closed {
		return nil
	}
	if m := s.next[rank]; s.closed || m != s.done+1 || m > s.problem.Steps() {
		return errSeries
	}
	return nil
}

// complete notes that a peer's block of a step, of which at bytes have arrived, is complete. The last block completes the
// step.
func (s *series) complete(rank int, m rendezvous.Step, at int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended[rank] && !s.closed {
		return nil
	}
	if m.Step != s.next[rank] {
		return fmt.Errorf("unexpected end of time step %d: the next is %d", m.Step, s.next[rank])
	}
	if all := blocks.Bytes(s.owned.box(rank)); at == 0 || at != all {
		return fmt.Errorf("end of time step %d after %d of %d bytes", m.Step, at, all)
	}
	if s.closed || m.Step != s.done+1 {
		return errSeries
	}
	s.current.Sweeps[rank], s.current.Residual = m.Sweeps, m.Residual
	s.delivered[rank], s.next[rank] = true, m.Step+1
	if s.arrived++; s.arrived < s.peers {
		return nil
	}
	if gaps := s.owned.unowned(func(int) bool { return true }); s.owned.config.Balance && len(gaps) > 0 {
		return fmt.Errorf("no peer sent planes %d to %d of time step %d", gaps[0].Lo[s.owned.axis],
			gaps[0].Hi[s.owned.axis], m.Step)
	}
	s.done = m.Step
	for r := range s.boxes {
		s.boxes[r] = s.owned.box(r)
	}
	if s.done > s.first {
		s.note(s.current)
	}
	if s.onStep != nil {
		s.onStep(s.done, s.current.Time, s.at(s.done))
	}
	s.begin()
	s.advanced.Broadcast()
	return nil
}

// note adds a complete step to the list and compares it with the worst. The lock is held.
func (s *series) note(step Step) {
	if s.worst.Step == 0 || step.Residual > s.worst.Residual {
		s.worst = step
		s.pair.Step = step.Step
		s.pair.Before = append(s.pair.Before[:0], s.at(s.done-1)...)
		s.pair.End = append(s.pair.End[:0], s.at(s.done)...)
	}
	if step.Step%s.every == 0 || step.Step == s.problem.Steps() {
		s.list = append(s.list, step)
	}
}

// restart begins an epoch: all peers go on from the last complete step. Their blocks are dropped
// until resume. No epoch begins after the last step of the run: that is done again.
func (s *series) restart(epoch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = epoch
	if s.done == s.problem.Steps() {
		s.done--
		s.list = s.list[:len(s.list)-1]
	}
	s.begin()
	s.suspend(true)
}

// resume states that a peer has begun an epoch.
func (s *series) resume(rank, epoch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch == s.epoch {
		s.suspended[rank] = false
	}
	s.next[rank] = s.done + 1
}

// known returns which ends have arrived.
func (s *series) known() timeSteps {
	s.mu.Lock()
	defer s.mu.Unlock()
	return timeSteps{done: s.done, over: s.done == s.problem.Steps(), missing: s.missing()}
}

// newest returns the end of the last complete step, which is not changed before the next one is complete.
func (s *series) newest() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(s.done)
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

// summarize writes the steps to an outcome. Its vector is the end of the last complete step, nil if no end is known.
func (s *series) summarize(o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.U, o.Missing = nil, nil; s.done < s.first {
		if o.Failure = cmp.Or(o.Failure, "the end of no time step is known"); o.Reason != CutOff {
			o.Reason = Failed
		}
		return
	}
	o.U = s.at(s.done)
	o.Steps, o.FirstStep, o.StepList, o.Worst = s.done, s.first+1, s.list, s.pair
	if s.done > s.first {
		o.Last = Pair{Step: s.done, Before: s.at(s.done - 1), End: o.U}
	}
}

// ends returns copies of the blocks of some peers at the end of the newest step.
func (s *series) ends(ranks []int) (out []End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done < s.first {
		return nil
	}
	for _, rank := range ranks {
		b := s.boxes[rank]
		out = append(out, End{rank, s.done, b, blocks.Extract(s.at(s.done), s.problem.N, b)})
	}
	return out
}

// place writes the block of a peer from a copy.
func (s *series) place(e *End) error {
	data := make([]byte, 8*len(e.U))
	blocks.Encode(data, e.U)
	if s.owned.config.Balance {
		if err := s.declare(e.Rank, e.Box); err != nil {
			return err
		}
	}
	if err := s.put(e.Rank, 0, data); err != nil {
		return err
	}
	return s.complete(e.Rank, rendezvous.Step{Step: e.Step, Residual: nullable.NaN()}, int64(len(data)))
}
