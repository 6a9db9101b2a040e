package driver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Rail is one of a node's links and the kind of network that it leads to.
type Rail struct {
	Network p2psap.Network
	Link    microproto.Link
}

// railPort runs a rail. The base rail is received by Node.receive and by calls that wait; each of the others
// has a goroutine that receives, which Pump helps.
type railPort struct {
	node   *Node
	number int // index in Config.Rails
	link   microproto.Link

	full     bool        // the link takes nothing until writable; guarded by the node's lock
	writable atomic.Bool // the link has called back

	// waitable, if the link is one, lets the goroutine and Pump both receive; receiving keeps the order of
	// frames.
	waitable  microproto.WaitableLink
	receiving sync.Mutex // taken before the node's lock; guards batch
	batch     []microproto.Frame

	mu     sync.Mutex // guards events
	events []microproto.LinkEvent
}

// maxEvents bounds the events that the node has not handled. Beyond it the whole link counts as having been
// down.
const maxEvents = 256

func (n *Node) addRails() {
	for i, r := range n.config.Rails {
		p := &railPort{node: n, number: i, link: r.Link}
		n.rails = append(n.rails, p)
		if i == 0 {
			continue
		}
		p.batch = make([]microproto.Frame, pumpBatch)
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
	p.node.alarm.set(0)
}

// onWritable may be called by the link from anywhere, even from inside Writable: it only wakes the timer's
// goroutine.
func (p *railPort) onWritable() {
	p.writable.Store(true)
	p.node.alarm.set(0)
}

// handleRails handles what the links have reported. The lock is held.
func (n *Node) handleRails(now microproto.Instant) {
	for _, p := range n.rails {
		if p.writable.Swap(false) {
			p.full = false
		}
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

// receive drains a rail other than the base rail.
func (p *railPort) receive() {
	n := p.node
	defer n.running.Done()
	for {
		err := p.receiveOnce()
		if err == nil {
			continue
		}
		n.mu.Lock()
		if !errors.Is(err, net.ErrClosed) {
			network := n.config.Rails[p.number].Network
			n.log.Error().Err(err).Stringer("network", network).Msg("rail receiver stopped")
			n.core.RailEvent(n.now(), p.number, microproto.LinkEvent{Err: err})
		}
		n.unlock()
		return
	}
}

func (p *railPort) receiveOnce() error {
	if p.waitable == nil {
		k, err := p.link.Recv(p.batch)
		if err == nil {
			p.deliver(k, 1)
		}
		return err
	}
	if err := p.waitable.Await(); err != nil {
		return err
	}
	p.receiving.Lock()
	defer p.receiving.Unlock()
	_, err := p.receivePending(1)
	return err
}

// pump receives what has arrived, unless the rail's goroutine does.
func (p *railPort) pump() {
	if p.waitable == nil || !p.receiving.TryLock() {
		return
	}
	defer p.receiving.Unlock()
	for range pumpRounds {
		if k, err := p.receivePending(0); err != nil || k < len(p.batch) {
			return
		}
	}
}

// receivePending receives what has arrived. receiving is held. wakes: see deliver.
func (p *railPort) receivePending(wakes uint64) (int, error) {
	k, err := p.waitable.TryRecv(p.batch)
	if k > 0 {
		p.deliver(k, wakes)
	}
	return k, err
}

// deliver passes the first k frames of the batch to the core. wakes counts how often the rail's goroutine was
// woken for them.
func (p *railPort) deliver(k int, wakes uint64) {
	n := p.node
	n.mu.Lock()
	n.stats.LinkWakes += wakes
	now := n.now()
	n.input(now, p.number, p.batch[:k])
	n.runDue(now)
	n.unlock()
}

// input passes frames of a rail to the core. The lock is held.
func (n *Node) input(now microproto.Instant, rail int, frames []microproto.Frame) {
	for i := range frames {
		if n.closed {
			frames[i].Release()
		} else {
			n.core.Input(now, rail, frames[i])
		}
		frames[i] = microproto.Frame{}
	}
	if len(frames) > 0 {
		n.lastByRail = rail != 0
	}
}

func (n *Node) logRail(o *p2psap.Output) {
	level, what := zerolog.InfoLevel, "rail up"
	if o.Err != nil {
		what = "rail down"
		// Shared memory ends with the other process, whose end is reported by itself.
		if o.Network != p2psap.SharedMemory && o.Network != p2psap.Memory {
			level = zerolog.WarnLevel
		}
	}
	n.log.WithLevel(level).Err(o.Err).Str("peer", o.Peer).Stringer("network", o.Network).Msg(what)
}

// Rails describes the rails to a peer, best first; nil if the two have none in common beside the base rail.
func (n *Node) Rails(peer string) []p2psap.RailInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.core.Rails(peer)
}
