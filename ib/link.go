package ib

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/internal/buffers"
	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
)

// Link is an adapter's port as a microproto.Link. All methods may be called from several
// goroutines at once; concurrent calls of Recv run one after the other.
type Link struct {
	config   Config
	device   verbs.Device
	domain   verbs.Domain
	channel  verbs.Channel
	receives verbs.CompletionQueue // raises events on channel
	sends    verbs.CompletionQueue // polled on demand only
	memory   *memory
	buffers  buffers.Pool // unregistered memory of BlockBytes each, for copies of received frames
	port     port
	self     offer // the fields that all offers share
	count    counters

	signalEvery   int // of so many requests the last one is signaled
	closed        atomic.Bool
	done          chan struct{} // closed by Close
	keyGeneration atomic.Uint32 // of the keys of pairs

	rx                 sync.Mutex // guards receiving; locked before mu
	arrivals           fifo.Queue[arrival]
	receiveCompletions [32]verbs.Completion

	waitMu        sync.Mutex // held while waiting at channel
	receivers     atomic.Int32
	wakeRequested atomic.Bool
	wakeup        chan struct{} // ends a wait after the device has failed

	mu              sync.Mutex
	userMemory      userMemory
	peers           []*peer // by link address − 1; nil: forgotten
	named           map[string]*peer
	pairs           []*pair // by share; changed under rx and mu
	readyPairs      []*pair // may have requests to post
	fullPair        *pair   // whose full queue stopped Send
	starvedPairs    int
	sendCompletions [32]verbs.Completion
	generation      uint32 // of offers
	downErr         error  // of the port or the device
	progressTimer   *time.Timer
	progressArmed   atomic.Bool

	writableMu        sync.Mutex
	writableCallbacks []func()
	anyCreditOwed     atomic.Bool // a peer has creditOwed set
	events            eventNotifier
}

var (
	_ microproto.Link      = (*Link)(nil)
	_ microproto.Connected = (*Link)(nil)
)

var errClosed = fmt.Errorf("ib: %w", net.ErrClosed)

// Open opens a port and registers the link's memory. The error names what is missing: the
// library, the kernel's drivers, a device, an active port, or locked memory.
func Open(c Config) (*Link, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Link{
		config: c, done: make(chan struct{}), wakeup: make(chan struct{}, 1),
		named: map[string]*peer{}, pairs: make([]*pair, 2*c.Peers),
		signalEvery: max(1, min(postBatch, c.SendBlocks/(8*c.Peers))),
	}
	l.progressTimer = time.AfterFunc(time.Hour, l.progress)
	l.progressTimer.Stop()
	if l.device, l.port, err = openPort(c.provider(), c); err != nil {
		return nil, err
	}
	if err := l.setUp(); err != nil {
		return nil, errors.Join(err, l.tearDown())
	}
	go l.watchDevice()
	return l, nil
}

func (l *Link) setUp() (err error) {
	c := &l.config
	limits, err := l.device.Limits()
	if err != nil {
		return fmt.Errorf("ib: device %s: %w", l.device.Name(), err)
	}
	if n := max(c.sendDepth(), c.receivesPerPair()); n > limits.PairRequests {
		return fmt.Errorf("ib: device %s allows %d outstanding requests per queue pair, "+
			"but %d receive blocks for %d peers need %d: "+
			"register fewer blocks, or allow more peers", l.device.Name(), limits.PairRequests, c.ReceiveBlocks, c.Peers, n)
	}
	if l.domain, err = l.device.AllocDomain(); err != nil {
		return err
	}
	if l.memory, err = newMemory(l.domain, c); err != nil {
		return err
	}
	l.buffers.Init([]int{c.BlockBytes}, max(c.BufferBytes, 4*c.BlockBytes), l.wakeReceiver)
	l.arrivals.Reserve(2 * c.Peers * c.receivesPerPair())
	if l.channel, err = l.device.CreateChannel(); err != nil {
		return err
	}
	pairs := 2 * c.Peers
	if l.receives, err = l.device.CreateQueue(pairs*c.receivesPerPair(), l.channel); err != nil {
		return err
	}
	if l.sends, err = l.device.CreateQueue(pairs*c.sendDepth(), nil); err != nil {
		return err
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	l.generation = binary.BigEndian.Uint32(b[8:]) >> 1
	l.self = offer{name: c.Name, offerFields: offerFields{
		Version: offerVersion, BlockBytes: uint32(c.BlockBytes), Credit: uint16(c.frameCredit()),
		Incarnation: binary.BigEndian.Uint64(b[:]),
	}}
	l.port.describe(&l.self)
	return nil
}

// Caps implements microproto.Link. Frames of synchronous sessions arrive exactly once and in
// order. Frames of asynchronous sessions arrive in order, unless the network loses them.
func (l *Link) Caps(m microproto.Mode) microproto.Caps {
	c := microproto.Caps{MTU: l.config.BlockBytes, Batch: postBatch, Ordered: true}
	c.Reliable = m != microproto.ModeAsynchronous
	if c.Reliable {
		c.Gather = gatherBytes
	}
	return c
}

// gatherBytes is the size from which a second element is cheaper than a copy.
const gatherBytes = 1024

// Close closes the link. Frames already received stay valid until released, and reserved memory until Unreserve.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	close(l.done)
	l.channel.Wake()
	l.waitMu.Lock() // no goroutine waits at the channel any more
	defer l.waitMu.Unlock()
	defer l.lockAll()()
	l.progressTimer.Stop()
	l.events.close()
	err := l.tearDown()
	l.callWritable()
	return err
}

// tearDown closes what is open, in the order that the adapter requires.
func (l *Link) tearDown() error {
	var err error
	for i, p := range l.peers {
		if p != nil {
			err = errors.Join(err, p.close())
			l.peers[i] = nil
		}
	}
	clear(l.named)
	err = errors.Join(err, l.userMemory.close())
	if l.memory != nil {
		err = errors.Join(err, l.memory.close())
	}
	for _, q := range [...]verbs.CompletionQueue{l.receives, l.sends} {
		if q != nil {
			err = errors.Join(err, q.Close())
		}
	}
	if l.channel != nil {
		err = errors.Join(err, l.channel.Close())
	}
	if l.domain != nil {
		err = errors.Join(err, l.domain.Close())
	}
	return errors.Join(err, l.device.Close())
}

func (l *Link) log(format string, args ...any) {
	if l.config.Log != nil {
		l.config.Log(fmt.Sprintf(format, args...))
	}
}
