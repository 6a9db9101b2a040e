package driver

import (
	"errors"
	"fmt"
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
}

// railEnd runs a rail. The base rail is received by Node.receive and by calls that wait;
// each of the others has a goroutine that receives, which Pump helps.
type railEnd struct {
	node   *Node
	number int // in the core
	link   microproto.Link

	// ready, if the link can wait without taking, has the frames taken in by whoever
	// comes first: this goroutine, or Pump. taking keeps their order.
	ready  patient
	taking sync.Mutex // taken before the node's lock; guards batch
	batch  []microproto.Frame

	full     bool        // the link takes nothing until writable; guarded by the node's lock
	writable atomic.Bool // it has called back

	mu   sync.Mutex // guards news
	news []microproto.LinkEvent
}

// patient is a link that can wait until something has come, and leave it there. See
// ib.Link.
type patient interface {
	Await() error
	TryRecv(batch []microproto.Frame) (int, error)
}

// maxNews bounds what a link has told and the node not taken. Past it the link as a whole
// is taken to have been down.
const maxNews = 256

func (n *Node) addRails() {
	for i, r := range n.config.Rails {
		e := &railEnd{node: n, number: i, link: r.Link}
		n.rails = append(n.rails, e)
		if i == 0 {
			continue
		}
		e.batch = make([]microproto.Frame, pumpBatch)
		e.ready, _ = r.Link.(patient)
		if l, ok := r.Link.(microproto.Connected); ok {
			l.Watch(e.tell)
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

// tell notes what the link has to tell; it may be in the middle of a call under the
// node's lock.
func (e *railEnd) tell(event microproto.LinkEvent) {
	e.mu.Lock()
	if len(e.news) >= maxNews {
		err := fmt.Errorf("driver: more than %d changes of the link at once", maxNews)
		e.news = append(e.news[:0], microproto.LinkEvent{Err: err}, microproto.LinkEvent{Up: true})
	}
	e.news = append(e.news, event)
	e.mu.Unlock()
	e.node.alarm.set(0)
}

// onWritable may be called by the link from anywhere, even from inside Writable:
// it only wakes the timer's goroutine.
func (e *railEnd) onWritable() {
	e.writable.Store(true)
	e.node.alarm.set(0)
}

// keepRails takes what the rails have told. The lock is held.
func (n *Node) keepRails(now microproto.Instant) {
	for _, e := range n.rails {
		if e.writable.Swap(false) {
			e.full = false
		}
		for {
			e.mu.Lock()
			news := e.news
			e.news = nil
			e.mu.Unlock()
			if len(news) == 0 {
				break
			}
			for _, event := range news {
				if !n.closed {
					n.core.RailEvent(now, e.number, event)
				}
			}
		}
	}
}

// flush gives the link what it takes. The lock is held.
func (e *railEnd) flush() {
	n := e.node
	for !e.full {
		frames := n.core.Frames(e.number)
		if len(frames) == 0 {
			return
		}
		k, err := e.link.Send(frames)
		if err != nil && k < len(frames) {
			// One frame cannot be sent. By the base rail, transports repeat what matters; nobody
			// repeats what a reliable rail has refused, so that connection is over.
			n.stats.LinkErrors++
			peer := frames[k].Peer
			frames[k].Release()
			n.core.Sent(e.number, k+1)
			n.core.RailEvent(n.now(), e.number, microproto.LinkEvent{Peer: peer, Err: err})
			continue
		}
		n.core.Sent(e.number, k)
		if k < len(frames) {
			e.full = true
			n.stats.LinkFull++
			e.link.Writable(e.onWritable)
		}
	}
}

// receive drains a rail other than the base rail.
func (e *railEnd) receive() {
	n := e.node
	defer n.running.Done()
	for {
		var err error
		if e.ready == nil {
			var k int
			if k, err = e.link.Recv(e.batch); err == nil {
				e.hand(k, 1)
			}
		} else if err = e.ready.Await(); err == nil {
			e.taking.Lock()
			_, err = e.takeIn(1)
			e.taking.Unlock()
		}
		if err == nil {
			continue
		}
		n.mu.Lock()
		if !errors.Is(err, net.ErrClosed) {
			n.log.Error().Err(err).Str("node", n.config.Name).Stringer("network", n.config.Rails[e.number].Network).Msg("rail receiver stopped")
			n.core.RailEvent(n.now(), e.number, microproto.LinkEvent{Err: err})
		}
		n.leave()
		return
	}
}

// pump takes in what has come, unless somebody else is about it.
func (e *railEnd) pump() {
	if e.ready == nil || !e.taking.TryLock() {
		return
	}
	defer e.taking.Unlock()
	for range pumpRounds {
		if k, err := e.takeIn(0); err != nil || k < len(e.batch) {
			return
		}
	}
}

// takeIn hands over what is there now. taking is held. wakes: see hand.
func (e *railEnd) takeIn(wakes uint64) (int, error) {
	k, err := e.ready.TryRecv(e.batch)
	if k > 0 {
		e.hand(k, wakes)
	}
	return k, err
}

// hand gives the first k frames of the batch to the core. wakes is how often the rail's
// goroutine was woken for them.
func (e *railEnd) hand(k int, wakes uint64) {
	n := e.node
	n.mu.Lock()
	n.stats.LinkWakes += wakes
	n.byRail = true
	now := n.now()
	for i := range e.batch[:k] {
		if n.closed {
			e.batch[i].Release()
		} else {
			n.core.Input(now, e.number, e.batch[i])
		}
		e.batch[i] = microproto.Frame{}
	}
	n.runDue(now)
	n.leave()
}

// railed passes the news of a rail on.
func (n *Node) railed(o *p2psap.Output) {
	if o.Err != nil {
		n.log.Warn().Str("node", n.config.Name).Str("peer", o.Peer).Stringer("network", o.Network).Err(o.Err).Msg("rail down")
		return
	}
	n.log.Info().Str("node", n.config.Name).Str("peer", o.Peer).Stringer("network", o.Network).Msg("rail up")
}

// Rails tells where the rails to a peer stand, best first; nil if the two have none in
// common.
func (n *Node) Rails(peer string) []p2psap.RailInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.core.Rails(peer)
}
