package microproto

// Direction is the direction in which a message passes through its composite.
type Direction uint8

// Down is from the user to the network, Up from the network to the user.
const (
	Down Direction = iota + 1
	Up
)

// Message is a user message or a segment inside one composite. Messages come from the
// composite's bounded pool, which reuses them: a pointer to one is invalid after Done, Drop
// or Recycle. A segment that a micro-protocol holds from SegmentReady on is reused after its Release.
type Message struct {
	// Payload aliases the user's buffer or the frame of an upper composite (on the way
	// down), or the incoming frame (on the way up).
	Payload []byte

	header   []byte
	id       uint64
	next     *Message // in the list of free messages
	hold     HoldBit
	localSet uint32 // local attributes that are set
	refs     int32  // running chains that carry it

	// Of a train: the number of segments, the payload bytes of each but the last, and the
	// bytes from the beginning of one payload to that of the next.
	segments, unit, stride int32

	ended bool
	dir   Direction
	state messageState
	stage messageStage
	frame memory // lives as long as the message
	local [maxLocalAttrs]uint64
}

type messageState uint8

const (
	stateFree messageState = iota
	stateLive              // in the composite
	stateUser              // in the layer above: not yet submitted, or delivered
)

type messageStage uint8

const (
	stageNone    messageStage = iota
	stageWaiting              // forwarded, and held
	stageReady                // SegmentReady was raised, and a handler holds it
	stageResumed              // forwarded, and beyond the hold bits
)

// HoldBit is one bit by which a micro-protocol holds messages.
type HoldBit uint32

// Direction returns the direction of the message.
func (m *Message) Direction() Direction { return m.dir }

// ID returns the message's identity in traces. Every message of a composite has a higher one
// than those before.
func (m *Message) ID() uint64 { return m.id }

// Header returns the header bytes, for tests, dissectors and the authentication of headers.
// Other micro-protocols use their attributes and fields.
func (m *Message) Header() []byte { return m.header }

// Kept returns how many bytes of memory a received message occupies until it ends; 0 if its link needs them back soon,
// so that the payload should be copied.
func (m *Message) Kept() int {
	if b := m.frame.buf; b != nil && !b.Scarce {
		return max(len(m.Payload), len(b.Bytes))
	}
	return 0
}

// pool allocates messages in chunks, up to a limit, and reuses them.
type pool struct {
	chunks  [][]Message
	free    *Message // list of free messages, latest first
	limit   int
	made    int
	live    int
	lastID  uint64
	hdrSize int
}

// A pool starts with few messages and doubles: most sessions never have more than a few
// live ones, and a simulation has thousands of sessions.
const (
	firstChunk = 4
	poolChunk  = 32
)

// zeroed returns a message without payload, attributes or hold bits and with a zero header; nil
// if the limit is reached.
func (p *pool) zeroed() *Message {
	m := p.get()
	if m != nil {
		clear(m.header)
	}
	return m
}

// get is zeroed for a caller that writes the header.
func (p *pool) get() *Message {
	m := p.free
	if m == nil {
		if p.made >= p.limit {
			return nil
		}
		p.grow()
		m = p.free
	}
	p.free, m.next = m.next, nil
	p.live++
	p.lastID++
	m.id = p.lastID
	m.state = stateLive
	return m
}

// unget returns a message of get, whose identity the next one then has.
func (p *pool) unget(m *Message) {
	p.live--
	p.lastID--
	p.put(m)
}

func (p *pool) put(m *Message) {
	m.frame = memory{}
	m.hold, m.localSet = 0, 0
	m.dir = 0
	m.state, m.stage = stateFree, stageNone
	m.ended = false
	m.segments = 0
	m.next, p.free = p.free, m
}

func (p *pool) grow() {
	n := min(max(firstChunk, p.made), poolChunk, p.limit-p.made)
	chunk := make([]Message, n)
	p.chunks = append(p.chunks, chunk)
	p.made += n
	headers := make([]byte, n*p.hdrSize)
	for i := n - 1; i >= 0; i-- {
		m := &chunk[i]
		m.header = headers[i*p.hdrSize : (i+1)*p.hdrSize : (i+1)*p.hdrSize]
		m.next, p.free = p.free, m
	}
}
