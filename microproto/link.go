package microproto

import "sync/atomic"

// Mode is the communication mode of a session, decided by the policy from the
// scheme of iteration; a physical link may offer different capabilities in each.
type Mode uint8

// The two modes of communication of Table I.
const (
	ModeSynchronous Mode = iota + 1
	ModeAsynchronous
)

// String returns "sync" or "async", the words of the program's flags.
func (m Mode) String() string {
	switch m {
	case ModeSynchronous:
		return "sync"
	case ModeAsynchronous:
		return "async"
	}
	return "mode?"
}

// Caps are what a link offers in one mode. MTU is the largest frame in bytes,
// link headers excluded; Headroom the bytes that the link wants free in front of
// Frame.Data; Batch the number of frames worth gathering before a Send.
type Caps struct {
	MTU, Headroom, Batch int
	// Train is the most bytes of frames that the link takes as one, see
	// Frame.Segment; 0: it takes them one by one.
	Train int
	// Gather is the least bytes of payload for which the link likes frames with a Body,
	// 0: it takes none.
	Gather int
	// Reliable: every accepted frame arrives, once. Ordered: in the order sent.
	Reliable, Ordered bool
}

// LinkAddr names a remote end of one link. It is chosen by the link in Accept and
// means nothing outside it. 0 is never a remote end.
type LinkAddr uint32

// Frame is one datagram: a header and payload on their way between a composite
// and a link. Data aliases a Buffer that several frames may share (one GRO
// receive); whoever is done with a frame calls Release exactly once.
type Frame struct {
	Peer LinkAddr
	Data []byte
	// Segment, if it is not 0, says that Data is several frames, one behind the
	// other: of Segment bytes each but the last, which may be shorter.
	Segment int
	// Body, if it is not nil, has the payloads of the frames, one behind the other, and
	// Data only their headers, of Header bytes each. It is memory of the user who sends,
	// and nobody reads it after the link's Send has returned, or taken the frame over
	// (see Flatten); but for memory that the link itself has registered for the user, of
	// which a reliable link reads until the other end has the frame.
	Body   []byte
	Header int
	// Mode is that of the session; a link that serves the modes apart (ib: by a
	// reliable and an unreliable queue pair) sends by it. 0: control, as synchronous.
	Mode Mode
	// Value, if it is not 0, names the asynchronous value that the frame carries a
	// part of: a link that lets frames wait may put a newer frame of the same Value
	// and Peer in the place of one that waits.
	Value uint64
	buf   *Buffer
	off   int // of Data in buf.Bytes, when the frame was made
}

// Buffer is the reference-counted memory behind frames.
type Buffer struct {
	Bytes []byte // the whole allocation
	refs  atomic.Int32
	free  func(*Buffer) // called when the last frame is released; may be nil
}

// NewBuffer wraps b; free, if not nil, is called when the last reference goes.
func NewBuffer(b []byte, free func(*Buffer)) *Buffer { return &Buffer{Bytes: b, free: free} }

// Frame returns a frame over Bytes[off:off+n] and takes a reference. The bytes
// before off are the frame's headroom.
func (b *Buffer) Frame(peer LinkAddr, off, n int) Frame {
	b.refs.Add(1)
	return Frame{Peer: peer, Data: b.Bytes[off : off+n : off+n], buf: b, off: off}
}

// Release gives the frame's reference back. Releasing a frame without a buffer
// (a zero frame, or one made from plain bytes) does nothing.
func (f *Frame) Release() {
	b := f.buf
	f.buf, f.Data, f.Body = nil, nil, nil
	if b == nil {
		return
	}
	switch n := b.refs.Add(-1); {
	case n == 0:
		if b.free != nil {
			b.free(b)
		}
	case n < 0:
		panic("microproto: frame released twice")
	}
}

// Retain returns a second frame over the same bytes, holding its own reference.
func (f Frame) Retain() Frame {
	if f.buf != nil {
		f.buf.refs.Add(1)
	}
	return f
}

// Slice narrows the frame to Data[from:to]. What lay in front and behind stays as
// room for a header and a trailer of the composite below. The reference goes over to
// the frame returned.
func (f Frame) Slice(from, to int) Frame {
	f.Data = f.Data[from:to]
	if f.off >= 0 {
		f.off += from
	}
	return f
}

// prepend returns a frame over payload and n free bytes before it, if payload lies
// in f's buffer with that much room in front and nobody else refers to the buffer.
func (f Frame) prepend(payload []byte, n int) (Frame, bool) {
	b := f.buf
	if b == nil || len(payload) == 0 || f.off < n || b.refs.Load() != 1 {
		return Frame{}, false
	}
	if f.off+len(payload) > len(b.Bytes) || &b.Bytes[f.off] != &payload[0] {
		return Frame{}, false
	}
	return b.Frame(f.Peer, f.off-n, n+len(payload)), true
}

// behind returns payload and n more bytes behind it, if payload lies in f's buffer
// with that much room and nobody else refers to the buffer; nil otherwise.
func (f Frame) behind(payload []byte, n int) []byte {
	b, end := f.buf, f.off+len(payload)+n
	if b == nil || len(payload) == 0 || f.off < 0 || end > len(b.Bytes) || b.refs.Load() != 1 || &b.Bytes[f.off] != &payload[0] {
		return nil
	}
	return b.Bytes[f.off:end:end]
}

// plainFrames is the FrameSource of composites that were given none.
type plainFrames struct{ headroom int }

func (s plainFrames) Acquire(n int) Frame {
	return NewBuffer(make([]byte, s.headroom+n), nil).Frame(0, s.headroom, n)
}

// FrameSource supplies memory for outgoing frames. Acquire returns a frame whose
// Data has length n (n ≤ the MTU) with the link's headroom in front.
type FrameSource interface {
	Acquire(n int) Frame
}

// Link is a physical layer as the transport sees it. Send and Recv may be called
// from different goroutines at once; Send from several. After Close, Recv returns
// net.ErrClosed within bounded time.
type Link interface {
	FrameSource
	// Caps tells what the link offers in mode m.
	Caps(m Mode) Caps
	// Offer returns this end's context for the peer of that name (udp: its
	// addresses and port; ib: LID, GID, QPN, PSN); the control channel carries it.
	Offer(peer string) ([]byte, error)
	// Accept takes the other end's offer; afterwards frames may be sent to the
	// address returned. The same offer accepted twice gives the same address.
	Accept(remote []byte) (LinkAddr, error)
	// Send takes a prefix of batch, never blocks, and returns how many frames it
	// took; it releases those. n < len(batch) with a nil error: the link is full,
	// try again after Writable fires.
	Send(batch []Frame) (n int, err error)
	// Writable calls f once, from any goroutine, when a full link can take
	// frames again.
	Writable(f func())
	// Recv blocks until at least one frame has come, fills a prefix of batch and
	// returns its length; the caller releases those frames. Peer is 0 for a frame
	// from an address that nobody accepted: counted by the link and never returned.
	Recv(batch []Frame) (n int, err error)
	Close() error
}

// Connected is implemented by links that keep a connection with each peer (ib: queue
// pairs), which may go down and come back.
type Connected interface {
	// Watch has f told, from any goroutine, when the link or the connection with a
	// peer goes down or comes back. f must not block and must not call the link; a
	// second call replaces it.
	Watch(f func(LinkEvent))
	// Forget gives the connection with a peer up and frees what it holds. Frames may
	// be sent to the peer again after another Offer and Accept.
	Forget(peer LinkAddr)
}

// LinkEvent tells that a link, or its connection with a peer, went down or came back.
type LinkEvent struct {
	Peer LinkAddr // 0: the link itself (its port, its device), and so every connection
	Up   bool
	Err  error // why it went down
}
