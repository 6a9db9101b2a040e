package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Rail is one of a node's links and the kind of network that it leads to.
type Rail struct {
	Network p2psap.Network
	Link    microproto.Link
	// Compare leaves the rail unused by sessions with a peer of the same cluster until the node has compared it with
	// the base rail and found it faster, which it does when the peer is connected. Set it at both ends.
	Compare bool
	// Standby and Synchronous are those of p2psap.Rail.
	Standby, Synchronous bool
}

// railPort runs a rail. A goroutine receives from it, unless a call that waits does; Pump helps both.
type railPort struct {
	node   *Node
	number int // index in Config.Rails
	link   microproto.Link

	full     bool        // the link takes nothing until writable; guarded by the node's lock
	writable atomic.Bool // the link has called back

	// The link's capabilities, nil if it lacks them. A link without waitable may reorder the frames that its
	// goroutine and Pump receive at the same time.
	waitable  microproto.WaitableLink
	pollable  microproto.PollableLink
	receiving sync.Mutex // taken before the node's lock; guards batch
	batch     []microproto.Frame

	unused bool // no session used the link when Pump looked last; for its goroutine

	// See poller.
	resume  chan struct{}      // unparks the goroutine; of capacity 1
	arrived microproto.Instant // of the last frames; guarded by the node's lock

	mu     sync.Mutex // guards events
	events []microproto.LinkEvent
}

// maxEvents bounds the events that the node has not handled. Beyond it the whole link counts as having been
// down.
const maxEvents = 256

func (n *Node) addRails() {
	for i, r := range n.config.Rails {
		p := &railPort{
			node: n, number: i, link: r.Link,
			batch: make([]microproto.Frame, pumpBatch), resume: make(chan struct{}, 1),
		}
		n.rails = append(n.rails, p)
		if l, ok := r.Link.(microproto.PollableLink); ok {
			if _, err := l.TryRecv(nil); !errors.Is(err, errors.ErrUnsupported) {
				p.pollable = l
			}
		}
		p.waitable, _ = r.Link.(microproto.WaitableLink)
		if l, ok := r.Link.(microproto.Connected); ok {
			l.Watch(p.onEvent)
		}
	}
}

// closeLinks closes the links of all rails, the base rail last.
func (c *Config) closeLinks() error {
	var errs []error
	for _, r := range slices.Backward(c.Rails) {
		if r.Link != nil {
			errs = append(errs, r.Link.Close())
		}
	}
	return errors.Join(errs...)
}

// onEvent notes an event of the link, which may be inside a call under the node's lock.
func (p *railPort) onEvent(event microproto.LinkEvent) {
	p.mu.Lock()
	if len(p.events) >= maxEvents {
		err := fmt.Errorf("driver: more than %d changes of the link at once", maxEvents)
		p.events = append(p.events[:0], microproto.LinkEvent{Err: err}, microproto.LinkEvent{Up: true})
	}
	p.events = append(p.events, event)
	p.mu.Unlock()
	p.node.alarm.ring()
}

// onWritable may be called by the link from anywhere, even from inside Writable: it only wakes the timer's
// goroutine. A call that polls flushes without it.
func (p *railPort) onWritable() {
	p.writable.Store(true)
	if n := p.node; !n.polling.Load() || n.awaitingSince.Load() != 0 {
		n.alarm.ring()
	}
}

// handleRails handles what the links have reported. The lock is held.
func (n *Node) handleRails(now microproto.Instant) {
	for _, p := range n.rails {
		for {
			p.mu.Lock()
			events := p.events
			p.events = nil
			p.mu.Unlock()
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				if !n.closed {
					n.core.RailEvent(now, p.number, e)
				}
			}
		}
	}
}

// flush offers the link the frames that wait for it. The lock is held.
func (p *railPort) flush() {
	n := p.node
	if p.writable.Load() && p.writable.Swap(false) {
		p.full = false
	}
	for !p.full {
		frames := n.core.Frames(p.number)
		if len(frames) == 0 {
			return
		}
		k, err := p.link.Send(frames)
		if err != nil && k < len(frames) {
			// One frame cannot be sent. On the base rail micro-protocols send again what matters. Another rail
			// has promised to lose no frame, so its connection is over.
			n.stats.LinkErrors++
			peer := frames[k].Peer
			frames[k].Release()
			n.core.Sent(p.number, k+1)
			n.core.RailEvent(n.now(), p.number, microproto.LinkEvent{Peer: peer, Err: err})
			continue
		}
		n.core.Sent(p.number, k)
		if k < len(frames) {
			p.full = true
			n.stats.LinkFull++
			p.link.Writable(p.onWritable)
		}
	}
}

// receive drains the rail always: a full kernel queue drops the newest datagrams, and asynchronous iterations
// would rather lose the oldest.
func (p *railPort) receive() {
	n := p.node
	defer n.running.Done()
	recv, batch := p.link.Recv, make([]microproto.Frame, pumpBatch)
	if l, ok := p.link.(microproto.TrainReceiver); ok {
		recv = l.RecvTrains
	}
	for {
		var park bool
		var err error
		if p.waitable != nil {
			park, err = p.receiveInTurn()
		} else {
			var k int
			if k, err = recv(batch); err == nil {
				park = p.deliver(batch[:k])
			}
		}
		if err == nil {
			if park {
				<-p.resume
			}
			continue
		}
		if !errors.Is(err, net.ErrClosed) {
			n.log.Error("link receiver stopped", "error", err, "network", n.config.Rails[p.number].Network.String())
			n.mu.Lock()
			n.core.RailEvent(n.now(), p.number, microproto.LinkEvent{Err: err})
			n.unlock()
		}
		return
	}
}

// receiveInTurn receives from a link at which calls receive as well.
func (p *railPort) receiveInTurn() (park bool, err error) {
	if err := p.waitable.Await(); err != nil {
		return false, err
	}
	p.receiving.Lock()
	defer p.receiving.Unlock()
	k, err := p.waitable.TryRecv(p.batch)
	if err != nil {
		return false, err
	}
	return p.deliver(p.batch[:k]), nil
}

// deliver passes frames that the goroutine has received to the core. It reports whether the goroutine must park. Then
// timers that are due are left to the call that it has woken, as in take.
func (p *railPort) deliver(frames []microproto.Frame) (park bool) {
	n := p.node
	n.mu.Lock()
	defer n.unlock()
	n.stats.LinkWakes++
	now, slept := n.now(), n.poll.sleeping
	n.input(now, p, frames)
	n.carry()
	if park = p.mustPark(slept); !park {
		n.runDue(now)
	}
	return park
}

// input passes frames of a rail to the core. The lock is held.
func (n *Node) input(now microproto.Instant, p *railPort, frames []microproto.Frame) {
	for i := range frames {
		if n.closed {
			frames[i].Release()
		} else {
			n.core.Input(now, p.number, frames[i])
		}
		frames[i] = microproto.Frame{}
	}
	if len(frames) > 0 {
		n.poll.recent, p.arrived = p, now
	}
}

func (n *Node) logRail(o *p2psap.Output) {
	level, what := slog.LevelInfo, "rail up"
	if o.Err != nil {
		what = "rail down"
		// Shared memory goes down when the other process ends. That is reported as a lost peer.
		if o.Network != p2psap.SharedMemory && o.Network != p2psap.Memory {
			level = slog.LevelWarn
		}
	}
	n.log.Log(context.Background(), level, what, cause(o.Err), "peer", o.Peer, "network", o.Network.String())
}

// logRoute logs over which of several cables frames go.
func (n *Node) logRoute(o *p2psap.Output) {
	level := slog.LevelInfo
	if o.Err != nil {
		level = slog.LevelWarn
	}
	n.log.Log(context.Background(), level, "cables to the peer", cause(o.Err), "peer", o.Peer,
		"network", o.Network.String(), "route", o.Route)
}

// Rails describes the rails to a peer as p2psap.Node.Rails does; nil if the two have none in common beside the base rail,
// which has always carried frames.
func (n *Node) Rails(peer string) []p2psap.RailInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.core.Rails(peer)
}
