package simulate

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// process is a part of the model that acts on others only by events some time ahead: a host
// with its line and its port, a line between sites, a backplane. Processes of one window
// (see windows.go) run in any order, on any thread, with one result.
type process struct {
	owner  interface{ happen(ev *event) }
	all    []*process
	index  int32
	now    microproto.Instant
	queue  eventHeap
	rand   *rand.Rand
	events uint64
	event  event // that happens: here, so that it need not be allocated
	spare  []*flight
	posted uint64  // numbers what it sends to others
	mailed []int32 // whose inboxes it was the first to write to, in this window

	mu    sync.Mutex
	inbox []posting // of this window
	// letters are those of the windows before, until the process runs.
	letters  []posting
	earliest microproto.Instant // of them
}

// post is an event from another process.
type posting struct {
	event // numbered by its sender
	from  int32
}

// at has something happen here.
func (p *process) schedule(t microproto.Instant, kind eventKind, what *flight) {
	p.queue.push(max(t, p.now), kind, what)
}

// post has something happen in another process, no earlier than a window's length from now.
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

// settle takes the inbox in, between two windows, and tells when there is something to do.
func (p *process) readInbox() microproto.Instant {
	if len(p.letters) == 0 {
		p.letters, p.inbox = p.inbox, p.letters
		p.earliest = microproto.Never
	} else {
		p.letters, p.inbox = append(p.letters, p.inbox...), p.inbox[:0]
	}
	for i := range p.letters {
		p.earliest = min(p.earliest, p.letters[i].at)
	}
	return min(p.earliest, p.queue.next())
}

// collect plans what others have posted, in an order that does not depend on theirs.
func (p *process) scheduleInbox() {
	if len(p.letters) > 1 {
		slices.SortFunc(p.letters, func(a, b posting) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from, b.from), cmp.Compare(a.seq, b.seq))
		})
	}
	for i := range p.letters {
		e := &p.letters[i]
		p.queue.push(max(e.at, p.now), e.kind, e.what)
	}
	clear(p.letters)
	p.letters, p.earliest = p.letters[:0], microproto.Never
}

// run has happen what is due before an instant. What others post meanwhile lies behind it.
func (p *process) run(before microproto.Instant) {
	for p.queue.next() < before {
		p.event = p.queue.pop()
		p.now = p.event.at
		p.events++
		p.owner.happen(&p.event)
	}
}

// flight makes one; whoever ends it gives it to its own spare ones.
func (p *process) flight() *flight {
	if k := len(p.spare); k > 0 {
		f := p.spare[k-1]
		p.spare = p.spare[:k-1]
		return f
	}
	return new(flight)
}

// land ends a flight, and its frame.
func (p *process) land(f *flight) {
	f.frame.Release()
	*f = flight{}
	p.spare = append(p.spare, f)
}
