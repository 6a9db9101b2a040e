package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Stale is a run without a network whose peers relax in turn, all at the same iterate. Each sweep
// reads, of each neighbour, an iterate that is 0 to Most sweeps old; ages are drawn uniformly. The
// additional sweeps, compared with Most 0, which is the synchronous iteration, are the cost of old
// values.
type Stale struct {
	Problem   *problem.Problem
	Partition problem.Partition
	Order     problem.Order
	Most      int
	Tolerance float64
	Seed      uint64
}

// Staleness is the outcome of such a run.
type Staleness struct {
	Sweeps iterate.Iteration
	Age    float64 // mean, in sweeps
}

// staleRun is the state of such a run.
type staleRun struct {
	of      *Stale
	rand    *rand.Rand
	workers []problem.Peer
	boxes   []int // points
	faces   map[[2]iterate.Rank]*pastFaces
	round   time.Duration
	ages    int
	reads   int
}

// pastFaces holds the newest faces from one peer to another, a ring by iterate.
type pastFaces struct {
	data   [][]byte
	newest uint64
	have   bool
	read   []byte // what the worker reads until the next face
}

// Run runs it.
func (s *Stale) Run() (Staleness, error) {
	r := &staleRun{of: s, rand: rand.New(rand.NewPCG(s.Seed, 0x7374616c65)), faces: map[[2]iterate.Rank]*pastFaces{}}
	for rank := range s.Partition.Peers() {
		w, err := solver.New(problem.Config{
			Problem: s.Problem, Partition: s.Partition, Rank: iterate.Rank(rank), Scheme: iterate.Asynchronous(),
			Order: s.Order, Tolerance: s.Tolerance, CheckEvery: 8,
		})
		if err != nil {
			return Staleness{}, err
		}
		r.workers = append(r.workers, w)
		r.boxes = append(r.boxes, w.Box().Points())
	}
	for done := false; !done; {
		r.round += time.Millisecond
		done = true
		for rank := range r.workers {
			ended, err := r.turn(iterate.Rank(rank))
			if err != nil {
				return Staleness{}, err
			}
			done = done && ended
		}
	}
	out := Staleness{Age: float64(r.ages) / float64(max(1, r.reads))}
	for _, w := range r.workers {
		o := w.Outcome()
		if o.Reason != iterate.Converged {
			return out, fmt.Errorf("sim: the run ended because it %v", o.Reason)
		}
		out.Sweeps = max(out.Sweeps, o.Sweeps)
	}
	return out, nil
}

// turn lets a worker read and relax once, or measure once. It stops before the worker would read
// again.
func (r *staleRun) turn(rank iterate.Rank) (ended bool, err error) {
	w := r.workers[rank]
	for _, l := range w.Links() {
		if err := r.deliver(l.Rank, rank); err != nil {
			return false, err
		}
	}
	for relaxed := 0; relaxed < r.boxes[rank]; {
		op := w.Next(r.round)
		switch op.Kind {
		case iterate.OpDone:
			return true, nil
		case iterate.OpWait:
			return false, nil
		case iterate.OpFail:
			return false, op.Err
		case iterate.OpRelax:
			w.Relax(op)
			relaxed += op.Points
		case iterate.OpSend:
			r.keep(rank, op)
		case iterate.OpAgree:
			if err := r.workers[op.To].Agree(r.round, rank, op.Message); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// keep stores a face that a worker sends.
func (r *staleRun) keep(from iterate.Rank, op iterate.Op) {
	key := [2]iterate.Rank{from, op.To}
	p := r.faces[key]
	if p == nil {
		p = &pastFaces{data: make([][]byte, r.of.Most+1)}
		for i := range p.data {
			p.data[i] = make([]byte, op.Bytes)
		}
		p.read = make([]byte, op.Bytes)
		r.faces[key] = p
	}
	r.workers[from].Pack(op, p.data[op.Label%uint64(len(p.data))])
	if !p.have {
		for i := range p.data { // no face is older than the first
			copy(p.data[i], p.data[op.Label%uint64(len(p.data))])
		}
	}
	p.newest, p.have = op.Label, true
}

// deliver passes a face of a random age to a worker.
func (r *staleRun) deliver(from, to iterate.Rank) error {
	p := r.faces[[2]iterate.Rank{from, to}]
	if p == nil {
		return nil // the face of the start is used
	}
	age := min(uint64(r.rand.IntN(r.of.Most+1)), p.newest-1)
	r.ages += int(age)
	r.reads++
	label := p.newest - age
	copy(p.read, p.data[label%uint64(len(p.data))])
	return r.workers[to].Halo(r.round, from, 0, label, p.read)
}
