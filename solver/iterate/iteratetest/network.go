package iteratetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Network runs the peers of one run in virtual time. Speeds, delays, losses, duplicates and reordering are
// drawn from one seed. Agreement sessions are reliable and in order, and so are halo sessions that the
// scheme declares synchronous. On other halo sessions a halo is sent in segments, each of which may be
// lost, duplicated or overtaken, and a slot has the label of its oldest segment. Set the fields before Run. A
// Network serves one run and is not safe for concurrent use.
type Network struct {
	Peers []iterate.Peer

	// Loss and Double are the probabilities that a segment of a halo on an asynchronous session is
	// lost, or arrives twice.
	Loss, Duplicate float64
	Segment         int             // bytes of a segment
	Jitter          time.Duration   // the delay of a message is drawn from 0 to Jitter
	AgreeDelay      time.Duration   // added to the delay of agreement messages
	RelaxTime       []time.Duration // mean time of an OpRelax, by rank
	// PointTime, unless nil, returns the time to relax a point; it replaces RelaxTime.
	PointTime func(rank int, now time.Duration) time.Duration
	// Blackout, unless nil, reports whether halos between two peers are lost now.
	Blackout func(from, to iterate.Rank, label uint64, now time.Duration) bool
	// At StopAt peer StopRank is asked for an early end; below 0: never.
	StopAt   time.Duration
	StopRank iterate.Rank
	Observe  func()                               // called after every operation, unless nil
	Until    func() bool                          // Run returns before the event for which it is true; nil: never
	Stepped  func(rank int, r iterate.StepResult) // called at the end of a time step, unless nil
	Keep     func(rank int, op iterate.Op)        // called when an OpKeep or OpKept has been carried out, unless nil

	// Results of Run.
	Now         time.Duration
	Events      int
	AgreeSent   int
	Failed      error // of the last OpFail
	ModeChanges []int // changes of mode asked for, by rank
	Steps       [][]iterate.StepResult

	rng          *rand.Rand
	scheme       iterate.Scheme
	nextAt       []time.Duration // −1: waits for an arrival
	done         []bool
	waiting      []bool
	packets      []packet                 // in their order
	order        map[[3]int]time.Duration // last due time of an ordered session
	slots        map[[3]int]*slotBuffer
	numbers      map[[3]int]uint64
	stopped      bool
	lost         bool // a peer was lost
	changingMode []bool
	keeping      []*iterate.Op // that is carried out, by rank
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

// before orders packets by (due, serial).
func before(a, b packet) int {
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.serial, b.serial))
}

// session returns the halo session and slot of a packet.
func (p packet) session() [3]int { return [3]int{int(p.from), int(p.to), int(p.tag)} }

type slotBuffer struct {
	data   []byte
	number []uint64 // per segment; 0: nothing yet
	label  []uint64
}

// segmentBytes is the length of three values, so that small halos have several segments.
const segmentBytes = 24

// NewNetwork returns a network for the peers of a run, by rank, with delays of up to 200 µs, no losses
// and paces of 10 to 210 µs.
func NewNetwork(seed uint64, scheme iterate.Scheme, peers []iterate.Peer) *Network {
	n := &Network{
		Peers: peers, Jitter: 200 * time.Microsecond, StopAt: -1, Segment: segmentBytes,
		ModeChanges: make([]int, len(peers)), Steps: make([][]iterate.StepResult, len(peers)),
		rng: rand.New(rand.NewPCG(seed, 7)), scheme: scheme,
		order: map[[3]int]time.Duration{}, slots: map[[3]int]*slotBuffer{}, numbers: map[[3]int]uint64{},
		nextAt: make([]time.Duration, len(peers)), done: make([]bool, len(peers)),
		keeping: make([]*iterate.Op, len(peers)),
		waiting: make([]bool, len(peers)), changingMode: make([]bool, len(peers)),
	}
	for range peers {
		n.RelaxTime = append(n.RelaxTime, time.Duration(10+n.rng.IntN(200))*time.Microsecond)
	}
	return n
}

const maxEvents = 10_000_000

// Lose ends a peer between two events: it acts no more, and receives no more messages. Those that it has sent arrive.
func (n *Network) Lose(r iterate.Rank) { n.done[r], n.lost = true, true }

// Run runs the peers until all are done, Until is true, or a lost peer keeps the others from continuing. It returns an
// error if a peer refuses a message, if no peer can continue, or if the run does not end within ten million events.
func (n *Network) Run() error {
	for n.Until == nil || !n.Until() {
		n.Events++
		if n.Events > maxEvents {
			return fmt.Errorf("iteratetest: the run has not ended after %d events, at %v: %s", n.Events, n.Now, n.state())
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
			if n.lost || !slices.Contains(n.done, false) {
				return nil
			}
			return fmt.Errorf("iteratetest: no peer can continue at %v: %s", n.Now, n.state())
		}
		n.Now = max(n.Now, at)
		if n.StopAt >= 0 && !n.stopped && n.Now >= n.StopAt {
			n.stopped = true
			n.Peers[n.StopRank].Stop(n.Now, iterate.Interrupted)
			n.wake(n.StopRank)
		}
		if arrival {
			p := n.packets[0]
			n.packets = n.packets[1:]
			if err := n.deliver(p); err != nil {
				return err
			}
			continue
		}
		n.act(who)
		if n.Observe != nil {
			n.Observe()
		}
	}
	return nil
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
	if op := n.keeping[i]; op != nil && n.Keep != nil {
		n.Keep(i, *op)
	}
	n.keeping[i] = nil
	op := w.Next(n.Now)
	switch op.Kind {
	case iterate.OpRelax:
		w.Relax(op)
		n.nextAt[i] = n.Now + n.RelaxTime[i]/2 + time.Duration(n.rng.Int64N(int64(n.RelaxTime[i])))
		if n.PointTime != nil {
			n.nextAt[i] = n.Now + max(1, time.Duration(op.Points)*n.PointTime(i, n.Now))
		}
	case iterate.OpSend:
		buf := make([]byte, op.Bytes)
		w.Pack(op, buf)
		n.send(packet{from: iterate.Rank(i), to: op.To, tag: op.Tag, label: op.Label, data: buf})
	case iterate.OpAgree:
		n.AgreeSent++
		n.post(packet{from: iterate.Rank(i), to: op.To, agree: true, label: op.Label, data: op.Message}, true)
	case iterate.OpWait:
		n.nextAt[i], n.waiting[i] = -1, true
		if op.Until > 0 {
			if op.Until <= n.Now {
				panic("iteratetest: a wait until a time in the past")
			}
			n.nextAt[i] = op.Until
		}
	case iterate.OpAdapt:
		n.ModeChanges[i]++
		n.changingMode[i] = true
		if op.Asynchronous == (n.ModeChanges[i]%2 == 1) {
			panic("iteratetest: a change to the current mode")
		}
		n.nextAt[i] = -1
		n.finishModeChanges()
	case iterate.OpStep:
		n.Steps[i] = append(n.Steps[i], *op.Step)
		if n.Stepped != nil {
			n.Stepped(i, *op.Step)
		}
	case iterate.OpKeep, iterate.OpKept:
		if n.keeping[i] = &op; op.Kind == iterate.OpKeep {
			n.nextAt[i] = n.Now + time.Duration(n.rng.Int64N(int64(n.Jitter)))
		}
	case iterate.OpFail:
		n.Failed = op.Err
		n.done[i] = true
	case iterate.OpDone:
		n.done[i] = true
	default:
		panic("iteratetest: unknown operation")
	}
}

// finishModeChanges resumes the peers whose sessions have all changed their mode, which both ends have requested.
func (n *Network) finishModeChanges() {
	for i, w := range n.Peers {
		ready := n.changingMode[i]
		for _, nb := range w.Links() {
			if n.scheme.Between(iterate.Rank(i), nb.Rank).Asynchronous() {
				ready = ready && n.ModeChanges[nb.Rank] >= n.ModeChanges[i]
			}
		}
		if ready {
			n.changingMode[i] = false
			n.nextAt[i] = n.Now + time.Duration(n.rng.Int64N(int64(n.Jitter)))
		}
	}
}

// epoch returns the number of mode changes of a halo session that the scheme declares asynchronous. In odd
// epochs the session is synchronous.
func (n *Network) epoch(a, b iterate.Rank) int { return min(n.ModeChanges[a], n.ModeChanges[b]) }

// send sends a halo.
func (n *Network) send(p packet) {
	p.epoch = n.epoch(p.from, p.to)
	if p.reliable = !n.scheme.Between(p.from, p.to).Asynchronous() || p.epoch%2 == 1; p.reliable {
		n.post(p, true)
		return
	}
	key := p.session()
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
		if n.rng.Float64() < n.Duplicate {
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
		key := p.session()
		if p.agree {
			key[2] = -1
		}
		p.due = max(p.due, n.order[key])
		n.order[key] = p.due
	}
	n.Events++
	p.serial = n.Events
	at, _ := slices.BinarySearchFunc(n.packets, p, before)
	n.packets = slices.Insert(n.packets, at, p)
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
			return fmt.Errorf("iteratetest: a synchronous halo from rank %d to rank %d is lost by a change of mode",
				p.from, p.to)
		}
		return nil
	}
	if p.reliable {
		return w.Halo(n.Now, p.from, p.tag, p.label, p.data)
	}
	key := p.session()
	b := n.slots[key]
	if b == nil {
		links := w.Links()
		i := slices.IndexFunc(links, func(l iterate.Link) bool { return l.Rank == p.from })
		length := links[i].Slots[p.tag]
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
