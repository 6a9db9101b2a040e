package shm

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/internal/buffers"
	"github.com/p2pdc/p2pdc/microproto"
)

// Link is one end of the connections of a process. All methods may be called from several goroutines at
// once; concurrent calls of Recv run one after the other.
type Link struct {
	config  Config
	layout  *layout
	self    offer // the fields that all offers share
	meeting meeting
	buffers buffers.Pool
	count   counters
	closed  atomic.Bool
	done    chan struct{} // closed by Close
	bell    chan struct{} // of capacity 1; wakes the receiver

	waitMu        sync.Mutex // held while waiting
	wakeRequested atomic.Bool

	// Locked in this order. peers and the state of a peer change under all three.
	mu     sync.Mutex
	rx     sync.Mutex // receiving
	tx     sync.Mutex // sending
	peers  []*peer    // by link address − 1; nil: forgotten
	named  map[string]*peer
	tokens map[token]*peer // by that of this end's offer
	watch  func(microproto.LinkEvent)

	active []*peer // connected; guarded by rx
	first  int     // of active, to be read first
	sleep  uint64  // generation; guarded by rx
	asleep bool    // guarded by rx

	retired []retiredOutbox // guarded by tx

	full *peer // whose lane stopped Send; guarded by tx
	// stopped is the number of lines that the frame needs that did not fit.
	stopped uint64

	writableMu sync.Mutex
	writable   []func()
	waiting    atomic.Bool // writable is not empty
}

// meeting brings the two ends of a connection together.
type meeting interface {
	// start is called when both offers are known. The locks are held.
	start(p *peer)
	close()
}

// bell wakes the other end of a connection, and never blocks.
type bell interface {
	ring()
	close()
}

var (
	_ microproto.Link         = (*Link)(nil)
	_ microproto.Connected    = (*Link)(nil)
	_ microproto.PollableLink = (*Link)(nil)
	_ microproto.WaitableLink = (*Link)(nil)
)

var errClosed = fmt.Errorf("shm: %w", net.ErrClosed)

// Open opens a link. The error names what the host lacks.
func Open(c Config) (*Link, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Link{
		config: c, layout: newLayout(c.sizes()), done: make(chan struct{}), bell: make(chan struct{}, 1),
		named: map[string]*peer{}, tokens: map[token]*peer{},
	}
	largest := l.layout.largest()
	l.buffers.Init(buffers.Sizes(largest), max(c.BufferBytes, 4*largest), l.wakeReceiver)
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	l.self = offer{name: c.Name, group: c.Group, offerFields: offerFields{
		Version: layoutVersion, Sizes: c.sizes(), Incarnation: binary.BigEndian.Uint64(random[:]),
	}}
	if c.Memory != nil {
		c.Memory.join(l)
		return l, nil
	}
	if err := Usable(); err != nil {
		return nil, err
	}
	if l.self.Host, l.self.User, err = identify(); err != nil {
		return nil, err
	}
	if l.meeting, l.self.socket, err = listen(l); err != nil {
		return nil, err
	}
	return l, nil
}

// Caps implements microproto.Link. Frames of synchronous sessions arrive exactly once and in order, those
// of asynchronous sessions unless a newer one replaces them.
func (l *Link) Caps(m microproto.Mode) microproto.Caps {
	c := microproto.Caps{MTU: l.config.FrameBytes, Batch: 16, Gather: gatherBytes, Reliable: true, Ordered: true, ReadOnly: true}
	if m == microproto.ModeAsynchronous {
		c.MTU, c.Reliable, c.Ordered = l.config.ValueBytes, false, false
	}
	return c
}

// gatherBytes is the size from which copying a header and a payload one by one is cheaper than copying the
// payload twice.
const gatherBytes = 256

// Close closes the link and its connections. Frames already received stay valid until released.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	close(l.done)
	l.meeting.close()
	unlock := l.lockAll()
	for _, p := range l.peers {
		if p != nil {
			l.remove(p)
		}
	}
	unlock()
	l.callWritable()
	return nil
}

// lockAll locks everything, and returns the function that unlocks it.
func (l *Link) lockAll() (unlock func()) {
	l.mu.Lock()
	l.rx.Lock()
	l.tx.Lock()
	return func() {
		l.tx.Unlock()
		l.rx.Unlock()
		l.mu.Unlock()
	}
}

// Watch implements microproto.Connected. Events report connections that go down; a new Offer and Accept
// make another.
func (l *Link) Watch(f func(microproto.LinkEvent)) {
	l.mu.Lock()
	l.watch = f
	l.mu.Unlock()
}

func (l *Link) log(format string, args ...any) {
	if l.config.Log != nil {
		l.config.Log(fmt.Sprintf(format, args...))
	}
}
