package microproto

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/trace"
)

// Config sets up a composite.
type Config struct {
	Name     string
	Seed     uint64
	MTU      int         // largest frame of the layer below, in bytes
	Headroom int         // bytes that the layer below needs free in front of a frame
	Train    int         // Caps.Train of the layer below
	Gather   int         // Caps.Gather of the layer below
	ReadOnly bool        // Caps.ReadOnly of the layer below
	Frames   FrameSource // nil: plain allocation
	Limits   Limits
	Tracer   Tracer       // nil: no tracing
	Trace    trace.Source // takes the records of micro-protocols; the zero value: none
}

// Composite is a set of micro-protocols with one header and one pool of messages. The
// package documentation has the rules for its caller.
//
// The fields that a message touches come first, next to each other: in a simulation of
// thousands of composites, cache misses cost a message more than instructions do.
type Composite struct {
	x           Exec
	now         Instant
	err         error
	running     bool
	phase       phase
	trains      bool // the layer below and every micro-protocol take trains
	held        int
	pool        pool
	queue       fifo.Queue[*chain] // chains of the enqueued raises; each chain keeps its arguments
	outputs     []Output
	counters    Counters
	config      Config
	limits      Limits
	timers      timers
	self        attachment // of handlers that the kernel or the layer above runs
	inlineQueue [2]*chain
	inlineWords [wordChunk]uint64
	inlineSlots [inlineSlots]int32
	chains      chainTable
	// The chains of the events that the kernel raises for messages.
	fromUser, readyToNet, toNet, fromNet, toUser *chain

	common   *commonPath    // nil: the chains run
	stepped  []steppedField // wire attributes that grow within a train
	drops    []Drops
	rand     *rand.Rand // nil before the first use
	endpoint Endpoint
	attached []*attachment
	cells    []cell
	fields   []field
	bitNames []string // by bit
	locals   int      // local attributes

	flow        []func(f *FlowState) // of Binder.Flow, if the composite is recorded
	state       FlowState            // result of Flow
	numberAt    int16                // of Number: offset in the header + 1; 0: none
	binds       []bind               // during NewComposite
	lastBinding uint32               // number of the last Binding
	words       []uint64
	predicted   [MaxHeaderBytes]byte
}

type phase uint8

const (
	phaseNew phase = iota
	phaseOpen
	phaseClosed
)

// NewComposite returns a composite of the micro-protocols, which it attaches from top to
// bottom. The error names the first one that cannot be attached.
func NewComposite(config Config, mps ...MicroProtocol) (*Composite, error) {
	limits, err := config.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	if config.MTU <= 0 || config.Headroom < 0 {
		return nil, fmt.Errorf("microproto: composite %s: MTU %d, headroom %d; want MTU > 0 and headroom >= 0",
			config.Name, config.MTU, config.Headroom)
	}
	if config.Frames == nil {
		config.Frames = plainFrames{config.Headroom}
	}
	c := &Composite{config: config, limits: limits}
	c.chains.slots = c.inlineSlots[:]
	c.queue.Use(c.inlineQueue[:])
	c.words = c.inlineWords[:]
	c.timers.init()
	c.self.order = 1 << 30
	c.pool.limit = limits.Messages
	c.x = Exec{c: c, tracer: config.Tracer, cur: &c.self, maxDepth: limits.RaiseDepth}
	c.attached = make([]*attachment, 0, len(mps))
	c.fromUser, c.toNet = ensure(c, MessageFromUser), ensure(c, SegmentToNet)
	c.readyToNet = ensure(c, SegmentReady)
	c.fromNet, c.toUser = ensure(c, SegmentFromNet), ensure(c, SegmentToUser)
	resume := newEntry(c, (*Exec).resume, &c.self, Normal)
	c.binds = append(make([]bind, 0, initialBinds), bind{ensure(c, forwardOn), resume})
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
	c.planCommonPath()
	return c, nil
}

// initialBinds is the number of handlers that few composites exceed.
const initialBinds = 64

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

// finish ends an entry point: the enqueued raises run, in order. Chains that enqueue
// each other without end fail the composite.
func (c *Composite) finish() error {
	c.runQueue()
	c.running = false
	return c.err
}

func (c *Composite) runQueue() {
	for steps := 0; c.queue.Len() > 0 && c.err == nil; steps++ {
		if steps > max(1<<16, 16*c.limits.Queue) {
			c.x.Fail(fmt.Errorf("%w: events enqueue each other without end", ErrLimit))
			break
		}
		ch := c.queue.Pop()
		ch.deferred.runNext(&c.x, ch)
	}
}

// Open raises OpenSession. Submit and Input are allowed from then on.
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

// Close raises CloseSession, then cancels every timer and drops every message that is
// still in the composite, for the reason "closed". Outputs can still be drained and
// messages recycled. A second call does nothing. Close cleans up a failed composite too,
// and returns its error.
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
	for len(c.timers.heap) > 0 {
		c.timers.remove(c.timers.heap[0])
	}
	c.queue = fifo.Queue[*chain]{}
	var left []*Message
	for _, chunk := range c.pool.chunks {
		for i := range chunk {
			if m := &chunk[i]; m.state == stateLive && !m.ended {
				left = append(left, m)
			}
		}
	}
	slices.SortFunc(left, func(a, b *Message) int { return cmp.Compare(a.id, b.id) })
	for _, m := range left {
		c.x.Drop(m, "closed")
	}
	return c.err
}

// Message returns a fresh message. The caller sets its Payload and attributes and passes
// it to Submit, or returns it with Recycle. ErrPool: Limits.Messages are live.
func (c *Composite) Message() (*Message, error) {
	m := c.pool.zeroed()
	if m == nil {
		return nil, ErrPool
	}
	m.dir, m.state = Down, stateUser
	c.counters.Taken++
	return m, nil
}

// Submit raises MessageFromUser. It takes the message even if it returns an error.
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
	c.counters.Submitted++
	if len(c.fromUser.entries) > 0 {
		c.x.raiseMessage(c.fromUser, m)
	} else {
		c.x.Drop(m, "unhandled")
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

// Input takes a frame from the layer below, even if it returns an error, and raises
// SegmentFromNet. A frame that holds several raises it once for each train among them. A
// frame that is too short for the header, or for which the pool has no message, is
// dropped and counted; that is not an error.
func (c *Composite) Input(now Instant, f Frame) error {
	if c.running {
		f.Release()
		return ErrReentrant
	}
	c.counters.BytesIn += uint64(len(f.Data))
	if err := c.ready(now); err != nil {
		c.counters.FramesIn++
		c.refuseFrame(&f, "not open")
		return err
	}
	if f.Segment > 0 && f.Segment < len(f.Data) {
		c.inputTrain(f)
	} else {
		f.Segment = 0
		c.input(&f)
	}
	return c.finish()
}

func (c *Composite) input(f *Frame) {
	x, h := &c.x, c.pool.hdrSize
	c.counters.FramesIn++
	if len(f.Data) < h {
		c.refuseFrame(f, "short")
		return
	}
	if c.common != nil && f.Segment == 0 && c.takeCommon(f) {
		return
	}
	m := c.pool.get()
	if m == nil {
		c.refuseFrame(f, "pool")
		return
	}
	c.counters.Inputs++
	m.dir, m.frame = Up, f.memory()
	copy(m.header, f.Data)
	m.Payload = f.Data[h:]
	if f.Segment > 0 {
		m.setTrain(f.Count(), f.Segment-h)
		m.stride = int32(f.Segment)
	}
	c.counters.SegmentsIn += uint64(m.Segments())
	id := m.id
	if x.raiseMessage(c.fromNet, m) && m.id == id && m.state == stateLive {
		x.Forward(m)
	}
}

func (c *Composite) refuseFrame(f *Frame, reason string) {
	f.Release()
	c.counters.FramesRefused++
	c.countDrop(reason)
	if r := c.x.Record(trace.Dropped); r != nil {
		r.Count, r.Value = 1, c.config.Trace.Ring.Text(reason)
	}
	c.x.trace(TraceRecord{Kind: TraceDrop, Detail: reason})
}

// Advance fires the timers that are due at now. A timer that a handler sets meanwhile
// fires in a later call, whatever its delay.
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
		if m, ok := t.arg.(*Message); ok && m != nil && (m.id != t.messageID || m.ended || m.state == stateFree) {
			continue
		}
		t.chain.deferred.runTimer(&c.x, t.chain, t.arg)
		if c.finish() != nil {
			return c.err
		}
		c.running = true
		c.x.stop = 0
	}
	return c.finish()
}

// Deadline returns the instant of the next timer, Never if there is none.
func (c *Composite) Deadline() Instant {
	if c.err != nil {
		return Never
	}
	return c.timers.deadline()
}

// Drain appends the outputs to dst, in order, and removes them from the composite.
func (c *Composite) Drain(dst []Output) []Output {
	dst = append(dst, c.outputs...)
	clear(c.outputs)
	c.outputs = c.outputs[:0]
	return dst
}

// Recycle returns a message to the pool: a delivered one, or one of Message that was not
// submitted. Any other call is ignored.
func (c *Composite) Recycle(m *Message) {
	if m == nil || m.state != stateUser {
		return
	}
	c.counters.Recycled++
	c.end(m)
}

// Do runs f as a handler. The layer above calls micro-protocols in this way.
func (c *Composite) Do(now Instant, f func(x *Exec)) error {
	if err := c.begin(now); err != nil {
		return err
	}
	f(&c.x)
	return c.finish()
}

// Names returns the names of the micro-protocols, from top to bottom.
func (c *Composite) Names() []string {
	out := make([]string, len(c.attached))
	for i, a := range c.attached {
		out[i] = a.name
	}
	return out
}

// Protocol returns the micro-protocol of that name, nil if there is none.
func (c *Composite) Protocol(name string) MicroProtocol {
	if a := c.lookup(name); a != nil {
		return a.protocol
	}
	return nil
}

func (c *Composite) lookup(name string) *attachment {
	for _, a := range c.attached {
		if a.name == name {
			return a
		}
	}
	return nil
}

// Endpoint returns the uppermost micro-protocol that implements Endpoint, nil if
// none does.
func (c *Composite) Endpoint() Endpoint { return c.endpoint }

// Counters returns the account of all messages and frames.
func (c *Composite) Counters() Counters {
	n := c.counters
	n.Live = c.pool.live
	n.Held = c.held
	n.Timers = len(c.timers.heap)
	n.Queued = c.queue.Len()
	n.Outputs = len(c.outputs)
	n.Drops = c.drops
	return n
}

// Err returns the error of a failed composite, nil otherwise.
func (c *Composite) Err() error { return c.err }

func (c *Composite) holdNames(h HoldBit) string {
	var names []string
	for i := range maxHoldBits {
		if h&(1<<i) != 0 {
			names = append(names, c.bitNames[i])
		}
	}
	return strings.Join(names, "|")
}
