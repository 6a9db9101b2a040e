package microproto

// Direction is a message's way through its composite.
type Direction uint8

// Down is from the user to the network, Up from the network to the user.
const (
	Down Direction = iota + 1
	Up
)

// Message is a user message or a segment inside one composite. Messages come from
// the composite's bounded pool and belong to it; a pointer to one is meaningless
// after Done, Drop or Recycle.
type Message struct {
	// Payload, going down, aliases the user's buffer (or the frame of an upper
	// composite); going up, the frame that came.
	Payload []byte

	header []byte
	id     uint64
	next   *Message // that is free too
	hold   HoldBit
	has    uint32 // local attributes that are set
	pins   int32  // running chains that carry it

	segments, unit, gap int32 // of a train: how many, payload bytes of each, bytes between two payloads

	ended bool
	dir   Direction
	state messageState
	stage messageStage
	frame Frame // memory that lives as long as the message
	local [maxLocalAttrs]uint64
}

type messageState uint8

const (
	stateFree messageState = iota
	stateLive              // in the composite
	stateUser              // with the layer above: taken and not submitted, or delivered
)

type messageStage uint8

const (
	stageNone    messageStage = iota
	stageWaiting              // forwarded, and held
	stageGone                 // forwarded, and gone on
)

// HoldBit is one bit by which a micro-protocol holds messages.
type HoldBit uint32

// Direction returns the message's way.
func (m *Message) Direction() Direction { return m.dir }

// ID is the message's identity in traces: it grows with every message that the
// composite makes and is never used again.
func (m *Message) ID() uint64 { return m.id }

// Header returns the header bytes, for tests, dissectors and whoever authenticates
// all of them. Micro-protocols use their attributes and fields otherwise.
func (m *Message) Header() []byte { return m.header }

// Peer is where the frame that brought the message came from, 0 for others.
func (m *Message) Peer() LinkAddr { return m.frame.Peer }

// pool makes messages in chunks, up to a limit, and uses them again.
type pool struct {
	chunks  [][]Message
	free    *Message // the one that was put last
	limit   int
	made    int
	live    int
	lastID  uint64
	hdrSize int
}

// A pool begins with few messages and then makes as many again: most sessions never have
// more than a few alive, and there are thousands of sessions in a simulation.
const (
	firstChunk = 4
	poolChunk  = 32
)

// get returns a message without payload, attributes or holds and with a zeroed
// header, nil when the limit is reached.
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

// put makes an ended message free to be used again.
func (p *pool) put(m *Message) {
	m.frame = Frame{}
	m.hold, m.has, m.dir = 0, 0, 0
	m.state, m.stage, m.ended = stateFree, stageNone, false
	m.segments = 0
	clear(m.header)
	m.next, p.free = p.free, m
}

func (p *pool) grow() {
	n := min(max(firstChunk, p.made), poolChunk, p.limit-p.made)
	chunk := make([]Message, n)
	p.chunks = append(p.chunks, chunk)
	p.made += n
	p.cut(chunk)
	for i := range chunk {
		m := &chunk[n-1-i]
		m.next, p.free = p.free, m
	}
}

// cut gives the messages of a chunk their header bytes.
func (p *pool) cut(chunk []Message) {
	slab := make([]byte, len(chunk)*p.hdrSize)
	for i := range chunk {
		chunk[i].header = slab[i*p.hdrSize : (i+1)*p.hdrSize : (i+1)*p.hdrSize]
	}
}
