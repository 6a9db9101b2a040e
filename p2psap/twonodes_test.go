package p2psap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// twoNodes runs two nodes with one session in virtual time. They send, receive and change the composition at
// random while the data link loses, duplicates and reorders frames and the control connection breaks at any
// message. What each end received is compared with what the other sent.
type twoNodes struct {
	clock     *mptest.Clock
	rand      *rand.Rand
	link      *mptest.Link
	ends      [2]*socketUser
	wire      int // number of the control connection that stands; 0: none
	wires     int
	deaf      int      // number of the control connection that carries nothing for a while; 0: none
	waiting   []func() // messages that it carries afterwards
	dark      bool     // the network carries nothing
	faultless bool
	fault     error
	seed      uint64

	cramped, sealed bool                              // little room for messages; protected frames
	uneven          bool                              // one end's link takes frames of 1400 bytes
	deadly, closing bool                              // a lost peer, the end of a session are no failure
	dead            *socketUser                       // takes and says nothing
	tap             func(from int, frame []byte) bool // false: the frame is lost
	mtu             int                               // 0: 512 at one end, 612 at the other
	options         *OpenOptions                      // nil: the two slots

	trains bool // the data link takes trains, gathers their payloads, and is busy at times

	cables *[2]cable // the ends of a rail; nil: there is none
	moves  uint32

	reliable bool // the data link loses nothing, as InfiniBand's: the columns without recovery

	breaks, late, refuse float64
	latency              time.Duration
	changes              int
}

// socketUser is one end: a user of the session.
type socketUser struct {
	d    *twoNodes
	n    *Node
	i    int
	id   SessionID
	out  []Output
	next microproto.Instant // planned look at the node
	up   int                // the control connection that this end believes in

	sent, got [3]uint64 // reliable messages by tag
	flight    []sentMessage
	label     [3]uint64
	age       [3]uint64
	values    [3][]byte
	scratch   []byte
	posted    *Slot    // memory that the session may write to
	graves    [][]byte // memory that it must not write to any more
	adapting  uint64   // number of the Adapt that is not over; 0: none
	outcomes  []error
}

type sentMessage struct {
	transfer Transfer
	data     []byte
}

const testSlots = 2

func slotLength(tag int) int { return [...]int{0, 64, 2048}[tag] }

const reliableBit = 1 << 63

func newDuel(seed uint64) *twoNodes {
	d := &twoNodes{seed: seed, clock: mptest.NewClock(), rand: rand.New(rand.NewPCG(seed, 0x6475656c)),
		latency: time.Millisecond}
	d.latency = time.Duration(50+d.rand.IntN(3000)) * time.Microsecond
	f := mptest.Faults{Delay: d.latency, Jitter: time.Duration(d.rand.Int64N(int64(2 * d.latency)))}
	if d.rand.IntN(5) > 0 {
		f.Loss, f.Duplicate, f.Reorder = 0.2*d.rand.Float64()*d.rand.Float64(), 0.2*d.rand.Float64(), 0.2*d.rand.Float64()
		d.breaks, d.late, d.refuse = 0.2*d.rand.Float64()*d.rand.Float64(), 0.1*d.rand.Float64(), 0.3*d.rand.Float64()
	}
	d.cramped, d.sealed, d.trains = seed%7 == 2, seed%5 == 1, seed&4 == 0
	if d.reliable = seed%4 == 3; d.reliable {
		f.Loss, f.Duplicate, f.Reorder = 0, 0, 0
	}
	d.link = mptest.NewLink(d.clock, d.rand.Uint64(), f)
	for i := range d.ends {
		d.ends[i] = &socketUser{d: d, i: i, next: microproto.Never}
		for tag := 1; tag <= testSlots; tag++ {
			d.ends[i].values[tag] = make([]byte, slotLength(tag))
		}
		d.link.Receive(i, func(f microproto.Frame) {
			f.Peer = microproto.LinkAddr(2 - i)
			d.ends[i].n.Input(d.clock.Now(), 0, f)
			d.ends[i].settle()
		})
	}
	return d
}

// start creates the nodes and opens the session.
func (d *twoNodes) start(mode microproto.Mode, change func(i int, c *NodeConfig)) {
	for i, e := range d.ends {
		c := NodeConfig{
			Name: string(rune('a' + i)), Run: "run", Version: "v1", Catalog: ctp.Catalog(), Policy: TablePolicy{},
			Host: string(rune('a' + i)), Process: 1, Seed: d.rand.Uint64(), PeerTimeout: time.Hour, Heartbeat: 20 * time.Second,
			Rails: []Rail{{Link: lossyLink{d, i}}},
		}
		if d.reliable {
			c.Rails[0].Network = Memory
		}
		if d.cramped { // little room for what is under way
			c.Limits.Composite = microproto.Limits{Messages: 32, Outputs: 64}
		}
		if d.sealed {
			c.Protect, c.Entropy = ProtectAlways, func(b []byte) {
				for i := range b {
					b[i] = byte(d.rand.Uint32())
				}
			}
		}
		if d.seed%3 == 1 {
			c.Protect, c.Entropy = ProtectAlways, random(d.seed+uint64(i)) // keys change with every epoch
		}
		if d.cables != nil {
			c.Rails = append(c.Rails, Rail{Network: InfiniBand, Link: newCable(&d.cables[i], i)})
			c.Monitor.RailDwell = 2 * d.latency
		}
		if change != nil {
			change(i, &c)
		}
		var err error
		e.n, err = NewNode(c)
		d.fail(err)
	}
	for i, e := range d.ends {
		d.fail(e.n.Connect(d.clock.Now(), string(rune('b'-i)), string(rune('b'-i))))
		e.settle()
	}
	d.until(time.Minute, "no connection", func() bool {
		a, _ := d.ends[0].n.Peer("b")
		b, _ := d.ends[1].n.Peer("a")
		return a == PeerUp && b == PeerUp
	})
	d.open(mode)
}

// open opens the session at both ends.
func (d *twoNodes) open(mode microproto.Mode) {
	for i, e := range d.ends {
		o := OpenOptions{Name: "s", Mode: mode, ReceiveBytes: 16 << 10}
		for tag := 1; tag <= testSlots; tag++ {
			o.Slots = append(o.Slots, SlotSpec{Tag(tag), slotLength(tag)})
		}
		if d.options != nil {
			o = *d.options
		}
		var err error
		e.id, err = e.n.Open(d.clock.Now(), string(rune('b'-i)), o)
		d.fail(err)
		e.settle()
	}
	d.until(time.Minute, "not open", func() bool {
		a, _ := d.ends[0].n.State(d.ends[0].id)
		b, _ := d.ends[1].n.State(d.ends[1].id)
		return a == SessionOpen && b == SessionOpen
	})
}

type lossyLink struct {
	d *twoNodes
	i int
}

func (l lossyLink) Acquire(n int) microproto.Frame {
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}
func (l lossyLink) Caps(microproto.Mode) microproto.Caps {
	mtu := l.d.mtu
	switch {
	case l.d.uneven && l.i == 1:
		mtu = 1400
	case mtu == 0:
		mtu = 512 + 100*l.i
	}
	c := microproto.Caps{MTU: mtu, Reliable: l.d.reliable, Ordered: l.d.reliable}
	if l.d.trains {
		c.Train, c.Gather = 65507, 1
	}
	return c
}
func (l lossyLink) Offer(string) ([]byte, error) { return []byte{byte(l.i)}, nil }
func (l lossyLink) Accept(b []byte) (microproto.LinkAddr, error) {
	return microproto.LinkAddr(b[0] + 1), nil
}

func (d *twoNodes) fail(err error) {
	if d.fault == nil && err != nil {
		d.fault = fmt.Errorf("at %v: %w", time.Duration(d.clock.Now()), err)
	}
}

func (d *twoNodes) chance(p float64) bool { return !d.faultless && p > 0 && d.rand.Float64() < p }

// until runs until the condition holds, for at most a bound of virtual time.
func (d *twoNodes) until(most time.Duration, what string, over func() bool) {
	limit := d.clock.Now().Add(most)
	for d.fault == nil && !over() {
		if d.clock.Now() > limit || !d.clock.Step() {
			d.fail(fmt.Errorf("%s after %v: %s", what, most, d))
		}
	}
}

func (d *twoNodes) String() (text string) {
	for _, e := range d.ends {
		s := e.n.session(e.id)
		if s == nil {
			continue
		}
		text += fmt.Sprintf("[%s: %v %v, %d changes, change %+v, kept %d of which %d submitted, sent %v, got %v, %v] ",
			e.n.Name(), s.state, s.err,
			s.info.Changes, s.renegotiation, s.unacked.Len(), s.unacked.submitted, e.sent, e.got, s.conditions)
	}
	return text
}

// settle carries the node's outputs out.
func (e *socketUser) settle() {
	d := e.d
	if d.dead == e {
		return
	}
	for again := true; again && d.fault == nil; {
		frames, sent := e.n.Frames(0), 0
		for _, f := range frames {
			if d.trains && !d.faultless && d.chance(0.1) {
				d.clock.After(d.latency, e.settle) // busy until then
				break
			}
			sent++
			if d.tap == nil {
				d.link.Send(e.i, f)
				continue
			}
			f.Pieces(func(p microproto.Frame) {
				if p = p.Flatten(lossyLink{d, e.i}); d.tap(e.i, p.Data) {
					d.link.Send(e.i, p)
				}
			})
		}
		e.n.Sent(0, sent)
		again = sent == len(frames) && e.n.Waiting(0) > 0
		e.ship()
		e.out = e.n.Drain(e.out[:0])
		for k := range e.out {
			e.carryOut(&e.out[k])
			again = true
		}
		clear(e.out)
	}
	if at := e.n.Deadline(); at < e.next {
		e.next = at
		d.clock.At(at, func() {
			if e.next == at {
				e.next = microproto.Never
				e.n.Advance(d.clock.Now())
				e.settle()
			}
		})
	}
}

func (e *socketUser) carryOut(o *Output) {
	d := e.d
	switch o.Kind {
	case OutControl:
		e.control(int(o.Conn)/2, o.Data)
	case OutDial:
		d.clock.After(d.latency, func() { e.try(0) })
	case OutDisconnect:
		if int(o.Conn)/2 == d.wire {
			d.snap()
		}
		if int(o.Conn)/2 == e.up {
			e.up = 0
		}
	case OutPeerLost, OutPeerRefused, OutEnded:
		if (!d.faultless || o.Kind != OutEnded) && !d.deadly && !(d.closing && o.Kind == OutEnded) {
			d.fail(fmt.Errorf("%s: %v: %w; %s", e.n.Name(), o.Kind, o.Err, d))
		}
	}
}

func (e *socketUser) dial() {
	d := e.d
	if d.wire != 0 && d.wire != d.deaf || d.chance(d.refuse) || d.dead != nil {
		e.n.DialFailed(d.clock.Now(), string(rune('b'-e.i)))
		e.settle()
		return
	}
	d.wires++
	d.wire = d.wires
	other := d.ends[1-e.i]
	e.up, other.up = d.wire, d.wire
	other.n.ControlUp(d.clock.Now(), ConnID(2*d.wire+other.i), "")
	e.n.ControlUp(d.clock.Now(), ConnID(2*d.wire+e.i), other.n.Name())
	other.settle()
	e.settle()
}

// snap breaks the control connection; each end notices by itself.
func (d *twoNodes) snap() {
	wire := d.wire
	d.wire = 0
	for _, e := range d.ends {
		d.clock.After(time.Duration(d.rand.Int64N(int64(d.latency))), func() {
			if e.up == wire {
				e.up = 0
			}
			e.n.ControlDown(d.clock.Now(), ConnID(2*wire+e.i))
			e.settle()
		})
	}
}

// control carries a message in order, unless the connection breaks first.
func (e *socketUser) control(wire int, data []byte) {
	d := e.d
	if wire != d.wire {
		return
	}
	if d.chance(d.breaks) {
		d.snap()
		return
	}
	other, late := d.ends[1-e.i], d.chance(d.late)
	deliver := func() {
		other.n.Control(d.clock.Now(), ConnID(2*wire+other.i), data)
		other.settle()
	}
	arrive := func() {
		if d.wire == wire {
			deliver()
		}
	}
	d.clock.After(d.latency, func() {
		if wire == d.deaf {
			d.waiting = append(d.waiting, arrive)
		} else {
			arrive()
		}
		if late { // again, later, from whatever connection it was
			d.clock.After(20*d.latency, deliver)
		}
	})
}

// send starts a message in the session's present mode.
func (e *socketUser) send() { e.sendUnder(1 + e.d.rand.IntN(testSlots)) }

func (e *socketUser) sendUnder(tag int) {
	data := make([]byte, slotLength(tag))
	reliable := e.n.Mode(e.id) == microproto.ModeSynchronous
	if reliable {
		data = data[:8+8*e.d.rand.IntN(len(data)/8)]
		for i := 0; i < len(data); i += 8 {
			binary.BigEndian.PutUint64(data[i:], reliableBit|(e.sent[tag]+1))
		}
	} else {
		for i := 0; i < len(data); i += 8 {
			binary.BigEndian.PutUint64(data[i:], e.label[tag]+1)
		}
	}
	label := e.label[tag] + 1
	if reliable {
		label = e.sent[tag] + 1
	}
	t, waits, err := e.n.startTransfer(e.d.clock.Now(), e.id, Tag(tag), Label(label), data, e.d.rand.IntN(3) > 0)
	if waits {
		e.flushLater()
	}
	e.settle()
	switch {
	case errors.Is(err, ErrBusy):
	case err != nil:
		e.d.fail(fmt.Errorf("%s sends: %w", e.n.Name(), err))
	case reliable:
		e.sent[tag]++
		e.flight = append(e.flight, sentMessage{t, data})
	default:
		e.label[tag]++
		spoil(data)
	}
	e.spoilAccepted()
}

// flushLater flushes the coalescing buffers, as a caller has to: again while there is no room.
func (e *socketUser) flushLater() {
	e.d.clock.After(time.Duration(e.d.rand.Int64N(int64(2*e.d.latency))), func() {
		if e.d.dead == e {
			return
		}
		if !e.n.Flush(e.d.clock.Now()) {
			e.flushLater()
		}
		e.settle()
	})
}

// receive receives one message or value of a tag, if there is one.
func (e *socketUser) receive(tag int) bool {
	slot := Slot{Tag: Tag(tag), Data: make([]byte, slotLength(tag))}
	if e.posted != nil && (int(e.posted.Tag) != tag || e.n.Mode(e.id) != microproto.ModeSynchronous) {
		e.withdraw()
	}
	if e.posted != nil {
		slot.Data = e.posted.Data
	} else {
		copy(slot.Data, e.values[tag])
	}
	a, err := e.n.Receive(e.d.clock.Now(), e.id, &slot)
	if err == nil && a.Fresh {
		e.posted = nil
	}
	if errors.Is(err, ErrNothing) || err == nil && !a.Fresh {
		return false
	}
	if err != nil {
		e.d.fail(fmt.Errorf("%s receives: %w", e.n.Name(), err))
		return false
	}
	first := binary.BigEndian.Uint64(slot.Data)
	if first&reliableBit != 0 {
		e.got[tag]++
		for i := 0; i < a.Length; i += 8 {
			if w := binary.BigEndian.Uint64(slot.Data[i:]); w != reliableBit|e.got[tag] || a.Label != e.got[tag] {
				e.d.fail(fmt.Errorf("%s: tag %d: message %d came as %x, labelled %d", e.n.Name(), tag, e.got[tag], w, a.Label))
			}
		}
		return true
	}
	for i := 0; i < len(slot.Data); i += 8 {
		w, was := binary.BigEndian.Uint64(slot.Data[i:]), binary.BigEndian.Uint64(e.values[tag][i:])
		if w < was || w > e.d.ends[1-e.i].label[tag] || a.Complete && w < a.Label {
			e.d.fail(fmt.Errorf("%s: tag %d: word %d is of value %x after %x, slot labelled %d", e.n.Name(), tag, i/8, w, was,
				a.Label))
		}
	}
	if a.Complete && a.Label < e.age[tag] {
		e.d.fail(fmt.Errorf("%s: tag %d: the slot's label fell from %d to %d", e.n.Name(), tag, e.age[tag], a.Label))
	}
	if a.Complete {
		e.age[tag] = a.Label
	}
	e.values[tag] = slot.Data
	return true
}

// adapt asks for the next mode of the list that both ends share, or checks whether the last Adapt is over.
func (e *socketUser) adapt(mode func(k int) microproto.Mode) {
	if e.adapting == 0 {
		k, err := e.n.Adapt(e.d.clock.Now(), e.id, mode(len(e.outcomes)))
		if err != nil {
			e.d.fail(fmt.Errorf("%s adapts: %w", e.n.Name(), err))
		}
		e.adapting = k
	}
	e.checkAdapt()
}

func (e *socketUser) checkAdapt() {
	if over, err := e.n.Adapted(e.id); e.adapting != 0 && over == e.adapting {
		e.adapting = 0
		e.outcomes = append(e.outcomes, err)
	}
}

// quietFaults returns the faults of a link that only delays.
func quietFaults(latency time.Duration) mptest.Faults { return mptest.Faults{Delay: latency} }
