package launch

import (
	"sync/atomic"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// outbox bounds the messages to a slow peer that wait.
const outbox = 64

// link is a connection with its goroutines.
type link struct {
	*rendezvous.Conn
	out       chan rendezvous.Message // to be sent, in order; it may hold a parcel; nil before the process is welcome
	finished  bool                    // out accepts no more messages
	written   chan struct{}           // closed after the last write
	served    chan struct{}           // closed after the last read
	displaced atomic.Bool             // another peer has the place of its one: ends of time steps do not count
	passing   atomic.Bool             // copies of other peers' blocks are about to be sent
	blocked   atomic.Bool             // it is not read, as there is no room for the block of its peer
}

// parcel is several messages to a peer, which are sent together.
type parcel interface{ send(l *link) error }

// write sends the messages of out, in a goroutine so that a stopped peer does not delay others.
func (l *link) write(out <-chan rendezvous.Message) {
	defer close(l.written)
	defer exitOnPanic()
	for msg := range out {
		var err error
		if p, is := msg.(parcel); is {
			err = p.send(l)
		} else {
			err = l.Send(msg)
		}
		if err != nil {
			l.Close() // serve sees the end of the connection
			return
		}
	}
}

// notify queues a message and does not block. To a process that waits it is sent at once.
func (l *link) notify(msg rendezvous.Message) {
	switch {
	case l.finished:
	case l.out == nil:
		if l.Send(msg) != nil {
			l.Close()
		}
	default:
		select {
		case l.out <- msg:
		default: // the queue of a stopped peer is full: it will time out
		}
	}
}

// finish accepts no more messages. Those that are queued are sent.
func (l *link) finish() {
	if !l.finished && l.out != nil {
		close(l.out)
	}
	l.finished = true
}

// over reports whether the connection is no longer used.
func (l *link) over() bool { return isClosed(l.written) && isClosed(l.served) }

// offspring is a process that was started.
type offspring struct {
	Child
	ended chan struct{} // closed when it has ended
}

// isClosed reports whether a channel is closed or nil.
func isClosed(c <-chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}
