package simulate

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// process is a logical process of the simulation: a host with its line and its port, a link between
// sites, or a backplane. It acts on others only by events in their future. The processes of a window
// (see windows.go) run in any order and on any thread with the same result.
type process struct {
	owner  interface{ happen(ev *event) }
	all    []*process
	index  int32
	now    microproto.Instant
	queue  eventHeap
	rand   *rand.Rand
	events uint64
	event  event // the event in progress; a field, so that it is not allocated
	spare  []*flight
	posted uint64  // numbers the events that it posts to others
	mailed []int32 // processes in whose inbox it was the first to write, in this window

	mu    sync.Mutex
	inbox []posting // postings of this window
	// pending are postings of earlier windows, until the process runs.
	pending  []posting
	earliest microproto.Instant // instant among pending
}

// posting is an event from another process.
type posting struct {
	event // its seq is the sender's
	from  int32
}

// schedule schedules an event of this process.
func (p *process) schedule(t microproto.Instant, kind eventKind, what *flight) {
	p.queue.push(max(t, p.now), kind, what)
}

// post schedules an event of another process, at least a window's length from now.
func (p *process) post(to int32, t microproto.Instant, kind eventKind, what *flight) {
	if to == p.index {
		p.schedule(t, kind, what)
		return
	}
	p.posted++
	q := p.all[to]
	q.mu.Lock()
	if len(q.inbox) == 0 {
		p.mailed = append(p.mailed, to)
	}
	q.inbox = append(q.inbox, posting{event{t, p.posted, what, kind}, p.index})
	q.mu.Unlock()
}

// readInbox takes the inbox between two windows, and returns when the process has something to do.
func (p *process) readInbox() microproto.Instant {
	if len(p.pending) == 0 {
		p.pending, p.inbox = p.inbox, p.pending
		p.earliest = microproto.Never
	} else {
		p.pending, p.inbox = append(p.pending, p.inbox...), p.inbox[:0]
	}
	for i := range p.pending {
		p.earliest = min(p.earliest, p.pending[i].at)
	}
	return min(p.earliest, p.queue.next())
}

// scheduleInbox schedules the events that others have posted, in an order that does not depend on
// the order in which those ran.
func (p *process) scheduleInbox() {
	if len(p.pending) > 1 {
		slices.SortFunc(p.pending, func(a, b posting) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from, b.from), cmp.Compare(a.seq, b.seq))
		})
	}
	for i := range p.pending {
		e := &p.pending[i]
		p.queue.push(max(e.at, p.now), e.kind, e.what)
	}
	clear(p.pending)
	p.pending, p.earliest = p.pending[:0], microproto.Never
}

// run handles all events before an instant. What others post meanwhile comes later.
func (p *process) run(before microproto.Instant) {
	for p.queue.next() < before {
		p.event = p.queue.pop()
		p.now = p.event.at
		p.events++
		p.owner.happen(&p.event)
	}
}

// flight returns a new flight. The process that ends it keeps it for reuse.
func (p *process) flight() *flight {
	if k := len(p.spare); k > 0 {
		f := p.spare[k-1]
		p.spare = p.spare[:k-1]
		return f
	}
	return new(flight)
}

// land ends a flight and releases its frame.
func (p *process) land(f *flight) {
	f.frame.Release()
	*f = flight{}
	p.spare = append(p.spare, f)
}
