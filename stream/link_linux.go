package stream

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/buffers"
	"github.com/p2pdc/p2pdc/internal/readiness"
	"github.com/p2pdc/p2pdc/microproto"
)

// Link is one end of the connections of a process. All methods may be called from several goroutines at once;
// concurrent calls of Recv run one after the other.
type Link struct {
	config   Config
	self     offer // the fields that all offers share
	listener net.Listener
	pool     buffers.Pool
	count    counters
	closed   atomic.Bool
	hands    chan struct{}   // one for each connection that is not authenticated yet
	open     context.Context // ends with Close
	end      context.CancelFunc

	// Locked in this order. The state of a peer changes under both.
	mu       sync.Mutex // peers and sending
	rx       sync.Mutex // receiving
	peers    []*peer    // by link address − 1; nil: forgotten
	named    map[string]*peer
	watch    func(microproto.LinkEvent)
	send     vectors
	full     *peer    // whose connection stopped Send
	waiters  []func() // given to Writable
	awaiting bool     // awaitRoom runs

	// readable is an epoll descriptor with the connections of all peers; waits watches it.
	readable      *os.File
	raw           syscall.RawConn // of readable
	wakeRequested atomic.Bool
	waits         readiness.Watch
	wait          readiness.Wait
	waitMu        sync.Mutex // held while waiting
	active        []*peer    // connected; guarded by rx
	first         int        // of active, to be read first
	ready         []unix.EpollEvent
	descriptor    int // of readable
}

var (
	_ microproto.Link         = (*Link)(nil)
	_ microproto.Connected    = (*Link)(nil)
	_ microproto.PollableLink = (*Link)(nil)
	_ microproto.WaitableLink = (*Link)(nil)
)

var errClosed = fmt.Errorf("stream: %w", net.ErrClosed)

// Usable returns nil: this system has what the link needs.
func Usable() error { return nil }

// Open listens, unless Config.ListenLate.
func Open(c Config) (*Link, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Link{
		config: c, named: map[string]*peer{}, hands: make(chan struct{}, maxHandshakes),
		ready: make([]unix.EpollEvent, 16),
	}
	l.open, l.end = context.WithCancel(context.Background())
	largest := c.bufferBytes()
	l.pool.Init(buffers.Sizes(largest), max(c.BufferBytes, 4*largest), l.waits.Wake)
	if err := l.setUp(); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Link) listen() (err error) {
	if l.listener, err = l.config.listen(); err != nil {
		return err
	}
	go l.serve(l.listener)
	return nil
}

func (l *Link) setUp() (err error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	l.self = offer{name: l.config.Name, group: l.config.Group, offerFields: offerFields{
		Version: offerVersion, FrameBytes: uint32(l.config.FrameBytes), Incarnation: binary.BigEndian.Uint64(random[:]),
	}}
	if l.descriptor, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("stream: epoll_create1: %w", err)
	}
	l.readable = os.NewFile(uintptr(l.descriptor), "epoll")
	if err = l.waits.Open(l.descriptor, unix.EPOLLIN); err != nil {
		return fmt.Errorf("stream: watch the connections: %w", err)
	}
	if l.raw, err = l.readable.SyscallConn(); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	l.wait.Init(l.raw, &l.waits, func(uintptr) bool { return l.arrived() })
	if l.config.ListenLate {
		return nil
	}
	return l.listen()
}

// gatherBytes is the payload size from which a frame's Body may stay in the user's memory.
const gatherBytes = 2 << 10

// Caps implements microproto.Link. Frames arrive exactly once and in order, in either mode: a lost packet delays every
// newer value of an asynchronous session behind it, so these should use the link only where no other works.
func (l *Link) Caps(microproto.Mode) microproto.Caps {
	return microproto.Caps{
		MTU: l.config.FrameBytes, Batch: 16, Gather: gatherBytes, Reliable: true, Ordered: true, ConnectsLater: true,
	}
}

// Acquire returns a frame over pooled memory, or over other memory when the pool is exhausted. It panics if n is
// larger than any frame.
func (l *Link) Acquire(n int) microproto.Frame {
	if n > l.config.FrameBytes {
		panic(fmt.Sprintf("stream: frame of %d bytes: larger than Caps.MTU", n))
	}
	b := l.pool.Get(n, false)
	if b == nil {
		b = microproto.NewBuffer(make([]byte, n), nil)
	}
	return b.Frame(0, 0, n)
}

// Close closes the link and its connections. Frames already received stay valid until released.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.end()
	unlock := l.lockAll()
	if l.listener != nil {
		_ = l.listener.Close()
	}
	for _, p := range l.peers {
		if p != nil {
			l.remove(p)
		}
	}
	unlock()
	l.waits.Close()
	if l.readable != nil {
		_ = l.readable.Close()
	}
	l.callWritable()
	return nil
}

func (l *Link) lockAll() (unlock func()) {
	l.mu.Lock()
	l.rx.Lock()
	return func() {
		l.rx.Unlock()
		l.mu.Unlock()
	}
}

// Watch implements microproto.Connected. Events report connections that go down; a new Offer and Accept make
// another.
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

// closedError returns net.ErrClosed for errors that Close causes.
func (l *Link) closedError(err error) error {
	if err != nil && (l.closed.Load() || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed)) {
		return errClosed
	}
	return err
}
