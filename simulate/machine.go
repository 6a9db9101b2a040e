package simulate

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// machine is the peer of one rank, with the process that runs it: its cores, its line, and its port of the switch. It
// is the World of the peer's shell.
type machine struct {
	process
	e        *engine
	host     *virtual.Host
	peer     Peer
	solution problem.Peer // nil with Config.New
	class    *cluster.Class
	shared   bool         // the protocol uses the relaxing thread's time
	costly   bool         // the protocol uses any time
	cores    *sharedCores // shared with other ranks; nil: the machine has its own
	core     int          // that the machine's work was on last
	// protocol is when the core of the protocol is free again.
	protocol microproto.Instant
	waiting  int // received bytes that wait for the protocol
	backlog  backlog
	perPoint float64 // nanoseconds
	spent    float64 // nanoseconds, on the parts of the sweep in progress
	factor   float64 // on the time of the sweep in progress, by jitter
	sigma    float64 // of the logarithm of factor
	straggle float64 // nanoseconds of relaxing until the next pause
	block    int     // points of a sweep
	left     int     // points of the sweep in progress
	// points counts those that were relaxed; with Recovery.Exact from the start of the run to the present iterate.
	points uint64
	before uint64 // points when the epoch began

	steps [3]stepEnd // by time step mod 3

	*station
	full   bool         // frames wait in the node
	wires  []connection // control connections, by number − 1
	memory *memory

	begun           microproto.Instant // when the first relaxation, or the copy of its starting values, began
	first           microproto.Instant // when the first relaxation began
	doneAt, sweptAt microproto.Instant
	retired         bool // the peer was killed or given up
	fault           error
	faultAt         microproto.Instant

	rank             RankResult    // counts what was sent
	gone             atomic.Uint64 // frames of this host that were lost
	staleness        iterate.AgeCounts
	reads            []Reads // of the neighbours with halos
	relaxing, stolen time.Duration
	timeline         timeline
}

func (e *engine) newMachine(rank int) *machine {
	h := e.host(rank)
	m := &machine{e: e, class: &h.Class, factor: 1, begun: microproto.Never, first: microproto.Never,
		station: e.stationOf(rank), cores: e.coresOf(rank)}
	if points := e.run.resumed.points; points != nil {
		m.points, m.before = points[rank], points[rank]
	}
	m.shared = h.Cores <= 1 || h.Copies || m.cores != nil
	e.addProcess(&m.process, m)
	m.costly = h.Send != cluster.Cost{} || h.Receive != cluster.Cost{} || h.Wake.Takes > 0
	m.perPoint = cmp.Or(h.Slow, 1) * 1e9 / h.Relaxation
	// The factor is log-normal, with mean 1 and relative deviation Jitter.
	m.sigma = math.Sqrt(math.Log1p(h.Jitter * h.Jitter))
	m.straggle = m.nextStraggle()
	m.memory = &e.memory
	return m
}

// happen handles an event.
func (m *machine) happen(ev *event) {
	switch ev.kind {
	case evStart:
		m.host.Start()
	case evTurn:
		m.host.Turn()
	case evAlarm:
		m.host.Due()
	case evPort:
		m.enterPort(ev.what)
	case evArrive:
		m.arrived(ev.what)
	case evBacklog:
		m.drainBacklog()
	case evInput:
		m.deliver(ev.what)
	case evHold:
		m.line.free = max(m.line.free, ev.what.last)
		m.land(ev.what)
	case evRoom:
		m.full = false
		m.host.Settle()
	case evDial:
		m.acceptDial(ev.what)
	case evUp:
		m.dialDone(ev.what)
	case evMessage:
		m.controlArrived(ev.what)
	case evCopy:
		m.copyArrived(ev.what)
	case evStored:
		m.host.Stored()
	}
}

// nextStraggle returns the time of relaxing until the next pause.
func (m *machine) nextStraggle() float64 {
	if m.class.Straggle.PerSecond <= 0 {
		return math.Inf(1)
	}
	return m.process.rand.ExpFloat64() / m.class.Straggle.PerSecond * 1e9
}

// leastSweep is the least time of a sweep. A real one has fixed costs, which no model has: calls, the exchange with other
// threads, the look for messages.
const leastSweep = time.Microsecond

// relaxTime returns the time that relaxing so many points takes.
func (m *machine) relaxTime(points int, slow float64) time.Duration {
	if m.left <= 0 {
		m.left, m.spent = m.block, 0
		if m.sigma > 0 {
			m.factor = math.Exp(m.sigma*m.process.rand.NormFloat64() - m.sigma*m.sigma/2)
		}
	}
	m.left -= points
	d := (float64(points)*m.perPoint + float64(m.class.Part)) * m.factor * slow
	for m.straggle -= d; m.straggle <= 0; m.straggle += m.nextStraggle() {
		d += float64(m.class.Straggle.For)
	}
	if m.spent += d; m.left <= 0 {
		d += max(0, float64(leastSweep)-m.spent)
	}
	return max(1, time.Duration(d))
}

// Relax implements World.
func (m *machine) Relax(h *virtual.Host, op iterate.Op) time.Duration {
	m.begun, m.first = min(m.begun, m.now), min(m.first, m.now)
	first := m.left <= 0
	if first {
		m.countStaleness()
	}
	d := m.relaxTime(op.Points, m.e.slow[m.index])
	m.points += uint64(op.Points)
	begin := m.now
	if m.cores != nil {
		m.core, begin, d = m.cores.take(m.now, d, &m.thread)
	}
	m.relaxing += d
	m.backlog.threadUsed(d)
	m.relax(op, first)
	return begin.Sub(m.now) + d
}

// relax lets the peer relax a part; first reports that a sweep begins with it.
func (m *machine) relax(op iterate.Op, first bool) {
	switch p := m.peer.(type) {
	case *deferredPeer:
		p.relax(op, first)
	case *scaledPeer:
		op.Points /= p.volume
		relaxSweep(p.Peer, op)
	default:
		relaxSweep(p, op)
	}
}

// Relaxed implements World.
func (m *machine) Relaxed(*virtual.Host) {
	if d, ok := m.peer.(*deferredPeer); ok {
		d.settled() // the slots of faces may change from now on
	}
	if m.left > 0 {
		return
	}
	if n := m.timeline.add(m.now); n == m.e.run.Sweeps {
		m.sweptAt = m.now
		m.e.swept.Add(1)
	}
}

// chargeSegments charges the protocol's time for segments, of which the first is ready to be handled
// at first and the last at last. It returns when the first and the last have been handled. sends
// reports that the relaxing thread does the work, unless it relaxes.
func (m *machine) chargeSegments(first, last microproto.Instant, cost time.Duration, segments int, sends bool) (from,
	to microproto.Instant) {
	each := cost / time.Duration(segments)
	start, busy := max(m.protocol, first), m.host.Busy()
	if m.shared && busy > m.now && !m.host.Relaxing() {
		start = max(start, busy) // the thread handles another message
	}
	if m.cores != nil {
		if sends || busy > m.now {
			m.cores.extend(m.core, m.now, cost)
		} else {
			m.core, start, _ = m.cores.take(start, cost, nil)
		}
	}
	from = start.Add(each)
	to = max(start.Add(cost), last.Add(each))
	m.protocol = start.Add(cost) // between slow frames the protocol does other work
	if !m.shared || cost == 0 {
		return from, to
	}
	m.stolen += cost
	switch {
	case busy > m.now: // the thread's present work ends later
		m.host.SetBusy(busy.Add(cost))
	case sends:
		m.backlog.threadUsed(cost)
		m.host.SetBusy(to)
	}
	return from, to
}

// Sends implements World: a message's own cost. That of its segments is charged when they leave. A message without a
// cost of its own is left in memory, where a newer asynchronous one replaces it, and the relaxing thread goes on. One
// with a cost needs the protocol, which must not be further behind than protocolLag.
func (m *machine) Sends(*virtual.Host) time.Duration {
	took := m.chargeMessage(m.class.Send.Message, false)
	if !m.shared && m.class.Send.Message > 0 {
		took = max(0, m.protocol.Sub(m.now)-protocolLag)
	}
	return took
}

// Receives implements World.
func (m *machine) Receives(_ *virtual.Host, waits bool) time.Duration {
	return m.chargeMessage(m.class.Receive.Message, waits)
}

// chargeMessage charges the cost of a message beside its segments: to the relaxing thread, or to the
// protocol's core, for which the thread waits if it needs the message.
func (m *machine) chargeMessage(cost time.Duration, waits bool) time.Duration {
	if cost == 0 {
		return 0
	}
	if m.shared {
		m.stolen += cost
		m.backlog.threadUsed(cost)
		if m.cores != nil {
			m.cores.extend(m.core, m.now, cost)
		}
		return cost
	}
	m.protocol = max(m.protocol, m.now).Add(cost)
	if waits {
		return m.protocol.Sub(m.now)
	}
	return 0
}

// Now implements World.
func (m *machine) Now() microproto.Instant { return m.now }

// Wake implements World.
func (m *machine) Wake(_ *virtual.Host, at microproto.Instant) { m.schedule(at, evTurn, nil) }

// Alarm implements World.
func (m *machine) Alarm(_ *virtual.Host, at microproto.Instant) {
	if at != microproto.Never {
		m.schedule(at, evAlarm, nil)
	}
}

// Opened implements World.
func (m *machine) Opened(*virtual.Host) {}

// Finished implements World.
func (m *machine) Finished(*virtual.Host) {
	m.doneAt = m.now
	m.e.done.Add(1)
}

// Fail implements World. An error of a lost machine is ignored.
func (m *machine) Fail(_ *virtual.Host, err error) {
	if m.fault == nil && !m.e.lost[m.index] {
		m.fault, m.faultAt = err, m.now
	}
}

// Failed implements World.
func (m *machine) Failed() bool { return m.fault != nil || m.retired }
