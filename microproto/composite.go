package microproto

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Config sets up a composite.
type Config struct {
	Name     string
	Seed     uint64
	MTU      int         // largest frame below, bytes
	Headroom int         // bytes wanted free in front of a frame by the layer below
	Train    int         // most bytes of frames that the layer below takes as one, 0: it does not
	Gather   int         // least bytes of payload that the layer below takes as a Body, 0: it does not
	Frames   FrameSource // nil: plain allocation
	Limits   Limits
	Tracer   Tracer // nil: off, and then it costs one predictable branch
}

// Composite is a set of micro-protocols with one header and one pool of messages.
// Its entry points run to completion; it is not safe for concurrent use and not
// reentrant.
//
// What a message touches of a composite lies together in it: where thousands of
// composites take turns, in a simulation, each of its cache lines costs a message more
// than the instructions between.
type Composite struct {
	x        Exec
	now      Instant
	err      error
	running  bool
	phase    phase
	trains   bool // every micro-protocol takes them, and so does the layer below
	held     int
	pool     pool
	queue    ring[*chain] // enqueued raises; the arguments wait in their chains
	outputs  []Output
	counts   Counters
	config   Config
	limits   Limits
	timers   timers
	self     attachment // stands for the kernel and the layer above
	queueFew [leastRing]*chain
	wordsFew [fewWords]uint64
	slotsFew [fewSlots]int32
	chains   chainTable

	trainsLive int      // messages alive that are trains
	stepped    []stride // wire attributes that grow within a train
	drops      []Drops
	rand       *rand.Rand // nil: nobody has asked for it
	endpoint   Endpoint
	attached   []*attachment
	cells      []cell
	fields     []field
	bitNames   []string // by bit
	locals     int      // local attributes

	lastBinding uint64
	binds       []bind // of a composite that is being made
	words       []uint64
	predicted   [MaxHeaderBytes]byte
}

type phase uint8

const (
	phaseNew phase = iota
	phaseOpen
	phaseClosed
)

// NewComposite attaches the micro-protocols, from top to bottom. The first that
// cannot attach is named in the error.
func NewComposite(config Config, mps ...MicroProtocol) (*Composite, error) {
	limits, err := config.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	if config.MTU <= 0 || config.Headroom < 0 {
		return nil, fmt.Errorf("microproto: composite %s: MTU %d and headroom %d; the first must be positive, the second not negative", config.Name, config.MTU, config.Headroom)
	}
	if config.Frames == nil {
		config.Frames = plainFrames{config.Headroom}
	}
	c := &Composite{config: config, limits: limits}
	c.chains.slots, c.queue.buf = c.slotsFew[:], c.queueFew[:]
	c.words = c.wordsFew[:]
	c.timers.init()
	c.self.order = 1 << 30
	c.pool.limit = limits.Messages
	c.x = Exec{c: c, tracer: config.Tracer, cur: &c.self, maxDepth: limits.RaiseDepth}
	c.attached = make([]*attachment, 0, len(mps))
	c.binds = append(make([]bind, 0, fewBinds), bind{ensure(c, forwardOn), newEntry((*Exec).goOn, &c.self, 0, Normal)})
	b := &Binder{c: c}
	for _, mp := range mps {
		if err := b.attach(mp); err != nil {
			return nil, fmt.Errorf("composite %s: %w", config.Name, err)
		}
	}
	if err := c.insertAll(c.binds); err != nil {
		return nil, fmt.Errorf("composite %s: %w", config.Name, err)
	}
	c.binds = nil
	c.planTrains()
	return c, nil
}

// fewBinds is how many handlers most composites have at most.
const fewBinds = 64

// begin starts an entry point.
func (c *Composite) begin(now Instant) error {
	if c.running {
		return ErrReentrant
	}
	if c.err != nil {
		return c.err
	}
	c.now = max(c.now, now)
	c.running = true
	c.x.stop = 0
	return nil
}

// finish ends an entry point: what was enqueued runs, in order. Chains that
// enqueue each other without end fail the composite.
func (c *Composite) finish() error {
	c.runQueue()
	c.running = false
	return c.err
}

func (c *Composite) runQueue() {
	for steps := 0; c.queue.n > 0 && c.err == nil; steps++ {
		if steps > max(1<<16, 16*c.limits.Queue) {
			c.x.Fail(fmt.Errorf("%w: events enqueue each other without end", ErrLimit))
			break
		}
		ch := c.queue.pop()
		ch.turns.runWaiting(&c.x, ch)
	}
}

// Open raises OpenSession. Messages and frames are taken from then on.
func (c *Composite) Open(now Instant) error {
	if c.phase != phaseNew {
		return fmt.Errorf("%w: composite %s was opened before", ErrNotOpen, c.config.Name)
	}
	if err := c.begin(now); err != nil {
		return err
	}
	c.phase = phaseOpen
	Raise(&c.x, OpenSession, struct{}{})
	return c.finish()
}

// Close raises CloseSession, then cancels every timer and drops ("closed") every
// message that is still in the composite. Outputs can still be drained and
// messages recycled. Closing twice does nothing. A failed composite is cleaned
// up just the same and its error returned.
func (c *Composite) Close(now Instant) error {
	if c.running {
		return ErrReentrant
	}
	if c.phase == phaseClosed {
		return c.err
	}
	opened := c.phase == phaseOpen
	c.phase = phaseClosed
	if err := c.begin(now); err == nil {
		if opened {
			Raise(&c.x, CloseSession, struct{}{})
		}
		_ = c.finish()
	}
	c.timers.clear()
	c.queue = ring[*chain]{}
	for _, m := range c.alive() {
		if m.state == stateLive {
			c.x.Drop(m, "closed")
		}
	}
	return c.err
}

// alive lists the messages that have not ended, oldest first.
func (c *Composite) alive() []*Message {
	var out []*Message
	for _, chunk := range c.pool.chunks {
		for i := range chunk {
			if m := &chunk[i]; m.state != stateFree && !m.ended {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Message) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return out
}

// Message takes a fresh message to be submitted: the caller sets Payload and
// attributes and passes it to Submit, or gives it back with Recycle. ErrPool when
// the bound is reached.
func (c *Composite) Message() (*Message, error) {
	m := c.pool.get()
	if m == nil {
		return nil, ErrPool
	}
	m.dir, m.state = Down, stateUser
	c.counts.Taken++
	return m, nil
}

// Submit raises MessageFromUser. It takes the message, also when it fails.
func (c *Composite) Submit(now Instant, m *Message) error {
	if m.state != stateUser {
		return fmt.Errorf("%w: submit of message %d", ErrMessage, m.id)
	}
	if c.running {
		return ErrReentrant
	}
	m.state = stateLive
	if err := c.ready(now); err != nil {
		c.x.Drop(m, "not open")
		return err
	}
	c.counts.Submitted++
	if ch := c.chains.find(MessageFromUser.id); ch == nil || len(ch.entries) == 0 {
		c.x.Drop(m, "unhandled")
	} else {
		Raise(&c.x, MessageFromUser, m)
	}
	return c.finish()
}

// ready is begin for entry points that need an open composite.
func (c *Composite) ready(now Instant) error {
	if c.phase != phaseOpen && c.err == nil {
		return fmt.Errorf("%w: %s", ErrNotOpen, c.config.Name)
	}
	return c.begin(now)
}

// Input takes a frame from the layer below, also when it fails, and raises
// SegmentFromNet; for frames that came as one, once for each train among them. A frame too short for the header, or for which the pool has no
// message, is dropped and counted; that is no error.
func (c *Composite) Input(now Instant, f Frame) error {
	if c.running {
		f.Release()
		return ErrReentrant
	}
	c.counts.BytesIn += uint64(len(f.Data))
	if err := c.ready(now); err != nil {
		c.counts.FramesIn++
		c.refuseFrame(&f, "not open")
		return err
	}
	if f.Segment > 0 && f.Segment < len(f.Data) {
		c.inputTrain(f)
	} else {
		f.Segment = 0
		c.input(f)
	}
	return c.finish()
}

func (c *Composite) input(f Frame) {
	x, h := &c.x, c.pool.hdrSize
	c.counts.FramesIn++
	if len(f.Data) < h {
		c.refuseFrame(&f, "short")
		return
	}
	m := c.pool.get()
	if m == nil {
		c.refuseFrame(&f, "pool")
		return
	}
	c.counts.Inputs++
	m.dir, m.frame = Up, f
	copy(m.header, f.Data)
	m.Payload = f.Data[h:]
	if f.Segment > 0 {
		c.trainsLive++
		m.segments, m.unit, m.gap = int32((len(f.Data)+f.Segment-1)/f.Segment), int32(f.Segment-h), int32(h)
	}
	c.counts.SegmentsIn += uint64(m.Segments())
	id := m.id
	if Raise(x, SegmentFromNet, m) && m.id == id && m.state == stateLive {
		x.Forward(m)
	}
}

func (c *Composite) refuseFrame(f *Frame, reason string) {
	f.Release()
	c.counts.FramesRefused++
	c.countDrop(reason)
	if c.x.tracer != nil {
		c.x.trace(TraceRecord{Kind: TraceDrop, Detail: reason})
	}
}

// Advance fires the timers that are due at now. One that a firing timer sets
// waits for the next call, whatever its delay.
func (c *Composite) Advance(now Instant) error {
	if err := c.begin(now); err != nil {
		return err
	}
	seq := c.timers.seq
	for c.err == nil {
		t, ok := c.timers.pop(c.now, seq)
		if !ok {
			break
		}
		if m, ok := t.arg.(*Message); ok && m != nil && (m.id != t.stamp || m.ended || m.state == stateFree) {
			continue
		}
		t.chain.turns.runTimer(&c.x, t.chain, t.arg)
		if c.finish() != nil {
			return c.err
		}
		c.running = true
		c.x.stop = 0
	}
	return c.finish()
}

// Deadline is when Advance has something to do next: Never without a timer.
func (c *Composite) Deadline() Instant {
	if c.err != nil {
		return Never
	}
	return c.timers.deadline()
}

// Drain appends the outputs to dst, in their order, and empties them.
func (c *Composite) Drain(dst []Output) []Output {
	dst = append(dst, c.outputs...)
	clear(c.outputs)
	c.outputs = c.outputs[:0]
	return dst
}

// Recycle gives back a delivered message, or one taken and not submitted.
// Anything else is ignored.
func (c *Composite) Recycle(m *Message) {
	if m == nil || m.state != stateUser {
		return
	}
	c.counts.Recycled++
	c.end(m)
}

// Do runs f as if it were a handler, so that the layer above can call into a
// micro-protocol.
func (c *Composite) Do(now Instant, f func(x *Exec)) error {
	if err := c.begin(now); err != nil {
		return err
	}
	f(&c.x)
	return c.finish()
}

// Names lists the micro-protocols from top to bottom.
func (c *Composite) Names() []string {
	out := make([]string, len(c.attached))
	for i, a := range c.attached {
		out[i] = a.name()
	}
	return out
}

// Name is Config.Name.
func (c *Composite) Name() string { return c.config.Name }

// Protocol returns the attached micro-protocol of that name, nil if there is none.
func (c *Composite) Protocol(name string) MicroProtocol {
	if a := c.lookup(name); a != nil {
		return a.protocol
	}
	return nil
}

func (c *Composite) lookup(name string) *attachment {
	for _, a := range c.attached {
		if a.label == name {
			return a
		}
	}
	return nil
}

// Endpoint returns the uppermost micro-protocol that implements Endpoint, nil if
// none does.
func (c *Composite) Endpoint() Endpoint { return c.endpoint }

// Counters accounts for every message.
func (c *Composite) Counters() Counters {
	n := c.counts
	n.Live, n.Held = c.pool.live, c.held
	n.Timers, n.Queued, n.Outputs = len(c.timers.heap), c.queue.n, len(c.outputs)
	n.Drops = slices.Clone(c.drops)
	slices.SortFunc(n.Drops, func(a, b Drops) int { return strings.Compare(a.Reason, b.Reason) })
	return n
}

// Err is the failure of a failed composite, nil otherwise.
func (c *Composite) Err() error { return c.err }

// holdNames renders hold bits for traces.
func (c *Composite) holdNames(h HoldBit) string {
	var names []string
	for i := range maxHoldBits {
		if h&(1<<i) != 0 {
			names = append(names, c.bitNames[i])
		}
	}
	return strings.Join(names, "|")
}
