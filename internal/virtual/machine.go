package virtual

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/internal/cluster"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/solver"
)

// machine is what a host runs on.
type machine struct {
	class  *cluster.Class
	rand   *rand.Rand
	shared bool // the protocol takes the relaxing thread's time
	costly bool // it takes any
	// protocol is when what runs the protocol is free again.
	protocol microproto.Instant
	waiting  int     // bytes that have come and wait for it
	perPoint float64 // nanoseconds
	factor   float64 // of the sweep in progress, by jitter
	sigma    float64 // of the logarithm of factor
	straggle float64 // nanoseconds of relaxing until it is held up again
	block    int     // points of a sweep
	left     int     // of the sweep in progress
	points   uint64
	task     task

	relaxing, stolen time.Duration
	timeline         timeline
}

func (m *machine) init(h *cluster.Host, p solver.Peer, r *rand.Rand) {
	slow := h.Slow
	if slow == 0 {
		slow = 1
	}
	m.class, m.rand, m.shared = &h.Class, r, h.Cores <= 1 || h.Copies
	m.costly = h.Send != cluster.Cost{} || h.Receive != cluster.Cost{}
	m.perPoint, m.factor, m.block = slow*1e9/h.Relaxation, 1, p.Box().Points()*weight(p)
	// A log-normal factor of mean 1 and relative deviation Jitter.
	m.sigma = math.Sqrt(math.Log1p(h.Jitter * h.Jitter))
	m.straggle = m.nextStraggle()
}

// nextStraggle is how long it relaxes until it is held up.
func (m *machine) nextStraggle() float64 {
	if m.class.Straggle.PerSecond <= 0 {
		return math.Inf(1)
	}
	return m.rand.ExpFloat64() / m.class.Straggle.PerSecond * 1e9
}

// takes is how long so many points take.
func (m *machine) takes(points int, slow float64) time.Duration {
	if m.left <= 0 {
		m.left = m.block
		if m.sigma > 0 {
			m.factor = math.Exp(m.sigma*m.rand.NormFloat64() - m.sigma*m.sigma/2)
		}
	}
	m.left -= points
	d := float64(points) * m.perPoint * m.factor * slow
	for m.straggle -= d; m.straggle <= 0; m.straggle += m.nextStraggle() {
		d += float64(m.class.Straggle.For)
	}
	return max(1, time.Duration(d))
}

// Relax implements World: the numbers are worked out on other processors of this machine while
// virtual time goes on.
func (e *engine) Relax(h *Host, op solver.Op) time.Duration {
	m := &e.machines[h.Rank]
	if e.began == microproto.Never {
		e.begin()
	}
	if m.left <= 0 {
		e.account.read(h)
	}
	d := m.takes(op.Points, e.slow[h.Rank])
	m.points += uint64(op.Points)
	m.relaxing += d
	e.pool.start(&m.task, h.Peer, op)
	return d
}

// Relaxed implements World.
func (e *engine) Relaxed(h *Host) {
	m := &e.machines[h.Rank]
	e.pool.join(&m.task)
	if m.left > 0 {
		return
	}
	if n := m.timeline.add(e.now); n == e.run.Sweeps && n > 0 {
		if e.swept++; e.swept == len(e.hosts) {
			e.ended = solver.ReachedSweeps
		}
	}
}

// spend has the protocol take time for so many segments, of which the first is ready to be
// handled at first and the last at last. It returns when the first and the last have been.
// sends tells that the thread is at it, unless it relaxes.
func (e *engine) spend(rank int, first, last microproto.Instant, cost time.Duration, segments int, sends bool) (from, to microproto.Instant) {
	m, h := &e.machines[rank], e.hosts[rank]
	each := cost / time.Duration(segments)
	start, busy := max(m.protocol, first), h.Busy()
	if m.shared && busy > e.now && !h.Relaxing() {
		start = max(start, busy) // the thread is at another message
	}
	from = start.Add(each)
	to = max(start.Add(cost), last.Add(each))
	m.protocol = start.Add(cost) // between frames that come slowly it does other things
	if !m.shared || cost == 0 {
		return from, to
	}
	m.stolen += cost
	switch {
	case busy > e.now: // what it is at ends later
		h.SetBusy(busy.Add(cost))
	case sends:
		h.SetBusy(to)
	}
	return from, to
}

// handOver is how far a core of the protocol's may be behind before the relaxing thread waits
// until it takes another message.
const handOver = 100 * time.Microsecond

// Sends implements World: a message's own cost. The segments' is taken when they leave.
func (e *engine) Sends(h *Host, _ int) time.Duration {
	m := &e.machines[h.Rank]
	took := e.message(h, m.class.Send.Message, false)
	if !m.shared {
		took = max(0, m.protocol.Sub(e.now)-handOver)
	}
	return took
}

// Receives implements World.
func (e *engine) Receives(h *Host, _ uint64, waits bool) time.Duration {
	return e.message(h, e.machines[h.Rank].class.Receive.Message, waits)
}

// message charges what a message costs beside its segments: the relaxing thread, or the
// protocol's core, for which the thread has to wait if it wants what came.
func (e *engine) message(h *Host, cost time.Duration, waits bool) time.Duration {
	if cost == 0 {
		return 0
	}
	m := &e.machines[h.Rank]
	if m.shared {
		m.stolen += cost
		return cost
	}
	m.protocol = max(m.protocol, e.now).Add(cost)
	if waits {
		return m.protocol.Sub(e.now)
	}
	return 0
}

// begin is called at the first relaxation.
func (e *engine) begin() {
	e.began = e.now
	for i := range e.model.Events {
		ev := &e.model.Events[i]
		e.queue.push(e.now.Add(ev.At), evChange, int32(2*i))
		if ev.Until > 0 {
			e.queue.push(e.now.Add(ev.Until), evChange, int32(2*i+1))
		}
	}
}

// change begins event i/2 of the model, or ends it.
func (e *engine) change(i int) {
	ev, on := &e.model.Events[i/2], i%2 == 0
	switch {
	case ev.Lost:
		if ev.Rank < len(e.lost) {
			e.lost[ev.Rank] = on
		}
	case ev.Slow > 0:
		if ev.Rank < len(e.slow) {
			e.slow[ev.Rank] = 1
			if on {
				e.slow[ev.Rank] = ev.Slow
			}
		}
	default:
		e.net.cut(ev, on)
	}
}
