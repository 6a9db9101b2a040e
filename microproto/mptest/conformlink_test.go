package mptest

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
)

// hub joins links in memory, each with a bounded queue.
type hub struct {
	links []*memLink
}

type memLink struct {
	hub      *hub
	self     int
	mu       sync.Mutex
	arrived  *sync.Cond
	queue    []microproto.Frame
	known    map[int]bool
	closed   bool
	writable []func()
}

const memCapacity = 256

func (h *hub) link() *memLink {
	l := &memLink{hub: h, self: len(h.links), known: map[int]bool{}}
	l.arrived = sync.NewCond(&l.mu)
	h.links = append(h.links, l)
	return l
}

func (l *memLink) Caps(microproto.Mode) microproto.Caps {
	return microproto.Caps{MTU: 4000, Headroom: 16, Batch: 32, Ordered: true, Reliable: true}
}

func (l *memLink) Acquire(n int) microproto.Frame {
	return microproto.NewBuffer(make([]byte, 16+n), nil).Frame(0, 16, n)
}

func (l *memLink) Offer(string) ([]byte, error) { return fmt.Appendf(nil, "mem:%d", l.self), nil }

func (l *memLink) Accept(remote []byte) (microproto.LinkAddr, error) {
	for i := range l.hub.links {
		if string(remote) == fmt.Sprintf("mem:%d", i) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.known[i] = true
			return microproto.LinkAddr(i + 1), nil
		}
	}
	return 0, fmt.Errorf("no offer of a memory link: %q", remote)
}

func (l *memLink) Send(batch []microproto.Frame) (int, error) {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	for i := range batch {
		to := l.hub.links[batch[i].Peer-1]
		to.mu.Lock()
		full, heard := len(to.queue) >= memCapacity, to.known[l.self] && !to.closed
		if heard && !full {
			to.queue = append(to.queue, microproto.Frame{Peer: microproto.LinkAddr(l.self + 1),
				Data: bytes.Clone(batch[i].Data)})
			to.arrived.Signal()
		}
		to.mu.Unlock()
		if heard && full {
			return i, nil
		}
		batch[i].Release()
	}
	return len(batch), nil
}

func (l *memLink) Writable(f func()) {
	for _, to := range l.hub.links {
		to.mu.Lock()
		full := len(to.queue) >= memCapacity
		if full {
			to.writable = append(to.writable, f)
		}
		to.mu.Unlock()
		if full {
			return
		}
	}
	f()
}

func (l *memLink) Recv(batch []microproto.Frame) (int, error) {
	l.mu.Lock()
	for len(l.queue) == 0 && !l.closed {
		l.arrived.Wait()
	}
	if l.closed {
		l.mu.Unlock()
		return 0, net.ErrClosed
	}
	n := copy(batch, l.queue)
	l.queue = l.queue[n:]
	wake := l.writable
	l.writable = nil
	l.mu.Unlock()
	for _, f := range wake {
		f()
	}
	return n, nil
}

func (l *memLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.arrived.Broadcast()
	return nil
}

func TestConformLinkAcceptsASoundLink(t *testing.T) {
	ConformLink(t, func(testing.TB) (a, b microproto.Link) {
		h := &hub{}
		return h.link(), h.link()
	})
}
