package driver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// NoTimeout makes WaitAny wait without a limit.
const NoTimeout = time.Duration(1<<63 - 1)

// Node is a peer in real time. Its methods may be called from any goroutine.
type Node struct {
	config    Config
	log       *slog.Logger
	start     time.Time
	listener  net.Listener
	alarm     *alarm
	dialling  context.Context
	stop      context.CancelFunc
	running   sync.WaitGroup
	drainTime time.Duration // of control connections; see drain
	// compareTime bounds the measurement of a comparison of rails, by the clock compareNow.
	compareTime time.Duration
	compareNow  func() time.Time
	done        chan struct{}

	mu         sync.Mutex // guards what follows, and the core
	core       *p2psap.Node
	rails      []*railPort // as in Config.Rails
	conns      map[p2psap.ConnID]*connection
	sockets    map[p2psap.SessionID]*Socket
	lastConn   p2psap.ConnID
	dialErrs   map[string]error
	firstTrips map[string]time.Duration // of TCP, by peer
	comparing  map[string]bool          // peers to which rails are being compared
	outputs    []p2psap.Output
	armed      microproto.Instant // the alarm is set for
	closing    bool               // Close was called
	aborted    bool               // Abort was called
	closed     bool               // nothing works any more
	lost       error              // of the first peer that was lost
	lostPeer   string
	activity   bool    // something happened since WaitAny returned
	anyWaiters waiters // of WaitAny
	progress   waiters // of Connect, Accept and Close
	free       []*waiter
	poll       poller
	stats      Stats

	batch     int                // frames worth a call of the link
	holdFlush bool               // the next flush waits for more messages
	flushBy   microproto.Instant // the coalescing buffers are flushed; Never: they are empty

	pending *Pending // accepted connections whose handshake is not over

	pumpAllAt microproto.Instant // when Pump looks again which links no session uses; for its goroutine

	polling       atomic.Bool  // a call receives
	awaitingSince atomic.Int64 // it has waited at the link since that Instant; 0: it does not
	dueAt         atomic.Int64 // the core's Deadline, an Instant
}

// cause returns the attribute of an error; an empty one, which handlers leave out, if there is none.
func cause(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.Any("error", err)
}

// Stats counts what the driver saw. See p2psap.NodeCounters for what the core refused.
type Stats struct {
	p2psap.NodeCounters
	LinkErrors     uint64 // frames that a link refused with an error
	LinkFull       uint64 // times that a link was full
	ControlOut     uint64 // control messages given to a connection
	ControlGarbage uint64 // connections closed for a message longer than allowed
	LinkWakes      uint64 // times that a link's goroutine was woken
	TimerWakes     uint64 // times that the timer's goroutine was woken

	// Accepted connections that never became control connections of an Identity:
	HandshakesRefused   uint64 // the other end did not know the run's secret, or spoke no TLS 1.3
	HandshakesTimedOut  uint64
	HandshakesDisplaced uint64 // closed to make room: the oldest of too many
}

// New starts a node. It owns the links from then on, also when it fails: Close closes them.
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
		config: c, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)).With("node", c.Name), start: time.Now(), done: make(chan struct{}),
		armed: microproto.Never, flushBy: microproto.Never, pending: NewPending(c.Limits.PendingHellos),
		conns: map[p2psap.ConnID]*connection{}, sockets: map[p2psap.SessionID]*Socket{}, dialErrs: map[string]error{},
		firstTrips: map[string]time.Duration{},
		comparing:  map[string]bool{},
		drainTime:  controlDrain, compareTime: compareTime, compareNow: time.Now,
	}
	cc.SameHost = n.sameHost
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
		n.log.Warn("this node is unprotected (Plain): whoever reaches its ports can take part in the run, "+
			"read and change what it sends", "control", n.listener.Addr().String())
	}
	n.addRails()
	n.initPoll()
	n.batch = c.Rails[0].Link.Caps(microproto.ModeSynchronous).Batch
	n.dialling, n.stop = context.WithCancel(context.Background())
	n.running.Add(len(n.rails) + 2)
	for _, r := range n.rails {
		go r.receive()
	}
	go n.keepTime()
	go n.accept()
	return n, nil
}

// ControlAddr returns the address at which the control channel listens. If its host is unspecified, the caller
// chooses one of the host's addresses.
func (n *Node) ControlAddr() net.Addr { return n.listener.Addr() }

// Stats returns the counters.
func (n *Node) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	s.NodeCounters = n.core.Counters()
	return s
}

// now returns the time since the node started; never 0.
func (n *Node) now() microproto.Instant { return microproto.Instant(time.Since(n.start)) + 1 }

// unlock carries the core's outputs out and unlocks. Every call of the core ends with it.
func (n *Node) unlock() {
	n.settle()
	n.mu.Unlock()
}

// settle carries the core's outputs out and sets the alarm.
func (n *Node) settle() {
	n.carry()
	d := n.nextAlarm()
	if d < n.armed && !n.closed {
		n.armed = d
		n.alarm.set(d.Sub(n.now()))
	}
}

// carry flushes the links and carries the core's outputs out.
func (n *Node) carry() {
	n.flush()
	n.outputs = n.core.Drain(n.outputs[:0])
	for i := range n.outputs {
		n.carryOut(&n.outputs[i])
	}
	clear(n.outputs)
}

// flush sends the coalescing buffers, and offers the links the frames that wait, unless more messages may join
// them.
func (n *Node) flush() {
	if n.holdFlush {
		n.holdFlush = false
		return
	}
	if n.flushBy != microproto.Never {
		n.flushBy = microproto.Never
		if now := n.now(); !n.core.Flush(now) {
			n.flushBy = now.Add(pollGrace)
		}
	}
	for _, r := range n.rails {
		r.flush()
	}
}

// coalesce makes the next flush wait if a Send left messages in the coalescing buffer: until their frames
// fill a batch, an earlier message is acknowledged, or anything else is done with the node, and for
// pollGrace at most. See p2psap.Node.SendCoalescing. The lock is held.
func (n *Node) coalesce(now microproto.Instant, waits bool) {
	if waits && n.flushBy == microproto.Never {
		n.flushBy = now.Add(pollGrace)
	}
	n.holdFlush = waits && n.core.Waiting(0) < n.batch
}

// keepTime runs the core's timers and the waiters' time-outs.
func (n *Node) keepTime() {
	defer n.running.Done()
	for n.alarm.wait() == nil {
		n.mu.Lock()
		n.stats.TimerWakes++
		n.armed = microproto.Never
		now := n.now()
		n.handleRails(now)
		if !n.closed {
			n.core.Advance(now)
		}
		n.anyWaiters.expire(now)
		n.expirePoll(now)
		n.unlock()
	}
}

// Connect associates with a peer whose control channel listens at addr, or at one of several addresses separated by
// commas; addr may be "" when the peer dials. Both
// ends may call it, and more than once; the end that is dialled need not. It blocks until the peer is up, does not
// match (*p2psap.RefusedError), or ctx has ended; then the error tells why the last attempt failed.
func (n *Node) Connect(ctx context.Context, peer, addr string) error {
	n.mu.Lock()
	defer n.unlock()
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
		case state == p2psap.PeerUp && !n.comparing[peer]:
			return nil
		case state != p2psap.PeerNew && state != p2psap.PeerUp:
			return err
		}
		if err := n.block(ctx, &n.progress, microproto.Never); err != nil {
			_, last := n.core.Peer(peer) // why it is not up yet
			if failed := n.dialErrs[peer]; failed != nil {
				last = failed
			}
			if trip := n.firstTrips[peer]; trip > 0 {
				err = fmt.Errorf("%w; the first round trip to it took %v", err, trip.Round(10*time.Microsecond))
			}
			if last != nil {
				return fmt.Errorf("driver: connect to peer %q at %s: %w (last attempt: %w)", peer, addr, err, last)
			}
			return fmt.Errorf("driver: connect to peer %q at %s: %w", peer, addr, err)
		}
	}
}

// Open opens a session with a peer that is connected. Both ends open the same name. It blocks until they have
// agreed, the two do not match, or ctx has ended.
func (n *Node) Open(ctx context.Context, peer string, o p2psap.OpenOptions) (*Socket, error) {
	if strings.HasPrefix(o.Name, p2psap.ReservedName) {
		return nil, fmt.Errorf("driver: session %q: names that begin with %q are those of the node's own sessions",
			o.Name, p2psap.ReservedName)
	}
	return n.open(ctx, peer, o)
}

func (n *Node) open(ctx context.Context, peer string, o p2psap.OpenOptions) (*Socket, error) {
	n.mu.Lock()
	defer n.unlock()
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

// Disconnect ends the association with a peer at both ends, and this end's sessions with it at once: close the sockets
// before, to have their transfers accepted. Of a peer that is lost it forgets that, and WaitAny no longer returns its
// error. Afterwards Connect associates with the peer anew, and the peer may do so. Disconnect does not block.
func (n *Node) Disconnect(peer string) error {
	n.mu.Lock()
	defer n.unlock()
	if n.closing {
		return p2psap.ErrClosed
	}
	if n.lostPeer == peer {
		n.lost, n.lostPeer = nil, ""
	}
	delete(n.dialErrs, peer)
	delete(n.firstTrips, peer)
	n.progress.signalAll()
	return n.core.Disconnect(n.now(), peer)
}

// Accept waits for a session that a peer has opened and this end has not. It returns the peer's name and the options
// with which Open opens the session here; their other fields may be changed before. The peer need not be named by
// Connect. Every session is returned once. Refuse refuses it; otherwise the peer's Open waits.
func (n *Node) Accept(ctx context.Context) (peer string, o p2psap.OpenOptions, err error) {
	return n.acceptNamed(ctx, func(string) bool { return true })
}

func (n *Node) acceptNamed(ctx context.Context, match func(name string) bool) (
	peer string, o p2psap.OpenOptions, err error,
) {
	n.mu.Lock()
	defer n.unlock()
	for {
		if n.closing {
			return "", o, p2psap.ErrClosed
		}
		if peer, o, ok := n.core.Accept(match); ok {
			return peer, o, nil
		}
		if err := n.block(ctx, &n.progress, microproto.Never); err != nil {
			return "", o, err
		}
	}
}

// Refuse refuses a session that a peer has opened and this end has not. The peer's Open fails with the reason.
func (n *Node) Refuse(peer, session, reason string) error {
	n.mu.Lock()
	defer n.unlock()
	return n.core.Refuse(peer, session, reason)
}

// WaitAny blocks until something has happened on any session since it last returned (an arrival, an acceptance,
// room to send, an end) or until the time-out has passed; then it returns nil. A time-out of 0 or less has passed
// at once; NoTimeout never does. Once a peer of this node is lost, every call returns its *p2psap.PeerLostError, until
// Disconnect forgets the peer.
// It is for one goroutine at a time.
func (n *Node) WaitAny(ctx context.Context, timeout time.Duration) error {
	n.mu.Lock()
	defer n.unlock()
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
		case n.activity:
			n.activity = false
			return nil
		case n.now() >= until:
			return nil
		}
		if err := n.block(ctx, &n.anyWaiters, until); err != nil {
			return err
		}
	}
}
