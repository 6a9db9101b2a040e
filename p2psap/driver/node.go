package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// NoTimeout makes WaitAny wait without a limit.
const NoTimeout = time.Duration(1<<63 - 1)

// Node is a peer in real time. Its methods may be called from any goroutine.
type Node struct {
	config   Config
	log      zerolog.Logger
	start    time.Time
	listener net.Listener
	alarm    *alarm
	dialling context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
	done     chan struct{}

	mu       sync.Mutex // guards what follows, and the core
	core     *p2psap.Node
	rails    []*railEnd // as in Config.Rails
	conns    map[p2psap.ConnID]*connection
	sockets  map[p2psap.SessionID]*Socket
	lastConn p2psap.ConnID
	dialErrs map[string]error
	outputs  []p2psap.Output
	armed    microproto.Instant
	closing  bool // Close has been called
	aborted  bool // Abort has been called
	closed   bool // nothing works any more
	lost     error
	arrived  bool    // something happened since WaitAny returned
	waiters  waiters // of WaitAny
	look     looker

	byRail bool // what came last came by another rail than the base rail

	batch     int                // frames worth gathering
	gathering bool               // the next flush waits for company
	flushBy   microproto.Instant // for so long
	news      waiters            // of Connect and Close
	free      []*waiter
	stats     Stats

	pending *Pending // accepted connections whose handshake is not over

	looking atomic.Bool                 // a caller takes in what comes
	atLink  atomic.Int64                // and waits for it, since that Instant; 0: does not
	pumped  [pumpBatch]microproto.Frame // by it
	dueAt   atomic.Int64                // when the core has something to do, an Instant
}

// Stats counts what the shell saw. See p2psap.NodeCounters for what the core
// refused.
type Stats struct {
	p2psap.NodeCounters
	LinkErrors     uint64 // frames that the link refused with an error
	LinkFull       uint64 // times it was full
	ControlOut     uint64 // control messages handed to a connection
	ControlGarbage uint64 // connections closed for a message longer than allowed
	LinkWakes      uint64 // times that the link's goroutine was woken
	TimerWakes     uint64 // times that the timer's goroutine was woken

	// Accepted connections that never became control connections of an Identity:
	HandshakesRefused   uint64 // did not know the run's secret, or spoke no TLS 1.3
	HandshakesTimedOut  uint64 // did not come to the point in time
	HandshakesDisplaced uint64 // were the oldest of too many
}

// New starts a node. It owns the link from then on, also when it fails: Close
// closes it.
func New(c Config) (*Node, error) {
	fail := func(err error) (*Node, error) {
		_ = c.closeLinks()
		return nil, err
	}
	cc, err := c.core()
	if err != nil {
		return fail(err)
	}
	n := &Node{
		config: c, log: c.Log, start: time.Now(), done: make(chan struct{}), armed: microproto.Never,
		pending: NewPending(c.handshakes()), conns: map[p2psap.ConnID]*connection{}, sockets: map[p2psap.SessionID]*Socket{}, dialErrs: map[string]error{},
	}
	cc.SameHost = n.here
	if n.core, err = p2psap.NewNode(cc); err != nil {
		return fail(err)
	}
	if n.listener, err = c.listen(); err != nil {
		return fail(err)
	}
	if n.alarm, err = newAlarm(); err != nil {
		_ = n.listener.Close()
		return fail(err)
	}
	if c.Plain {
		n.log.Warn().Str("node", c.Name).Stringer("control", n.listener.Addr()).Msg("this node is unprotected (Plain): whoever reaches its ports can take part in the run, read and change what it sends")
	}
	n.initLook()
	n.addRails()
	n.batch, n.flushBy = c.Rails[0].Link.Caps(microproto.ModeSynchronous).Batch, microproto.Never
	n.dialling, n.stop = context.WithCancel(context.Background())
	n.running.Add(2 + len(n.rails))
	for _, e := range n.rails[1:] {
		go e.receive()
	}
	go n.receive()
	go n.keepTime()
	go n.accept()
	return n, nil
}

// ControlAddr is the address at which the control channel listens. With an
// unspecified host it is for the caller to say which of the host's to use.
func (n *Node) ControlAddr() net.Addr { return n.listener.Addr() }

// Stats returns the counters.
func (n *Node) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	s.NodeCounters = n.core.Counters()
	return s
}

// now is the time since the node started; never 0.
func (n *Node) now() microproto.Instant { return microproto.Instant(time.Since(n.start)) + 1 }

// leave carries out what the core wants and unlocks. Every entry into the core
// ends with it.
func (n *Node) leave() {
	n.settle()
	n.mu.Unlock()
}

func (n *Node) settle() {
	n.flush()
	n.outputs = n.core.Drain(n.outputs[:0])
	for i := range n.outputs {
		n.carryOut(&n.outputs[i])
	}
	clear(n.outputs)
	d := n.alarmAt()
	if d < n.armed && !n.closed {
		n.armed = d
		n.alarm.set(d.Sub(n.now()))
	}
}

// flush gives the link what it takes.
func (n *Node) flush() {
	if n.gathering {
		n.gathering = false
		return
	}
	if n.flushBy != microproto.Never {
		n.flushBy = microproto.Never
		if now := n.now(); !n.core.Flush(now) {
			n.flushBy = now.Add(grace)
		}
	}
	for _, e := range n.rails {
		e.flush()
	}
}

// receive drains the base rail always: a full kernel queue drops the newest datagrams,
// which is the wrong end for asynchronous iterations.
func (n *Node) receive() {
	defer n.running.Done()
	link := n.rails[0].link
	recv := link.Recv
	if l, ok := link.(joiner); ok {
		recv = l.RecvTrains
	}
	batch := make([]microproto.Frame, 64)
	for {
		k, err := recv(batch)
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				n.log.Error().Err(err).Str("node", n.config.Name).Msg("link receiver stopped")
			}
			return
		}
		n.mu.Lock()
		n.stats.LinkWakes++
		n.byRail = false
		now := n.now()
		for i := range batch[:k] {
			if n.closed {
				batch[i].Release()
			} else {
				n.core.Input(now, 0, batch[i])
			}
			batch[i] = microproto.Frame{}
		}
		n.runDue(now)
		aside := n.standAside()
		n.leave()
		if aside {
			<-n.look.resume
		}
	}
}

// keepTime runs the core's timers and the waiters' time-outs.
func (n *Node) keepTime() {
	defer n.running.Done()
	for n.alarm.wait() == nil {
		n.mu.Lock()
		n.stats.TimerWakes++
		n.armed = microproto.Never
		now := n.now()
		n.keepRails(now)
		if !n.closed {
			n.core.Advance(now)
		}
		n.waiters.expire(now)
		n.expireLook(now)
		n.leave()
	}
}

// Connect makes a conversation with a peer whose control channel listens at addr;
// addr may be "" when the peer is known to call. Both ends may call it, and more
// than once. It blocks until the peer has answered, refused (*p2psap.RefusedError),
// or ctx has ended; then the error tells why the last attempt failed.
func (n *Node) Connect(ctx context.Context, peer, addr string) error {
	n.mu.Lock()
	defer n.leave()
	if n.closing {
		return p2psap.ErrClosed
	}
	if err := n.core.Connect(n.now(), peer, addr); err != nil {
		return err
	}
	for {
		state, err := n.core.Peer(peer)
		switch {
		case n.closed:
			return p2psap.ErrClosed
		case state == p2psap.PeerUp:
			return nil
		case state != p2psap.PeerNew:
			return err
		}
		if err := n.block(ctx, &n.news, microproto.Never); err != nil {
			_, last := n.core.Peer(peer) // why it is not up yet
			if failed := n.dialErrs[peer]; failed != nil {
				last = failed
			}
			if last != nil {
				return fmt.Errorf("driver: connect to peer %q at %s: %w (last attempt: %w)", peer, addr, err, last)
			}
			return fmt.Errorf("driver: connect to peer %q at %s: %w", peer, addr, err)
		}
	}
}

// Open opens a session with a peer that is connected. Both ends open the same
// name; it blocks until they have agreed, the peer refuses, or ctx has ended.
func (n *Node) Open(ctx context.Context, peer string, o p2psap.OpenOptions) (*Socket, error) {
	n.mu.Lock()
	defer n.leave()
	if n.closing {
		return nil, p2psap.ErrClosed
	}
	id, err := n.core.Open(n.now(), peer, o)
	if err != nil {
		return nil, err
	}
	s := &Socket{node: n, id: id}
	n.sockets[id] = s
	for {
		state, err := n.core.State(id)
		switch {
		case n.closed:
			return nil, p2psap.ErrClosed
		case state == p2psap.SessionOpen || state == p2psap.SessionRemoteClosed:
			return s, nil
		case state == p2psap.SessionEnded:
			n.release(s)
			return nil, err
		}
		if err := n.block(ctx, &s.waiters, microproto.Never); err != nil {
			n.release(s)
			return nil, fmt.Errorf("driver: open session %q with %q (%v): %w", o.Name, peer, state, err)
		}
	}
}

// WaitAny blocks until something has happened on any session since it last
// returned: an arrival, an acceptance, room to send, an end; or until the time-out
// has passed (at once when it is 0 or less; NoTimeout: no limit). All of these
// return nil. A *p2psap.PeerLostError is returned, always again, once a peer of
// this node is lost. For one goroutine at a time.
func (n *Node) WaitAny(ctx context.Context, timeout time.Duration) error {
	n.mu.Lock()
	defer n.leave()
	until := microproto.Never
	if now := n.now(); timeout < time.Duration(microproto.Never.Sub(now)) {
		until = now.Add(max(timeout, 0))
	}
	for {
		switch {
		case n.closed:
			return p2psap.ErrClosed
		case n.lost != nil:
			return n.lost
		case n.arrived:
			n.arrived = false
			return nil
		case n.now() >= until:
			return nil
		}
		if err := n.block(ctx, &n.waiters, until); err != nil {
			return err
		}
	}
}
