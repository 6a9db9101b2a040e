package shm

import (
	"crypto/rand"
	"sync"
)

// Memory joins the links of one process. Their outboxes are heap memory.
type Memory struct {
	id    hostIdentity // random
	mu    sync.Mutex
	links map[uint64]*Link // by incarnation
}

// NewMemory returns a Memory without links. Config.Memory joins links to it.
func NewMemory() *Memory {
	m := &Memory{links: map[uint64]*Link{}}
	_, _ = rand.Read(m.id.Boot[:]) // never fails
	return m
}

func (m *Memory) join(l *Link) {
	l.self.Host = m.id
	m.mu.Lock()
	m.links[l.self.Incarnation] = l
	m.mu.Unlock()
	l.meeting = &heapMeeting{memory: m, link: l}
}

// heapMeeting connects two links of one process. No link may hold its locks while it takes another's, so
// a goroutine connects them.
type heapMeeting struct {
	memory *Memory
	link   *Link
}

func (h *heapMeeting) close() {
	h.memory.mu.Lock()
	delete(h.memory.links, h.link.self.Incarnation)
	h.memory.mu.Unlock()
}

func (h *heapMeeting) start(p *peer) { go h.meet(p, p.round, *p.remote) }

// meet connects both ends if both have accepted each other.
func (h *heapMeeting) meet(p *peer, round uint64, remote offer) {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	a, b := h.link, h.memory.links[remote.Incarnation]
	if b == nil {
		go a.failRound(p, round, errGone)
		return
	}
	if a.self.Incarnation > b.self.Incarnation {
		defer b.lockAll()()
		defer a.lockAll()()
	} else {
		defer a.lockAll()()
		defer b.lockAll()()
	}
	q := b.tokens[remote.Token]
	if p.round != round || p.bell != nil || q == nil || q.remote == nil || q.remote.Token != p.token {
		return // the other end connects them when it has accepted
	}
	err := p.connected(outbox{bytes: q.out.bytes}, &heapBell{b, q, q.round})
	if err == nil {
		err = q.connected(outbox{bytes: p.out.bytes}, &heapBell{a, p, p.round})
	}
	if err != nil {
		a.fail(p, err)
		b.fail(q, err)
	}
}

// heapBell wakes a link of this process.
type heapBell struct {
	link  *Link
	peer  *peer
	round uint64
}

func (b *heapBell) ring() {
	b.link.wakeReceiver()
	if b.link.waiting.Load() {
		go b.link.callWritableIfRoom() // the caller may hold locks
	}
}

// close is called when this end gives the connection up: the other end's is over too.
func (b *heapBell) close() { go b.link.failRound(b.peer, b.round, errGone) }
