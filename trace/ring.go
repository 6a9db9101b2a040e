package trace

// Options of a ring.
type Options struct {
	// Bytes bounds the memory of the records, with what is kept of frames; 0: DefaultBytes.
	Bytes int
	// FrameBytes is the number of bytes that are kept of each train of segments; 0: none.
	FrameBytes int
	// Steps records every step of every composite, too. The composites then run their chains for every message, some
	// ninety steps at its two ends.
	Steps bool
}

// Bounds of Options. DefaultBytes holds 174,762 records without frames: some seconds of a solve.
const (
	DefaultBytes  = 8 << 20
	MinBytes      = 64 << 10
	MaxBytes      = 1 << 30
	MaxFrameBytes = 2048
)

// Bounds of the tables beside a ring.
const (
	maxSessions = 1 << 14
	maxTexts    = 1 << 16
	maxLayouts  = 1 << 14
	maxPings    = 1 << 12
	maxText     = 1 << 12 // bytes
)

// Ring keeps the newest records of a node. It is for one caller at a time.
type Ring struct {
	records []Record
	next    int
	total   uint64 // records added
	frames  []byte // a slot for each record: the number of bytes that follow, and those bytes
	slot    int    // bytes of a slot, 0: none
	options Options

	node     Node // the tables; Records and Frames are empty
	texts    map[string]uint32
	sessions map[Session]uint16
	layouts  map[layoutKey]int
	pings    map[pingKey]int
}

// frameLength is the size of the number at the beginning of a frame's slot.
const frameLength = 2

// NewRing returns an empty ring. Options outside their bounds take the nearest value inside.
func NewRing(o Options) *Ring {
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	o.FrameBytes = min(max(o.FrameBytes, 0), MaxFrameBytes)
	r := &Ring{options: o, texts: map[string]uint32{"": 0}, sessions: map[Session]uint16{{}: 0},
		layouts: map[layoutKey]int{}, pings: map[pingKey]int{}}
	if o.FrameBytes > 0 {
		r.slot = frameLength + o.FrameBytes
	}
	n := min(max(o.Bytes, MinBytes), MaxBytes) / (RecordBytes + r.slot)
	r.records, r.frames = make([]Record, n), make([]byte, n*r.slot)
	r.node.Texts, r.node.Sessions = []string{""}, []Session{{}}
	return r
}

// Touch has the system provide the memory of the ring now. Otherwise it does so page by page, during the first records,
// which takes them several times as long.
func (r *Ring) Touch() {
	const page = 4096
	for i := 0; i < len(r.records); i += page / RecordBytes {
		r.records[i].At = 0
	}
	for i := 0; i < len(r.frames); i += page {
		r.frames[i] = 0
	}
}

// Steps reports whether the steps of composites are recorded.
func (r *Ring) Steps() bool { return r.options.Steps }

// Add adds a record and returns it, for the caller to set its fields before the next call. They are zero but At and
// Kind.
func (r *Ring) Add(at int64, k Kind) *Record {
	if r.next == len(r.records) {
		r.next = 0
	}
	p := &r.records[r.next]
	r.next++
	r.total++
	*p = Record{At: at, Kind: k}
	return p
}

// Undo removes p, the newest record but those added since mark, from what is read later.
func (r *Ring) Undo(p *Record, mark uint64) {
	if r.total == mark {
		r.next--
		r.total--
		return
	}
	p.Kind = 0
}

// Mark returns a number that changes with every record.
func (r *Ring) Mark() uint64 { return r.total }

// KeepsFrames reports whether Frame keeps anything.
func (r *Ring) KeepsFrames() bool { return r.slot > 0 }

// Frame keeps the first bytes of a frame, which may be in two pieces, with the newest record.
func (r *Ring) Frame(head, body []byte) {
	if r.slot == 0 {
		return
	}
	b := r.frames[(r.next-1)*r.slot : r.next*r.slot]
	n := copy(b[frameLength:], head)
	n += copy(b[frameLength+n:], body)
	b[0], b[1] = byte(n), byte(n>>8)
}

// frame returns the bytes kept with record i; nil: none.
func (r *Ring) frame(i int) []byte {
	if k := r.records[i].Kind; r.slot == 0 || k != SegmentOut && k != SegmentIn {
		return nil
	}
	b := r.frames[i*r.slot : (i+1)*r.slot]
	n := min(int(b[0])|int(b[1])<<8, len(b)-frameLength)
	return b[frameLength : frameLength+n]
}

// Source adds the records of one channel of a session, or of one node. Its zero value adds none.
type Source struct {
	Ring    *Ring // nil: nothing is recorded
	Session uint16
	Rail    uint8
	Epoch   uint8
}

// Add adds a record of the source; see Ring.Add.
func (s *Source) Add(at int64, k Kind) *Record {
	p := s.Ring.Add(at, k)
	p.Session, p.Rail, p.Epoch = s.Session, s.Rail, s.Epoch
	return p
}

// Snapshot returns a copy of all that the ring holds, at an instant of the node: the records in the order of their
// addition. described is set in the copy, but for the tables.
func (r *Ring) Snapshot(at int64, described Node) *Node {
	out := described
	out.At = at
	t := r.node.clone()
	out.Sessions, out.Texts, out.Layouts, out.Pings = t.Sessions, t.Texts, t.Layouts, t.Pings
	n := int(min(r.total, uint64(len(r.records))))
	out.Overwritten = r.total - uint64(n)
	out.Records = make([]Record, 0, n)
	if r.slot > 0 {
		out.Frames = make([][]byte, 0, n)
	}
	first := 0
	if out.Overwritten > 0 {
		first = r.next % len(r.records)
	}
	var memory []byte
	for k := range n {
		i := (first + k) % len(r.records)
		if r.records[i].Kind == 0 {
			continue
		}
		out.Records = append(out.Records, r.records[i])
		if r.slot > 0 {
			from := len(memory)
			memory = append(memory, r.frame(i)...)
			out.Frames = append(out.Frames, memory[from:len(memory):len(memory)])
		}
	}
	return &out
}
