package microproto

import (
	"math/rand/v2"
	"time"
)

// SKELETON: signatures are agreed between packages; the kernel's author moves them to files by noun and builds the bodies.

// Instant is a point in time: monotonic nanoseconds since an origin that the shell chose.
type Instant int64

func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Never is later than every instant.
const Never = Instant(1<<63 - 1)

// Event[T]'s identity is the variable that holds it: declare events as package variables. slot is a small
// process-wide index so that Raise needs no map.
type Event[T any] struct {
	slot int32
	name string
}

func NewEvent[T any](name string) Event[T] { panic("skeleton") }
func (e Event[T]) Name() string            { return e.name }

type Handler[T any] func(x *Exec, arg T)

// Priority orders the handlers of one event: lower runs first; equal in order of attachment.
type Priority int16

const (
	First  Priority = -1000
	Early  Priority = -100
	Normal Priority = 0
	Late   Priority = 100
	Last   Priority = 1000
)

type MicroProtocol interface {
	Name() string
	Attach(b *Binder) error // binds handlers, declares header bytes, attributes, cells; no effects
}

// Versioned is optional; the version (default 1) goes into the fingerprint.
type Versioned interface{ Version() uint16 }

// State is what a micro-protocol hands to its successor when it is replaced at run time.
type State any

// Detacher is a micro-protocol that can be detached while running. It must release what it holds.
type Detacher interface {
	Detach(x *Exec) (State, error)
}

// Adopter takes the state of its predecessor when attached while running.
type Adopter interface {
	Adopt(x *Exec, s State) error
}

// Public events, raised by the kernel (first column) or by micro-protocols; named after CTP's.
var (
	OpenSession     = NewEvent[struct{}]("open.session")      // kernel: Composite.Open
	CloseSession    = NewEvent[struct{}]("close.session")     // kernel: Composite.Close
	MessageFromUser = NewEvent[*Message]("message.from.user") // kernel: Composite.Submit
	SegmentFromUser = NewEvent[*Message]("segment.from.user") // Resize, once per segment
	SegmentToNet    = NewEvent[*Message]("segment.to.net")    // after all hold bits are clear (kernel raises it: Exec.Forward)
	SegmentFromNet  = NewEvent[*Message]("segment.from.net")  // kernel: Composite.Input
	SegmentToUser   = NewEvent[*Message]("segment.to.user")   // after all hold bits are clear going up
	SegmentAcked    = NewEvent[*Message]("segment.acked")
	SegmentLost     = NewEvent[*Message]("segment.lost")
	SegmentTimeout  = NewEvent[*Message]("segment.timeout")
)

type Direction uint8

const (
	Down Direction = iota + 1
	Up
)

// Message is a user message or a segment inside one composite. Messages come from the composite's bounded pool.
type Message struct {
	Payload []byte // going down it aliases the user's buffer (or the frame of an upper composite); going up, the frame
	dir     Direction
	// header bytes, attributes, hold bits, frame, accounting state … unexported
}

func (m *Message) Direction() Direction { return m.dir }

// Word is what an attribute may hold.
type Word interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int32 | ~int64
}

// Attr is a typed attribute of messages: Local lives in the message only, Wire in the header (big endian).
type Attr[T Word] struct { /* slot or offset, wire bool */
}

func (a Attr[T]) Get(m *Message) T    { panic("skeleton") }
func (a Attr[T]) Set(m *Message, v T) { panic("skeleton") }
func (a Attr[T]) Has(m *Message) bool { panic("skeleton") } // wire attributes: always true

// Field is a run of raw header bytes that one micro-protocol owns.
type Field struct { /* offset, length */
}

func (f Field) Bytes(m *Message) []byte { panic("skeleton") }

// Binder is what Attach sees.
type Binder struct{}

func (b *Binder) Header(n int) Field                                      { panic("skeleton") } // n raw header bytes
func (b *Binder) HoldBit(name string) HoldBit                             { panic("skeleton") } // one of 32
func (b *Binder) Headroom() int                                           { panic("skeleton") }
func (b *Binder) MTU() int                                                { panic("skeleton") } // largest frame of the layer below
func (b *Binder) Limits() Limits                                          { panic("skeleton") }
func LocalAttr[T Word](b *Binder, name string) Attr[T]                    { panic("skeleton") } // declares
func WireAttr[T Word](b *Binder, name string) Attr[T]                     { panic("skeleton") } // declares; sizeof(T) header bytes
func LookupAttr[T Word](b *Binder, name string) (Attr[T], error)          { panic("skeleton") } // declared by an earlier micro-protocol; error names it
func DeclareCell[T any](b *Binder, name string, initial T) *T             { panic("skeleton") } // typed shared cell; kept across re-attachment of its declarer
func LookupCell[T any](b *Binder, name string) (*T, error)                { panic("skeleton") }
func Bind[T any](b *Binder, e Event[T], p Priority, h Handler[T]) Binding { panic("skeleton") }

// BindNow and Unbind work at run time, from a handler.
func BindNow[T any](x *Exec, e Event[T], p Priority, h Handler[T]) (Binding, error) {
	panic("skeleton")
}

type Binding struct{}

func (b Binding) Unbind(x *Exec) { panic("skeleton") }

type HoldBit uint32 // one bit set

// Raise runs the event's handlers now, nested; false if one of them halted. Past the raise depth bound the composite fails (see Err).
func Raise[T any](x *Exec, e Event[T], arg T) (completed bool) { panic("skeleton") }

// Enqueue raises after the current chain, FIFO.
func Enqueue[T any](x *Exec, e Event[T], arg T) { panic("skeleton") }

// RaiseAfter raises once d has passed; timers fire in (deadline, creation) order.
func RaiseAfter[T any](x *Exec, e Event[*T], d time.Duration, arg *T) TimerID { panic("skeleton") }

type TimerID uint64 // 0 is none; stale ids cancel nothing

// Exec is a handler's view of its composite while one entry point runs.
type Exec struct{}

func (x *Exec) Now() Instant                  { panic("skeleton") }
func (x *Exec) Rand() *rand.Rand              { panic("skeleton") } // seeded from Config.Seed
func (x *Exec) Halt()                         { panic("skeleton") } // stops the rest of the current chain
func (x *Exec) Cancel(id TimerID) bool        { panic("skeleton") }
func (x *Exec) Hold(m *Message, h HoldBit)    { panic("skeleton") } // m stops before SegmentToNet (down) or SegmentToUser (up) until released
func (x *Exec) Release(m *Message, h HoldBit) { panic("skeleton") } // when all bits are clear the message goes on, once, after the current chain
func (x *Exec) Held(m *Message) HoldBit       { panic("skeleton") }

// NewMessage takes a message from the pool: ErrPool when the bound is reached. Header zeroed, no attributes.
func (x *Exec) NewMessage(d Direction) (*Message, error) { panic("skeleton") }

// Share makes dst's payload alias part of m's payload and keeps m's memory (frame) alive until dst is done with.
func (x *Exec) Share(dst, m *Message, payload []byte) { panic("skeleton") }

// Forward lets a segment continue on its way: down: SegmentFromUser handlers have run and may have held it; if no hold bit is set SegmentToNet is raised,
// up likewise with SegmentToUser; otherwise it waits for Release.
func (x *Exec) Forward(m *Message) { panic("skeleton") }

// Transmit writes header and payload into a frame (one copy, or in place when the message owns a frame with headroom) and appends it to the outputs.
// The message stays owned by the caller (Retransmit keeps it); Done gives it back to the pool.
func (x *Exec) Transmit(m *Message) error { panic("skeleton") }

// Deliver hands m to the user (the layer above): appended to the outputs; it now belongs to whoever drains.
func (x *Exec) Deliver(m *Message) { panic("skeleton") }

// Done ends a message that was transmitted, acked, or consumed; Drop ends one that was not, with a counted reason.
func (x *Exec) Done(m *Message)                { panic("skeleton") }
func (x *Exec) Drop(m *Message, reason string) { panic("skeleton") }

// Notify appends a Notice to the outputs (for the layer above: a transfer accepted, credit changed, peer stalled).
func (x *Exec) Notify(n Notice) { panic("skeleton") }

// Notice is a small record from a micro-protocol to the layer above.
type Notice struct {
	Kind  string // for example "transfer.accepted", declared in package ctp
	Value uint64
}

// Fail puts the composite in a failed state: every later entry point returns err.
func (x *Exec) Fail(err error) { panic("skeleton") }

// Limits bound everything. Zero fields take the defaults.
type Limits struct {
	Messages   int // pool size (default 65536)
	Timers     int // default 65536
	RaiseDepth int // default 32
	Queue      int // enqueued events (default 65536)
	Outputs    int // outputs not yet drained (default 65536)
}

type Config struct {
	Name     string
	Seed     uint64
	MTU      int         // largest frame below, bytes
	Headroom int         // bytes wanted free in front of a frame by the layer below
	Frames   FrameSource // nil: plain allocation
	Limits   Limits
	Tracer   Tracer // nil: off, and then it costs one predictable branch
}

// Tracer sees every raise (synchronous, enqueued, delayed), halt, hold, release, transmit, deliver, drop.
type Tracer interface {
	Trace(now Instant, r TraceRecord)
}

// Output is one thing that left the composite, in order.
type Output struct {
	Kind    OutputKind // OutFrame, OutMessage, OutNotice
	Frame   Frame      // OutFrame: header+payload
	Message *Message   // OutMessage: give it back with Composite.Recycle
	Notice  Notice
}

type OutputKind uint8

// Composite: handlers of a composite run one at a time; not safe for concurrent use.
type Composite struct{}

func NewComposite(c Config, mps ...MicroProtocol) (*Composite, error) { panic("skeleton") }

func (c *Composite) Open(now Instant) error  { panic("skeleton") }
func (c *Composite) Close(now Instant) error { panic("skeleton") }

// Message takes a fresh message to be submitted; the caller sets Payload and attributes and passes it to Submit.
func (c *Composite) Message() (*Message, error)                               { panic("skeleton") }
func (c *Composite) Submit(now Instant, m *Message) error                     { panic("skeleton") } // raises MessageFromUser
func (c *Composite) Input(now Instant, f Frame) error                         { panic("skeleton") } // takes the frame; too short: dropped and counted
func (c *Composite) Advance(now Instant) error                                { panic("skeleton") } // fires due timers
func (c *Composite) Deadline() Instant                                        { panic("skeleton") } // Never if no timer
func (c *Composite) Drain(dst []Output) []Output                              { panic("skeleton") } // appends and empties
func (c *Composite) Recycle(m *Message)                                       { panic("skeleton") }
func (c *Composite) Attach(now Instant, mp MicroProtocol, s State) error      { panic("skeleton") } // while running; the header layout must not change unless quiescent
func (c *Composite) Detach(now Instant, name string) (State, error)           { panic("skeleton") }
func (c *Composite) Replace(now Instant, name string, mp MicroProtocol) error { panic("skeleton") }
func (c *Composite) Do(now Instant, f func(x *Exec)) error                    { panic("skeleton") } // run f as if it were a handler (the layer above calls into a micro-protocol)
func (c *Composite) HeaderBytes() int                                         { panic("skeleton") }
func (c *Composite) Names() []string                                          { panic("skeleton") }
func (c *Composite) Fingerprint() uint64                                      { panic("skeleton") } // names, versions, header layout
func (c *Composite) Counters() Counters                                       { panic("skeleton") } // submitted, input, transmitted, delivered, held, live, dropped by reason (sorted)
func (c *Composite) Err() error                                               { panic("skeleton") }

// Lookup for the layer above, after construction:
func CompositeAttr[T Word](c *Composite, name string) (Attr[T], error) { panic("skeleton") }
func CompositeCell[T any](c *Composite, name string) (*T, error)       { panic("skeleton") }
func (c *Composite) Protocol(name string) MicroProtocol                { panic("skeleton") }

// Stack joins composites, the first on top: frames of one are messages of the next.
type Stack struct{}

func NewStack(top *Composite, below ...*Composite) (*Stack, error) { panic("skeleton") } // same entry points as Composite

// Catalog maps micro-protocol names to constructors; the program's main builds one, nobody registers.
type Catalog struct{}
type Constructor func(Options) (MicroProtocol, error)

// Options are string-keyed settings of a composition (units in the key: "rto.floor.ns").
type Options map[string]int64

func NewCatalog() *Catalog                                                  { panic("skeleton") }
func (c *Catalog) Add(name string, f Constructor) error                     { panic("skeleton") } // a name twice is an error
func (c *Catalog) Has(name string) bool                                     { panic("skeleton") }
func (c *Catalog) Names() []string                                          { panic("skeleton") } // sorted
func (c *Catalog) Build(names []string, o Options) ([]MicroProtocol, error) { panic("skeleton") }

type TraceRecord struct { /* kind, event, handler's micro-protocol, message id, depth */
}
type Counters struct{}

var (
	ErrBusy    = skeletonErr("microproto: no credit or room now")
	ErrNothing = skeletonErr("microproto: nothing to receive")
	ErrShort   = skeletonErr("microproto: destination too short")
	ErrPool    = skeletonErr("microproto: message pool exhausted")
)

type skeletonErr string

func (e skeletonErr) Error() string { return string(e) }

// Endpoint returns the composite's micro-protocol that implements Endpoint, nil if none.
func (c *Composite) Endpoint() Endpoint { panic("skeleton") }
