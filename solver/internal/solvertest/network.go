package solvertest

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Network drives the workers of one run in virtual time, everything from one seed:
// speeds of the peers, delays, losses, duplicates, reordering. Agreement sessions
// are reliable and in order. Halo sessions are reliable and in order for a
// synchronous scheme; otherwise a face travels in segments that may each be lost,
// doubled or overtaken, and a slot shows the age of its oldest segment.
type Network struct {
	rng      *rand.Rand
	Peers    []problem.Peer
	scheme   iterate.Scheme
	Now      time.Duration
	nextAt   []time.Duration // −1: waits for an arrival
	done     []bool
	waiting  []bool
	Pace     []time.Duration // of one relaxation
	packets  queue
	order    map[[3]int]time.Duration // last due time of an ordered channel
	slots    map[[3]int]*slotBuffer
	numbers  map[[3]int]uint64
	Events   int
	StopAt   time.Duration
	StopRank iterate.Rank
	stopped  bool

	Loss, Double float64
	Segment      int // bytes
	Jitter       time.Duration
	AgreeDelay   time.Duration // agreement messages take that much longer than faces
	Blackout     func(from, to iterate.Rank, label uint64, now time.Duration) bool
	AgreeSent    int
	sends        map[[3]int]int // from, to, label
	Failed       error
	Adapts       []int // changes of mode asked for, by rank
	adapting     []bool
	Steps        [][]iterate.StepResult // by rank
	Stepped      func(rank int, r iterate.StepResult, u []float64)
	Observe      func(*Network)
	PerPoint     func(rank int, now time.Duration) time.Duration // relaxing takes; nil: pace a part
}

type packet struct {
	due      time.Duration
	serial   int
	from, to iterate.Rank
	agree    bool
	tag      uint32
	label    uint64
	number   uint64
	epoch    int
	reliable bool
	offset   int
	data     []byte
}

// queue is a heap by (due, serial).
type queue []packet

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(packet)) }
func (q queue) Less(i, j int) bool {
	return q[i].due < q[j].due || q[i].due == q[j].due && q[i].serial < q[j].serial
}

func (q *queue) Pop() any {
	old := *q
	p := old[len(old)-1]
	*q = old[:len(old)-1]
	return p
}

type slotBuffer struct {
	data   []byte
	number []uint64 // per segment; 0: nothing yet
	label  []uint64
}

// segmentBytes is three values, so that even small faces travel in pieces.
const segmentBytes = 24

// NewNetwork builds the peers of a run by one method.
func NewNetwork(seed uint64, build func(problem.Config) (problem.Peer, error), configs []problem.Config) (*Network, error) {
	n := &Network{
		rng:    rand.New(rand.NewPCG(seed, 7)),
		scheme: configs[0].Scheme,
		order:  map[[3]int]time.Duration{}, slots: map[[3]int]*slotBuffer{}, numbers: map[[3]int]uint64{}, sends: map[[3]int]int{},
		Jitter: 200 * time.Microsecond, StopAt: -1, Segment: segmentBytes,
	}
	for _, c := range configs {
		p, err := build(c)
		if err != nil {
			return nil, err
		}
		n.Peers = append(n.Peers, p)
		n.nextAt = append(n.nextAt, 0)
		n.done = append(n.done, false)
		n.waiting = append(n.waiting, false)
		n.Adapts, n.adapting, n.Steps = append(n.Adapts, 0), append(n.adapting, false), append(n.Steps, nil)
		n.Pace = append(n.Pace, time.Duration(10+n.rng.IntN(200))*time.Microsecond)
	}
	return n, nil
}

const maxEvents = 10_000_000

func (n *Network) Run() error {
	for {
		n.Events++
		if n.Events > maxEvents {
			return fmt.Errorf("no end after %d events, at %v: %s", n.Events, n.Now, n.state())
		}
		who, at := -1, time.Duration(math.MaxInt64)
		for i, t := range n.nextAt {
			if !n.done[i] && t >= 0 && t < at {
				who, at = i, t
			}
		}
		arrival := len(n.packets) > 0 && n.packets[0].due < at
		if arrival {
			at = n.packets[0].due
		}
		if who < 0 && !arrival {
			if n.allDone() {
				return nil
			}
			return fmt.Errorf("stuck at %v: %s", n.Now, n.state())
		}
		n.Now = max(n.Now, at)
		if n.StopAt >= 0 && !n.stopped && n.Now >= n.StopAt {
			n.stopped = true
			n.Peers[n.StopRank].Stop(n.Now, iterate.Interrupted)
			n.wake(n.StopRank)
		}
		if arrival {
			if err := n.deliver(heap.Pop(&n.packets).(packet)); err != nil {
				return err
			}
			continue
		}
		n.act(who)
		if n.Observe != nil {
			n.Observe(n)
		}
	}
}

func (n *Network) allDone() bool {
	for _, d := range n.done {
		if !d {
			return false
		}
	}
	return true
}

func (n *Network) state() string {
	s := ""
	for i, w := range n.Peers {
		s += fmt.Sprintf("[%d: iterate %d done %v %+v] ", i, w.Progress().Sweep, n.done[i], w.Outcome())
	}
	return s
}

func (n *Network) wake(r iterate.Rank) {
	if n.waiting[r] { // one that relaxes is not interrupted
		n.nextAt[r], n.waiting[r] = n.Now, false
	}
}

func (n *Network) act(i int) {
	w := n.Peers[i]
	n.waiting[i] = false
	op := w.Next(n.Now)
	switch op.Kind {
	case iterate.OpRelax:
		w.Relax(op)
		n.nextAt[i] = n.Now + n.Pace[i]/2 + time.Duration(n.rng.Int64N(int64(n.Pace[i])))
		if n.PerPoint != nil {
			n.nextAt[i] = n.Now + max(1, time.Duration(op.Points)*n.PerPoint(i, n.Now))
		}
	case iterate.OpSend:
		buf := make([]byte, op.Bytes)
		w.Pack(op, buf)
		n.sends[[3]int{i, int(op.To), int(op.Label)}]++
		n.send(packet{from: iterate.Rank(i), to: op.To, tag: op.Tag, label: op.Label, data: buf})
	case iterate.OpAgree:
		n.AgreeSent++
		n.post(packet{from: iterate.Rank(i), to: op.To, agree: true, label: op.Label, data: op.Message}, true)
	case iterate.OpWait:
		n.nextAt[i], n.waiting[i] = -1, true
		if op.Until > 0 {
			if op.Until <= n.Now {
				panic("a wait that is over")
			}
			n.nextAt[i] = op.Until
		}
	case iterate.OpAdapt:
		n.Adapts[i]++
		n.adapting[i] = true
		if op.Asynchronous == (n.Adapts[i]%2 == 1) {
			panic("a change to the mode that is in force")
		}
		n.nextAt[i] = -1
		n.adapted()
	case iterate.OpStep:
		n.Steps[i] = append(n.Steps[i], *op.Step)
		if n.Stepped != nil {
			u := make([]float64, w.Box().Points())
			w.Solution(u)
			n.Stepped(i, *op.Step, u)
		}
	case iterate.OpFail:
		n.Failed = op.Err
		n.done[i] = true
	case iterate.OpDone:
		n.done[i] = true
	default:
		panic("unknown operation")
	}
}

// adapted lets those go on whose sessions have all switched: both ends have asked.
func (n *Network) adapted() {
	for i, w := range n.Peers {
		ready := n.adapting[i]
		for _, nb := range w.Links() {
			if n.scheme.Between(iterate.Rank(i), nb.Rank).Asynchronous() {
				ready = ready && n.Adapts[nb.Rank] >= n.Adapts[i]
			}
		}
		if ready {
			n.adapting[i] = false
			n.nextAt[i] = n.Now + time.Duration(n.rng.Int64N(int64(n.Jitter)))
		}
	}
}

// epoch of a halo session that the scheme wants asynchronous; an odd one is
// synchronous.
func (n *Network) epoch(a, b iterate.Rank) int { return min(n.Adapts[a], n.Adapts[b]) }

// send puts a face on the halo session.
func (n *Network) send(p packet) {
	p.epoch = n.epoch(p.from, p.to)
	if p.reliable = !n.scheme.Between(p.from, p.to).Asynchronous() || p.epoch%2 == 1; p.reliable {
		n.post(p, true)
		return
	}
	key := [3]int{int(p.from), int(p.to), int(p.tag)}
	n.numbers[key]++
	p.number = n.numbers[key]
	for off := 0; off < len(p.data); off += n.Segment {
		q := p
		q.offset, q.data = off, p.data[off:min(off+n.Segment, len(p.data))]
		if n.Blackout != nil && n.Blackout(p.from, p.to, p.label, n.Now) {
			continue
		}
		if n.rng.Float64() >= n.Loss {
			n.post(q, false)
		}
		if n.rng.Float64() < n.Double {
			n.post(q, false)
		}
	}
}

func (n *Network) post(p packet, ordered bool) {
	p.due = n.Now + time.Duration(n.rng.Int64N(int64(n.Jitter)))
	if p.agree {
		p.due += n.AgreeDelay
	}
	if ordered {
		kind := -1
		if !p.agree {
			kind = int(p.tag)
		}
		key := [3]int{int(p.from), int(p.to), kind}
		p.due = max(p.due, n.order[key])
		n.order[key] = p.due
	}
	n.Events++
	p.serial = n.Events
	heap.Push(&n.packets, p)
}

func (n *Network) deliver(p packet) error {
	if n.done[p.to] {
		return nil
	}
	w := n.Peers[p.to]
	n.wake(p.to)
	if p.agree {
		return w.Agree(n.Now, p.from, p.data)
	}
	if n.scheme.Between(p.from, p.to).Asynchronous() && p.epoch != n.epoch(p.from, p.to) {
		if p.reliable {
			return fmt.Errorf("a synchronous face from %d to %d is lost by a change of mode", p.from, p.to)
		}
		return nil
	}
	if p.reliable {
		return w.Halo(n.Now, p.from, p.tag, p.label, p.data)
	}
	key := [3]int{int(p.from), int(p.to), int(p.tag)}
	b := n.slots[key]
	if b == nil {
		length := 0
		for _, nb := range w.Links() {
			if nb.Rank == p.from {
				length = nb.Slots[p.tag]
			}
		}
		segments := (length + n.Segment - 1) / n.Segment
		b = &slotBuffer{data: make([]byte, length), number: make([]uint64, segments), label: make([]uint64, segments)}
		n.slots[key] = b
	}
	s := p.offset / n.Segment
	if p.number <= b.number[s] {
		return nil // newest wins
	}
	b.number[s], b.label[s] = p.number, p.label
	copy(b.data[p.offset:], p.data)
	oldest := uint64(math.MaxUint64)
	for j := range b.number {
		if b.number[j] == 0 {
			return nil // not complete yet
		}
		oldest = min(oldest, b.label[j])
	}
	return w.Halo(n.Now, p.from, p.tag, oldest, b.data)
}

// Assemble puts the answers of all boxes together.
func (n *Network) Assemble(p *problem.Problem, _ problem.Partition) []float64 {
	u := make([]float64, p.Points())
	for _, w := range n.Peers {
		box := w.Box()
		v := make([]float64, box.Points())
		w.Solution(v)
		box.Each(func(d int, idx [3]int) bool {
			u[idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))] = v[d]
			return true
		})
	}
	return u
}
