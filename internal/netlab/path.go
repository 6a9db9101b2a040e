package netlab

import (
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/internal/fifo"
)

// path is one direction of an emulated link without clock and devices: the caller passes packets and
// times and gets packets. A packet waits for the transmitter, is transmitted at the rate, and then
// propagates for the delay. A path must not be used by several goroutines at once.
type path struct {
	Conditions
	rand  *rand.Rand
	pool  *pool
	count Counters

	queue        fifo.Queue[packet] // the front is being transmitted
	waiting      int                // bytes behind the front
	sent         time.Duration      // end of the transmission of the front
	arrivals     arrivalHeap
	latest       time.Duration // latest arrival of a packet that is not reordered
	arrivalCount uint64
}

// packet is a packet before its transmission is complete.
type packet struct {
	buffer    *buffer
	entered   time.Duration
	lost      bool
	duplicate bool
	late      bool
	jitter    time.Duration
}

// arrival is a transmitted packet. Duplicates share the buffer.
type arrival struct {
	at     time.Duration
	number uint64 // orders equal times
	buffer *buffer
}

// maxHeld bounds the packets in one direction.
const maxHeld = 1 << 14

// never is later than any time.
const never = time.Duration(1<<63 - 1)

func newPath(c Conditions, seed uint64, from *pool) *path {
	return &path{Conditions: c.withDefaults(), rand: rand.New(rand.NewPCG(seed, 0x6c61622e)), pool: from}
}

// change replaces the conditions for packets whose transmission has not begun. A transmission in progress
// may end earlier.
func (p *path) change(now time.Duration, c Conditions) {
	p.advance(now)
	p.Conditions = c.withDefaults()
	if p.queue.Len() > 0 {
		p.sent = min(p.sent, now+p.transmission(len(p.queue.Front().buffer.data)))
	}
}

// accept takes a packet, and the caller's reference to it, at the time now, which must not decrease. The
// answer, if not nil, is an ICMP packet for the sender.
func (p *path) accept(now time.Duration, b *buffer) (answer []byte) {
	p.count.In++
	switch {
	case p.Down:
		p.drop(Down, b)
	case p.Pick != nil && p.Pick(b.data):
		p.drop(Picked, b)
	case p.MTU == 0 || len(b.data) <= p.MTU:
		p.enqueue(now, b)
	case mayFragment(b.data):
		pieces := fragment(b.data, p.MTU)
		p.count.Fragments += uint64(len(pieces) - 1)
		for _, piece := range pieces {
			p.enqueue(now, p.pool.copied(piece))
		}
		p.pool.release(b)
	default:
		if !p.Silent {
			answer = tooBigMessage(b.data, p.MTU)
		}
		p.drop(TooLarge, b)
	}
	return answer
}

// enqueue queues a packet that fits the MTU, or drops it.
func (p *path) enqueue(now time.Duration, b *buffer) {
	p.advance(now)
	k := packet{buffer: b, entered: now}
	// The number of draws is constant, so that changing one condition does not change the effect of others.
	k.lost = p.rand.Float64() < p.Loss
	k.duplicate = p.rand.Float64() < p.Duplicate
	k.late = p.rand.Float64() < p.Reorder
	k.jitter = time.Duration(p.rand.Float64() * float64(p.Jitter))
	size := len(b.data)
	idle := p.queue.Len() == 0
	switch {
	case p.held() >= maxHeld:
		p.drop(Overrun, b)
		return
	case !idle && p.waiting+size > p.QueueBytes:
		p.drop(QueueFull, b)
		return
	}
	p.queue.Push(k)
	if idle {
		p.sent = now + p.transmission(size)
	} else {
		p.waiting += size
	}
	p.advance(now)
}

func (p *path) drop(c Cause, b *buffer) {
	p.count.Dropped[c]++
	p.pool.release(b)
}

// transmission returns the transmission time of a packet of that size.
func (p *path) transmission(size int) time.Duration {
	if p.Rate == 0 {
		return 0
	}
	return time.Duration(float64(size) / float64(p.Rate) * float64(time.Second))
}

// advance completes the transmissions that end by now. It computes with the due times, so that a late call
// does not slow the link.
func (p *path) advance(now time.Duration) {
	for p.queue.Len() > 0 && p.sent <= now {
		p.transmitted(p.queue.Pop())
		if p.queue.Len() > 0 {
			next := p.queue.Front()
			size := len(next.buffer.data)
			p.waiting -= size
			p.sent = max(p.sent, next.entered) + p.transmission(size)
		}
	}
}

// transmitted schedules the arrival of a packet whose transmission is complete, or drops it.
func (p *path) transmitted(k packet) {
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
	p.schedule(at, k.buffer)
	if k.duplicate {
		p.count.Duplicated++
		k.buffer.references++
		p.schedule(at, k.buffer)
	}
}

func (p *path) schedule(at time.Duration, b *buffer) {
	p.arrivalCount++
	p.arrivals.push(arrival{at, p.arrivalCount, b})
}

// nextArrived returns a packet that has arrived by now, or nil. The caller owns its reference.
func (p *path) nextArrived(now time.Duration) *buffer {
	p.advance(now)
	if len(p.arrivals) == 0 || p.arrivals[0].at > now {
		return nil
	}
	return p.arrivals.pop().buffer
}

// deadline returns the time of the next event, or never.
func (p *path) deadline() time.Duration {
	d := never
	if p.queue.Len() > 0 {
		d = p.sent
	}
	if len(p.arrivals) > 0 {
		d = min(d, p.arrivals[0].at)
	}
	return d
}

// held returns the number of packets in the path.
func (p *path) held() int { return p.queue.Len() + len(p.arrivals) }

// arrivalHeap is a binary heap ordered by the time of arrival. container/heap would allocate memory for
// each packet, and the resulting garbage collections would delay the link's thread.
type arrivalHeap []arrival

func (a arrival) before(b arrival) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

func (l *arrivalHeap) push(a arrival) {
	*l = append(*l, a)
	h := *l
	for i := len(h) - 1; i > 0 && h[i].before(h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (l *arrivalHeap) pop() arrival {
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
