package netlab

import (
	"math/rand/v2"
	"time"
)

// path is one direction of an emulated link without its clock and devices: time
// and packets go in, packets come out. A packet waits for the transmitter, is sent at
// the rate, and is then under way for the delay. It is for one goroutine.
type path struct {
	Conditions
	rand  *rand.Rand
	pool  *pool
	count Counters

	queue   []packet // first in, first out, from head; [head] is being sent
	head    int
	waiting int           // bytes behind the one that is being sent
	sent    time.Duration // when the one being sent will be; if there is one
	line    line
	latest  time.Duration // arrival of the latest in order
	number  uint64
}

// packet is one on its way. Duplicates share the buffer.
type packet struct {
	buffer  *buffer
	entered time.Duration
	lost    bool
	twice   bool
	late    bool
	jitter  time.Duration
}

// arrival is a packet behind the transmitter.
type arrival struct {
	at     time.Duration
	number uint64 // decides between equal times
	buffer *buffer
}

// maxHeld bounds the packets of one direction.
const maxHeld = 1 << 14

// never is later than every time.
const never = time.Duration(1<<63 - 1)

func newPath(c Conditions, seed uint64, from *pool) *path {
	return &path{Conditions: c.withDefaults(), rand: rand.New(rand.NewPCG(seed, 0x6c61622e)), pool: from}
}

// change sets conditions anew. They hold for packets that are not being sent yet; one
// that is may end earlier than it would have.
func (p *path) change(now time.Duration, c Conditions) {
	p.advance(now)
	p.Conditions = c.withDefaults()
	if p.head < len(p.queue) {
		p.sent = min(p.sent, now+p.transmission(len(p.queue[p.head].buffer.data)))
	}
}

// take is a packet's entry at the time now, which never goes back. It takes over the
// caller's reference. An answer, if there is one, is a packet for the sender's host.
func (p *path) take(now time.Duration, b *buffer) (answer []byte) {
	p.count.In++
	switch {
	case p.Down:
		p.drop(Down, b)
	case p.Pick != nil && p.Pick(b.data):
		p.drop(Picked, b)
	case p.MTU == 0 || len(b.data) <= p.MTU:
		p.enter(now, b)
	case mayCut(b.data):
		pieces := cut(b.data, p.MTU)
		p.count.Fragments += uint64(len(pieces) - 1)
		for _, piece := range pieces {
			p.enter(now, p.pool.copied(piece))
		}
		p.pool.release(b)
	default:
		if !p.Silent {
			answer = tooBig(b.data, p.MTU)
		}
		p.drop(TooLarge, b)
	}
	return answer
}

// enter queues a packet that fits, or drops it.
func (p *path) enter(now time.Duration, b *buffer) {
	p.advance(now)
	k := packet{buffer: b, entered: now}
	// Always as many draws, so that changing one condition leaves the others' luck alone.
	loss, twice, late, jitter := p.rand.Float64(), p.rand.Float64(), p.rand.Float64(), p.rand.Float64()
	k.lost, k.twice, k.late = loss < p.Loss, twice < p.Duplicate, late < p.Reorder
	k.jitter = time.Duration(jitter * float64(p.Jitter))
	size := len(b.data)
	idle := p.head == len(p.queue)
	switch {
	case p.held() >= maxHeld:
		p.drop(Overrun, b)
		return
	case !idle && p.QueueBytes > 0 && p.waiting+size > p.QueueBytes,
		!idle && p.QueuePackets > 0 && len(p.queue)-p.head-1 >= p.QueuePackets:
		p.drop(QueueFull, b)
		return
	}
	p.queue = append(p.queue, k)
	if idle {
		p.sent = now + p.transmission(size)
	} else {
		p.waiting += size
		p.count.PeakQueueBytes = max(p.count.PeakQueueBytes, p.waiting)
	}
	p.advance(now)
}

func (p *path) drop(c Cause, b *buffer) {
	p.count.Dropped[c]++
	p.pool.release(b)
}

// transmission is how long a packet of that size is sent.
func (p *path) transmission(size int) time.Duration {
	if p.Rate == 0 {
		return 0
	}
	return time.Duration(float64(size) / float64(p.Rate) * float64(time.Second))
}

// advance passes on what has been sent by now. Times are those that were due, so a
// caller that comes late does not make the link slower.
func (p *path) advance(now time.Duration) {
	for p.head < len(p.queue) && p.sent <= now {
		k := p.queue[p.head]
		p.queue[p.head] = packet{}
		p.head++
		p.leave(k)
		if p.head == len(p.queue) {
			p.queue, p.head = p.queue[:0], 0
			return
		}
		next := len(p.queue[p.head].buffer.data)
		p.waiting -= next
		p.sent = max(p.sent, p.queue[p.head].entered) + p.transmission(next)
		if p.head >= 1024 && 2*p.head >= len(p.queue) { // let go of what is behind
			n := copy(p.queue, p.queue[p.head:])
			clear(p.queue[n:])
			p.queue, p.head = p.queue[:n], 0
		}
	}
}

// leave puts a packet that has been sent on its way.
func (p *path) leave(k packet) {
	if k.lost {
		p.drop(Lost, k.buffer)
		return
	}
	at := p.sent + p.Delay + k.jitter
	if k.late {
		p.count.Reordered++
		at += p.Late
	} else {
		at = max(at, p.latest)
		p.latest = at
	}
	p.fly(at, k.buffer)
	if k.twice {
		p.count.Duplicated++
		k.buffer.references++
		p.fly(at, k.buffer)
	}
}

func (p *path) fly(at time.Duration, b *buffer) {
	p.number++
	p.line.push(arrival{at, p.number, b})
}

// exit gives a packet that has arrived by now, or nil. The caller has its reference.
func (p *path) exit(now time.Duration) *buffer {
	p.advance(now)
	if len(p.line) == 0 || p.line[0].at > now {
		return nil
	}
	return p.line.pop().buffer
}

// deadline is when there is something to do next; never, if nothing is under way.
func (p *path) deadline() time.Duration {
	d := never
	if p.head < len(p.queue) {
		d = p.sent
	}
	if len(p.line) > 0 {
		d = min(d, p.line[0].at)
	}
	return d
}

// held is how many packets are under way.
func (p *path) held() int { return len(p.queue) - p.head + len(p.line) }

// line is a binary heap by time of arrival. (The library's would allocate for each
// packet: the link's thread must not wait for a garbage collection of its own making.)
type line []arrival

func (a arrival) before(b arrival) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

func (l *line) push(a arrival) {
	*l = append(*l, a)
	h := *l
	for i := len(h) - 1; i > 0 && h[i].before(h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (l *line) pop() arrival {
	h := *l
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], arrival{}
	h = h[:last]
	*l = h
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h) && h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
