package solver

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// network drives the workers of one run in virtual time, everything from one seed:
// speeds of the peers, delays, losses, duplicates, reordering. Agreement sessions
// are reliable and in order. Halo sessions are reliable and in order for a
// synchronous scheme; otherwise a face travels in segments that may each be lost,
// doubled or overtaken, and a slot shows the age of its oldest segment.
type network struct {
	rng      *rand.Rand
	peers    []Block
	scheme   Scheme
	now      time.Duration
	nextAt   []time.Duration // −1: waits for an arrival
	done     []bool
	waiting  []bool
	pace     []time.Duration // of one relaxation
	packets  queue
	order    map[[3]int]time.Duration // last due time of an ordered channel
	slots    map[[3]int]*slotBuffer
	numbers  map[[3]int]uint64
	events   int
	stopAt   time.Duration
	stopRank Rank
	stopped  bool

	loss, double float64
	segment      int // bytes
	jitter       time.Duration
	agreeDelay   time.Duration // agreement messages take that much longer than faces
	blackout     func(from, to Rank, label uint64, now time.Duration) bool
	agreeSent    int
	sends        map[[3]int]int // from, to, label
	failed       error
	adapts       []int // changes of mode asked for, by rank
	adapting     []bool
	steps        [][]StepResult // by rank
	stepped      func(rank int, r StepResult, u []float64)
	observe      func(*network)
	perPoint     func(rank int, now time.Duration) time.Duration // relaxing takes; nil: pace a part
}

type packet struct {
	due      time.Duration
	serial   int
	from, to Rank
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

// newNetworkOf builds the peers of a run by one method.
func newNetworkOf(seed uint64, build func(Config) (Block, error), configs []Config) (*network, error) {
	n := &network{
		rng:    rand.New(rand.NewPCG(seed, 7)),
		scheme: configs[0].Scheme,
		order:  map[[3]int]time.Duration{}, slots: map[[3]int]*slotBuffer{}, numbers: map[[3]int]uint64{}, sends: map[[3]int]int{},
		jitter: 200 * time.Microsecond, stopAt: -1, segment: segmentBytes,
	}
	for _, c := range configs {
		p, err := build(c)
		if err != nil {
			return nil, err
		}
		n.peers = append(n.peers, p)
		n.nextAt = append(n.nextAt, 0)
		n.done = append(n.done, false)
		n.waiting = append(n.waiting, false)
		n.adapts, n.adapting, n.steps = append(n.adapts, 0), append(n.adapting, false), append(n.steps, nil)
		n.pace = append(n.pace, time.Duration(10+n.rng.IntN(200))*time.Microsecond)
	}
	return n, nil
}

const maxEvents = 10_000_000

func (n *network) run() error {
	for {
		n.events++
		if n.events > maxEvents {
			return fmt.Errorf("no end after %d events, at %v: %s", n.events, n.now, n.state())
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
			return fmt.Errorf("stuck at %v: %s", n.now, n.state())
		}
		n.now = max(n.now, at)
		if n.stopAt >= 0 && !n.stopped && n.now >= n.stopAt {
			n.stopped = true
			n.peers[n.stopRank].Stop(n.now, Interrupted)
			n.wake(n.stopRank)
		}
		if arrival {
			if err := n.deliver(heap.Pop(&n.packets).(packet)); err != nil {
				return err
			}
			continue
		}
		n.act(who)
		if n.observe != nil {
			n.observe(n)
		}
	}
}

func (n *network) allDone() bool {
	for _, d := range n.done {
		if !d {
			return false
		}
	}
	return true
}

func (n *network) state() string {
	s := ""
	for i, w := range n.peers {
		s += fmt.Sprintf("[%d: iterate %d done %v %+v] ", i, w.Progress().Sweep, n.done[i], w.Outcome())
	}
	return s
}

func (n *network) wake(r Rank) {
	if n.waiting[r] { // one that relaxes is not interrupted
		n.nextAt[r], n.waiting[r] = n.now, false
	}
}

func (n *network) act(i int) {
	w := n.peers[i]
	n.waiting[i] = false
	op := w.Next(n.now)
	switch op.Kind {
	case OpRelax:
		w.Relax(op)
		n.nextAt[i] = n.now + n.pace[i]/2 + time.Duration(n.rng.Int64N(int64(n.pace[i])))
		if n.perPoint != nil {
			n.nextAt[i] = n.now + max(1, time.Duration(op.Points)*n.perPoint(i, n.now))
		}
	case OpSend:
		buf := make([]byte, op.Bytes)
		w.Pack(op, buf)
		n.sends[[3]int{i, int(op.To), int(op.Label)}]++
		n.send(packet{from: Rank(i), to: op.To, tag: op.Tag, label: op.Label, data: buf})
	case OpAgree:
		n.agreeSent++
		n.post(packet{from: Rank(i), to: op.To, agree: true, label: op.Label, data: op.Message}, true)
	case OpWait:
		n.nextAt[i], n.waiting[i] = -1, true
		if op.Until > 0 {
			if op.Until <= n.now {
				panic("a wait that is over")
			}
			n.nextAt[i] = op.Until
		}
	case OpAdapt:
		n.adapts[i]++
		n.adapting[i] = true
		if op.Asynchronous == (n.adapts[i]%2 == 1) {
			panic("a change to the mode that is in force")
		}
		n.nextAt[i] = -1
		n.adapted()
	case OpStep:
		n.steps[i] = append(n.steps[i], *op.Step)
		if n.stepped != nil {
			u := make([]float64, w.Box().Points())
			w.Solution(u)
			n.stepped(i, *op.Step, u)
		}
	case OpFail:
		n.failed = op.Err
		n.done[i] = true
	case OpDone:
		n.done[i] = true
	default:
		panic("unknown operation")
	}
}

// adapted lets those go on whose sessions have all switched: both ends have asked.
func (n *network) adapted() {
	for i, w := range n.peers {
		ready := n.adapting[i]
		for _, nb := range w.Links() {
			if Between(n.scheme, Rank(i), nb.Rank).Asynchronous() {
				ready = ready && n.adapts[nb.Rank] >= n.adapts[i]
			}
		}
		if ready {
			n.adapting[i] = false
			n.nextAt[i] = n.now + time.Duration(n.rng.Int64N(int64(n.jitter)))
		}
	}
}

// epoch of a halo session that the scheme wants asynchronous; an odd one is
// synchronous.
func (n *network) epoch(a, b Rank) int { return min(n.adapts[a], n.adapts[b]) }

// send puts a face on the halo session.
func (n *network) send(p packet) {
	p.epoch = n.epoch(p.from, p.to)
	if p.reliable = !Between(n.scheme, p.from, p.to).Asynchronous() || p.epoch%2 == 1; p.reliable {
		n.post(p, true)
		return
	}
	key := [3]int{int(p.from), int(p.to), int(p.tag)}
	n.numbers[key]++
	p.number = n.numbers[key]
	for off := 0; off < len(p.data); off += n.segment {
		q := p
		q.offset, q.data = off, p.data[off:min(off+n.segment, len(p.data))]
		if n.blackout != nil && n.blackout(p.from, p.to, p.label, n.now) {
			continue
		}
		if n.rng.Float64() >= n.loss {
			n.post(q, false)
		}
		if n.rng.Float64() < n.double {
			n.post(q, false)
		}
	}
}

func (n *network) post(p packet, ordered bool) {
	p.due = n.now + time.Duration(n.rng.Int64N(int64(n.jitter)))
	if p.agree {
		p.due += n.agreeDelay
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
	n.events++
	p.serial = n.events
	heap.Push(&n.packets, p)
}

func (n *network) deliver(p packet) error {
	if n.done[p.to] {
		return nil
	}
	w := n.peers[p.to]
	n.wake(p.to)
	if p.agree {
		return w.Agree(n.now, p.from, p.data)
	}
	if Between(n.scheme, p.from, p.to).Asynchronous() && p.epoch != n.epoch(p.from, p.to) {
		if p.reliable {
			return fmt.Errorf("a synchronous face from %d to %d is lost by a change of mode", p.from, p.to)
		}
		return nil
	}
	if p.reliable {
		return w.Halo(n.now, p.from, p.tag, p.label, p.data)
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
		segments := (length + n.segment - 1) / n.segment
		b = &slotBuffer{data: make([]byte, length), number: make([]uint64, segments), label: make([]uint64, segments)}
		n.slots[key] = b
	}
	s := p.offset / n.segment
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
	return w.Halo(n.now, p.from, p.tag, oldest, b.data)
}

// assemble puts the answers of all boxes together.
func (n *network) assemble(p *Problem, _ Partition) []float64 {
	u := make([]float64, p.Points())
	for _, w := range n.peers {
		box := w.Box()
		v := make([]float64, box.Points())
		w.Solution(v)
		box.each(func(d int, idx [3]int) bool {
			u[idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))] = v[d]
			return true
		})
	}
	return u
}
