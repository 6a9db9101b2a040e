package microproto

import "sync/atomic"

// Mode is the communication mode of a session. The scheme of iteration implies it. A link may
// have different capabilities in each mode.
type Mode uint8

// The two modes of communication of Table I.
const (
	ModeSynchronous Mode = iota + 1
	ModeAsynchronous
)

// String returns "sync" or "async".
func (m Mode) String() string {
	switch m {
	case ModeSynchronous:
		return "sync"
	case ModeAsynchronous:
		return "async"
	}
	return "mode?"
}

// Caps are the capabilities of a link in one mode.
type Caps struct {
	MTU      int // largest frame in bytes, headers of the link excluded; 0: it carries no session of the mode
	Headroom int // bytes that the link needs free in front of Frame.Data
	Batch    int // number of frames that a Send should have for full speed
	// Train is the largest Frame of several frames that the link takes, in bytes; see
	// Frame.Segment. 0: it takes frames one by one.
	Train int
	// Gather is the smallest payload in bytes for which the link takes frames with a Body.
	// 0: it takes none.
	Gather int
	// Reliable: every frame that the link took arrives once. Ordered: in the order sent.
	Reliable, Ordered bool
	// ReadOnly: received frames lie in memory of the other end, which must not be written to.
	ReadOnly bool
	// ConnectsLater: the connection with a peer is made after Accept. The LinkEvent of the peer with Up reports that it
	// is made, one without Up that it has failed. See Connected. Frames sent before wait.
	ConnectsLater bool
}

// LinkAddr identifies a remote end of one link. The link chooses it in Accept. 0 is never a
// remote end.
type LinkAddr uint32

// Frame is a datagram, or several, between a composite and a link. Data aliases a Buffer that
// several frames may share (one GRO receive). The owner of a frame calls Release exactly once.
type Frame struct {
	Peer LinkAddr
	// Mode is the session's. A link that separates the modes (ib: a reliable and an unreliable
	// queue pair) chooses by it. 0: control, sent as synchronous.
	Mode Mode
	Data []byte
	// Segment, if not 0, is the length in bytes of each of the frames in Data, one after the
	// other; the last may be shorter.
	Segment int
	// Body, if not nil, holds the payloads of the frames, one after the other; Data then holds
	// only their headers, of Header bytes each. Body is memory of the sending user. It is not
	// read after the link's Send has returned, unless the link has registered that memory for
	// the user: a reliable link reads registered memory until the other end has the frame.
	Body   []byte
	Header int
	// Value, if not 0, identifies the part of an asynchronous value that the frame carries. A
	// link may replace a waiting frame by a newer one of the same Value and Peer.
	Value uint64
	buf   *Buffer
	off   int // of Data in buf.Bytes, when the frame was made
}

// Buffer is the reference-counted memory behind frames.
type Buffer struct {
	Bytes []byte // the whole allocation
	// Scarce: the link needs the memory back soon. A user who may be slow must not keep it; see Message.Kept.
	Scarce bool
	refs   atomic.Int32
	free   func(*Buffer) // called when the last frame is released; may be nil
}

// NewBuffer returns a buffer over b. free, if not nil, is called on the last Release.
func NewBuffer(b []byte, free func(*Buffer)) *Buffer { return &Buffer{Bytes: b, free: free} }

// Frame returns a frame over Bytes[off:off+n], with a reference. The bytes before off are its
// headroom.
func (b *Buffer) Frame(peer LinkAddr, off, n int) Frame {
	b.refs.Add(1)
	return Frame{Peer: peer, Data: b.Bytes[off : off+n : off+n], buf: b, off: off}
}

// Release returns the frame's reference. It does nothing for a frame without a buffer (a zero
// frame, or one made from plain bytes).
func (f *Frame) Release() {
	b := f.buf
	f.buf = nil
	f.Data, f.Body = nil, nil
	if b != nil {
		b.release()
	}
}

func (b *Buffer) release() {
	switch n := b.refs.Add(-1); {
	case n == 0:
		if b.free != nil {
			b.free(b)
		}
	case n < 0:
		panic("microproto: frame released twice")
	}
}

// Retain returns a second frame over the same bytes, with its own reference.
func (f Frame) Retain() Frame {
	if f.buf != nil {
		f.buf.refs.Add(1)
	}
	return f
}

// Slice returns the frame narrowed to Data[from:to]. The bytes in front and behind remain as
// room for a header and a trailer of the composite below. The reference passes to the frame
// returned.
func (f Frame) Slice(from, to int) Frame {
	f.Data = f.Data[from:to]
	if f.off >= 0 {
		f.off += from
	}
	return f
}

// memory is what a message keeps of its frame: the reference to the buffer.
type memory struct {
	buf  *Buffer
	off  int // Frame.off
	peer LinkAddr
}

// memory passes the frame's reference to a message.
func (f *Frame) memory() memory { return memory{f.buf, f.off, f.Peer} }

func (r *memory) release() {
	if b := r.buf; b != nil {
		r.buf = nil
		b.release()
	}
}

// retain returns a second reference to the buffer.
func (r *memory) retain() memory {
	if r.buf != nil {
		r.buf.refs.Add(1)
	}
	return *r
}

// hasRoom reports whether payload lies in the buffer with that many bytes before and after it,
// and r is the only reference to the buffer.
func (r *memory) hasRoom(payload []byte, before, after int) bool {
	b := r.buf
	return b != nil && len(payload) > 0 && r.off >= before && r.off+len(payload)+after <= len(b.Bytes) &&
		b.refs.Load() == 1 && &b.Bytes[r.off] == &payload[0]
}

// plainFrames is the FrameSource of composites without Config.Frames.
type plainFrames struct{ headroom int }

func (s plainFrames) Acquire(n int) Frame {
	return NewBuffer(make([]byte, s.headroom+n), nil).Frame(0, s.headroom, n)
}

// FrameSource supplies memory for outgoing frames. Acquire returns a frame with n bytes of
// Data and the link's headroom in front of them; without Data if there is no memory now.
type FrameSource interface {
	Acquire(n int) Frame
}

// acquire returns a frame with n bytes of Data; ok is false if there is no memory now.
func acquire(from FrameSource, n int) (f Frame, ok bool) {
	ok = acquireTo(&f, from, n)
	return f, ok
}

// acquireTo sets f to a frame with n bytes of Data. It returns false, and an empty frame, if there
// is no memory now.
func acquireTo(f *Frame, from FrameSource, n int) (ok bool) {
	*f = from.Acquire(n)
	if len(f.Data) < n {
		f.Release()
		*f = Frame{}
		return false
	}
	f.Data = f.Data[:n]
	return true
}

// Link is a physical layer. Send and Recv may be called at the same time from different
// goroutines, Send from several. After Close, Recv returns net.ErrClosed within bounded time.
type Link interface {
	FrameSource
	// Caps returns the link's capabilities in mode m.
	Caps(m Mode) Caps
	// Offer returns this end's context for the peer of that name (UDP: addresses and port;
	// InfiniBand: LID, GID, QPN, PSN). The control channel carries it to the peer.
	Offer(peer string) ([]byte, error)
	// Accept takes the other end's offer and returns the address to which frames may be sent
	// afterwards. It returns the same address for the same offer.
	Accept(remote []byte) (LinkAddr, error)
	// Send takes a prefix of batch, returns its length n and releases those frames. It never
	// blocks. n < len(batch) without an error: the link is full; try again after Writable.
	Send(batch []Frame) (n int, err error)
	// Writable calls f once, from any goroutine, when a full link can take frames again.
	Writable(f func())
	// Recv blocks until at least one frame has arrived, fills a prefix of batch and returns its
	// length. The caller does not write to the frames, which may lie in memory of another process,
	// and releases them soon: one that is kept may hold up those behind it. The link counts and
	// discards frames from addresses that were not accepted.
	Recv(batch []Frame) (n int, err error)
	Close() error
}

// Reserver is an optional interface of links that send a Body without a copy if it lies in memory of theirs (shm: the
// memory that the other end reads; ib: memory registered with the adapter).
type Reserver interface {
	// Reserve returns n bytes for the Body of a frame to a peer with that many header bytes; nil if the link has none
	// for such a frame now, or if a copy is faster. value is the frame's Value. The memory stays valid until
	// Unreserve, also after Close. Once a frame with this Body was sent, the memory must not be written to.
	Reserve(peer LinkAddr, m Mode, value uint64, header, n int) []byte
	// Unreserve returns memory of Reserve.
	Unreserve(b []byte)
}

// Connected is an optional interface of links that keep a connection with each peer (ib:
// queue pairs), which may go down and come back.
type Connected interface {
	// Watch calls f, from any goroutine, when the link or the connection with a peer goes down
	// or comes back. f must not block and must not call the link. A second call replaces f.
	Watch(f func(LinkEvent))
	// Forget closes the connection with a peer and frees its resources. Frames may be sent to
	// the peer again after another Offer and Accept.
	Forget(peer LinkAddr)
}

// LinkEvent reports that a link, or its connection with a peer, went down or came back.
type LinkEvent struct {
	Peer LinkAddr // 0: the link itself (its port or device), and so every connection
	Up   bool
	Err  error // the reason why it went down
	// Route, if not empty, says over which of several routes frames go to the peer, and which are down. With Err, they
	// left one that is down: frames under way may be lost.
	Route string
}
