package simulate

import (
	"cmp"
	"math"
	"math/bits"
	"time"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// Frames go from a host's line to its site's switch, where each port queues the frames for one host.
// Sites are joined by links with queues. A train stays one event; losses are recorded per frame. Only a shaper takes
// it apart.

// route describes a host's line and port.
type route struct {
	each    float64 // nanoseconds per byte
	around  int     // bytes on the line around each frame's payload
	latency time.Duration
	jitter  int64
	loss    float64
	accepts int           // received bytes that may wait for the protocol
	room    time.Duration // time that the line takes frames ahead before it is full
	blocks  time.Duration // ib: the same for synchronous frames
	queue   time.Duration // time that a port holds frames at most; 0: no bound
	ib      bool
	site    int
	plane   *sharedLink // backplane; nil: no bound
	shaper  shaper
}

// defaultQueue is the default size of a socket's buffer on Linux, each way.
const defaultQueue = 212992

// registeredBlocks is the number of blocks that an InfiniBand end has registered for each direction, each for one
// segment (the paper of 2013, and package ib).
const registeredBlocks = 1000

// minSendQueue is the least size of ether's send queue in bytes: it takes two trains, but not a third.
const minSendQueue = 112 << 10

// frameOverhead is what Linux charges a send queue for a frame beside its bytes, for the structures that describe it:
// 2250 bytes were measured for frames of 1472.
const frameOverhead = 768

// sendRoom returns the time that a send queue of so many bytes takes frames ahead, of which the longest have so many
// bytes. 0 bytes: the queue of Ethernet has learnt to hold a millisecond of the rate, as in package ether. Before a
// shaper every frame counts with its overhead, before a line only every train.
func (w *route) sendRoom(bytes, longest int) time.Duration {
	each := w.each
	if w.shaper.each > 0 {
		each = w.shaper.each * float64(longest+w.around) / float64(longest+frameOverhead)
	}
	if bytes > 0 || w.ib {
		return time.Duration(float64(cmp.Or(bytes, defaultQueue)) * each)
	}
	return max(time.Millisecond, time.Duration(minSendQueue*each))
}

// line is a host's line to the switch.
type line struct {
	free microproto.Instant
	last microproto.Instant // when the last frame reaches its next process: frames stay in order
	// shaped is when the bucket of a shaper without a bound would be empty.
	shaped microproto.Instant
}

// port sends the frames that it holds, one after the other.
type port struct{ free microproto.Instant }

// flight is a frame or a train in transit. first and last are when its first and its last frame
// reach the next process as a whole. If control is not nil, the flight is a control message; if kept is not nil, a copy
// of the sender's block.
type flight struct {
	frame       microproto.Frame
	control     *controlMessage
	kept        *buddy.Copy
	from, to    int32
	count       int32
	unit        int32  // bytes of each frame but the last
	lost        uint64 // by frame, from bit 0
	first, last microproto.Instant
	rest        time.Duration // of the latency, after the backplane
	// For a flight that a port takes frame by frame: the number of frames handled, and when the
	// first and the last frame have left the port; leaves is 0 while all are lost.
	handled        int32
	begins, leaves microproto.Instant
}

// connect lays out the networks of the model for so many hosts.
func (e *engine) connect(hosts int) {
	e.backplanes, e.wanLinks = make([]*sharedLink, len(e.model.Networks)), make([][2]*sharedLink, len(e.model.WAN))
	e.routes = make([]route, hosts)
	e.lookahead = time.Hour
	e.memory.init()
	ports := make([]int, len(e.model.Networks))
	for rank := range e.routes {
		ports[e.host(rank).Network]++
	}
	for i := range e.model.Networks {
		if k := &e.model.Networks[i]; k.Backplane > 0 {
			t := linkModel{each: 1e9 / k.Backplane, plane: true}
			t.queue = time.Duration(float64(ports[i]*k.Queue) * t.each)
			e.backplanes[i] = e.newSharedLink(t)
		}
	}
	for i := range e.model.WAN {
		w := &e.model.WAN[i]
		for end := range 2 {
			t := linkModel{each: 1e9 / w.Rate, latency: w.Latency, jitter: int64(w.Jitter), loss: w.Loss}
			t.queue = time.Duration(float64(w.Queue) * t.each)
			e.wanLinks[i][end] = e.newSharedLink(t)
		}
	}
	for rank := range e.routes {
		h := e.host(rank)
		k := &e.model.Networks[h.Network]
		w := route{
			each: 1e9 / k.Rate, around: k.Frame, latency: k.Latency, jitter: int64(k.Jitter), loss: k.Loss,
			ib: k.Kind == cluster.IB, site: h.Site, plane: e.backplanes[h.Network], accepts: cmp.Or(e.run.ReceiveQueue,
				defaultQueue),
		}
		if w.ib && e.run.ReceiveQueue == 0 {
			w.accepts = registeredBlocks * k.MTU
		}
		w.shaper = newShaper(&k.Shaper)
		w.room = w.sendRoom(e.run.SendQueue, k.MTU-udpHeaders)
		w.blocks = time.Duration(float64(cmp.Or(e.run.SendQueue, registeredBlocks*k.MTU)) * w.each)
		w.queue = time.Duration(float64(k.Queue) * w.each)
		e.routes[rank] = w
		ahead := w.latency
		if w.plane != nil {
			ahead /= 2
		}
		e.lookahead = max(1, min(e.lookahead, ahead))
	}
	if e.sharesCores() {
		e.lookahead = 1
	}
	for _, p := range e.processes {
		p.all = e.processes
	}
}

// Carry implements World.
func (m *machine) Carry(_ *virtual.Host, _ int, f microproto.Frame) bool {
	e, l := m.e, &m.line
	to := int(f.Peer) - 1
	w, bytes := &e.routes[m.index], len(f.Data)
	within := e.run.hostOf(int(m.index)) == e.run.hostOf(to) // one process, whose memory is never full
	if !within && !m.accepts(w, f.Mode) {
		return false
	}
	count, unit := f.Count(), bytes
	if count > 1 {
		unit = f.Segment
	}
	m.rank.Segments += uint64(count)
	m.rank.Bytes += uint64(bytes)
	first, last := m.now, m.now
	if m.costly {
		cost := time.Duration(count)*m.class.Send.Segment + time.Duration(m.class.Send.Byte*float64(bytes))
		first, last = m.chargeSegments(m.now, m.now, cost, count, true)
	}
	if e.lost[m.index] || e.lost[to] || len(e.cuts) > 0 && e.disconnected(int(m.index), to) {
		m.gone.Add(uint64(count))
		f.Release()
		return true
	}
	if w.shaper.each > 0 && !within {
		m.shape(f, to, unit, last)
		return true
	}
	fl := m.flight()
	*fl = flight{frame: f, from: m.index, to: int32(to), count: int32(count), unit: int32(unit), first: first, last: last}
	if within {
		m.hand(fl)
		return true
	}
	each, final := w.of(unit), w.of(bytes-unit*(count-1))
	start := max(l.free, first)
	end := max(start.Add(time.Duration(count-1)*each+final), last.Add(final))
	l.free = end
	fl.first, fl.last = start.Add(min(each, end.Sub(start))), end
	m.leave(fl, w, start)
	return true
}

// accepts reports whether the line takes a frame of a mode. If not, it reports room later. InfiniBand takes synchronous
// frames while there are blocks. Newer asynchronous frames replace those that wait there, as those in the node do.
func (m *machine) accepts(w *route, mode microproto.Mode) bool {
	if m.full { // as a driver, which asks a full link again only when it reports room
		return false
	}
	room := w.room
	if w.ib && mode == microproto.ModeSynchronous {
		room = w.blocks
	}
	free := m.line.sent(&w.shaper)
	if free.Sub(m.now) <= room {
		return true
	}
	m.full = true
	again := room / 2 // a socket reports room when half of its queue is free
	if w.ib {
		again = room
	}
	m.schedule(free.Add(-again), evRoom, nil)
	return false
}

// hand passes a flight to another rank of the process, over its memory. It costs the protocol's time at both ends only.
func (m *machine) hand(fl *flight) {
	fl.first, fl.last = fl.first.Add(m.e.lookahead), fl.last.Add(m.e.lookahead)
	if m.costly {
		m.post(fl.to, fl.first, evArrive, fl)
		return
	}
	m.post(fl.to, fl.last, evInput, fl)
}

// sent returns when the frames that wait in the host have left it.
func (l *line) sent(s *shaper) microproto.Instant {
	switch {
	case s.each == 0:
		return l.free
	case s.outside:
		return 0
	}
	return l.shaped
}

// leave sends a flight from the host's line to its next process. The flight's first bit left at
// start.
func (m *machine) leave(fl *flight, w *route, start microproto.Instant) {
	e, l := m.e, &m.line
	late := w.latency
	next, kind := fl.to, evPort
	switch r := &e.routes[fl.to]; {
	case r.site != w.site:
		next, kind = e.wanLink(w.site, r.site).index, evPass
	case r.plane != nil:
		next, kind = r.plane.index, evPass
		fl.rest = late - late/2
		late /= 2
	}
	if w.jitter > 0 {
		late += time.Duration(m.process.rand.Int64N(w.jitter))
	}
	fl.first = max(fl.first.Add(late), l.last)
	fl.last = max(fl.last.Add(late), fl.first)
	l.last = fl.last
	if w.ib { // the first bit goes on at once (cut-through)
		fl.first = start.Add(late)
	}
	m.post(next, fl.first, kind, fl)
}

// of returns the time of a frame of so many bytes on the line.
func (w *route) of(bytes int) time.Duration {
	return time.Duration(float64(bytes+w.around)*w.each + 0.5)
}

// forward passes a flight through a port that sends a byte in each nanoseconds and holds at most
// queue; frames that do not fit are lost. through reports that the port stores no frame. It returns
// the number of frames lost, and when to call it again for frames that have not arrived by now; 0:
// the flight is through.
func (p *port) forward(f *flight, now microproto.Instant, each float64, around int, queue time.Duration,
	through bool) (lost int, again microproto.Instant) {
	all := int(f.count)
	unit := time.Duration(float64(int(f.unit)+around)*each + 0.5)
	final := time.Duration(float64(len(f.frame.Data)-(all-1)*int(f.unit)+around)*each + 0.5)
	if f.handled > 0 {
		return p.squeeze(f, now, now, unit, final, queue)
	}
	stored, known := final, now
	if through {
		stored, known = 0, microproto.Never
	}
	start := max(p.free, f.first)
	carried, _ := f.carried()
	end := max(start.Add(time.Duration(carried-1)*unit+final), f.last.Add(stored))
	// There is room for the whole flight. Frames of others that arrive between its frames do not
	// find the port full of frames that have not arrived yet.
	if queue == 0 || end.Sub(f.first) <= queue {
		f.first, f.last = min(start.Add(unit), end), end
		p.free = end
		return 0, 0
	}
	f.leaves = 0
	return p.squeeze(f, now, known, unit, final, queue)
}

// squeeze is forward frame by frame, for a flight that may not fit. Frames of other flights arrive
// between its frames and have the same right to the queue. Frames arrive evenly between the first
// and the last. Those that arrive by the instant known are decided on: all at once at a backplane, where a flight that
// was kept until its last frame came would reach the port behind it as one burst.
func (p *port) squeeze(f *flight, now, known microproto.Instant, unit, final, queue time.Duration) (lost int,
	again microproto.Instant) {
	all := f.count
	gap := time.Duration(0)
	if all > 1 {
		gap = f.last.Sub(f.first) / time.Duration(all-1)
	}
	for ; f.handled < all; f.handled++ {
		came := f.first.Add(time.Duration(f.handled) * gap)
		if came > known {
			return lost, came
		}
		took := unit
		if f.handled == all-1 {
			took = final
		}
		switch bit := uint64(1) << f.handled; {
		case f.lost&bit != 0:
		case p.free.Sub(came) > queue:
			f.lost |= bit
			lost++
		default:
			p.free = max(p.free, came).Add(took)
			if f.leaves == 0 { // as if those lost before had left, too: frames are evenly spaced
				f.begins = p.free.Add(-time.Duration(f.handled) * unit)
			}
			f.leaves = p.free
		}
	}
	if f.leaves > 0 {
		f.first, f.last = max(f.begins, now), max(f.leaves, now)
	}
	f.handled = 0
	return lost, 0
}

// carried returns the number of frames that are not lost, and about their bytes.
func (f *flight) carried() (frames, bytes int) {
	all := len(f.frame.Data)
	if f.lost == 0 {
		return int(f.count), all
	}
	frames = int(f.count) - bits.OnesCount64(f.lost)
	return frames, min(all, frames*int(f.unit))
}

// over reports whether every frame of a flight is lost.
func (f *flight) over() bool { return f.lost == 1<<f.count-1 }

// draw draws which frames of a flight are lost by chance, and returns how many.
func (p *process) draw(f *flight, loss float64) (lost int) {
	if loss <= 0 {
		return 0
	}
	for i := p.skip(loss); i < int(f.count); i += 1 + p.skip(loss) {
		if bit := uint64(1) << i; f.lost&bit == 0 {
			f.lost |= bit
			lost++
		}
	}
	return lost
}

// skip returns the number of frames before the next that is lost, from a geometric distribution.
func (p *process) skip(loss float64) int {
	if loss >= 1 {
		return 0
	}
	return int(min(math.Log1p(-p.rand.Float64())/math.Log1p(-loss), 1<<20))
}

// overflow returns the number of frames lost by a receiver that accepts so many bytes, of which some
// wait, and that handles a frame in each nanoseconds. Frames arrive evenly; when the last of a long
// flight arrives, others have been handled.
func (f *flight) overflow(waiting, accepts int, each float64) (lost int) {
	gap := 0.0
	if f.count > 1 {
		gap = float64(f.last.Sub(f.first)) / float64(f.count-1)
	}
	held := float64(waiting)
	for i := range f.count {
		switch bit := uint64(1) << i; {
		case f.lost&bit != 0:
		case held+float64(f.unit) > float64(accepts):
			f.lost |= bit
			lost++
		default:
			held += float64(f.unit)
		}
		held = max(0, held-gap/max(each, 1e-6)*float64(f.unit))
	}
	return lost
}

// countLost counts lost frames of a host.
func (e *engine) countLost(from int32, frames int) {
	if frames > 0 {
		e.hosts[from].gone.Add(uint64(frames))
	}
}

// enterPort takes a flight through the host's port of the switch.
func (m *machine) enterPort(f *flight) {
	w := &m.e.routes[m.index]
	queue := w.queue
	if w.ib {
		queue = 0
	}
	came := f.first
	lost, again := m.port.forward(f, m.now, w.each, w.around, queue, w.ib)
	m.e.countLost(f.from, lost)
	if again > 0 {
		m.schedule(again, evPort, f)
		return
	}
	m.e.countLost(f.from, m.draw(f, w.loss))
	if f.over() {
		m.land(f)
		return
	}
	if w.ib && w.queue > 0 {
		m.hold(f, came, m.port.free.Add(-w.queue), w.latency)
	}
	if m.costly {
		m.schedule(f.first, evArrive, f)
		return
	}
	m.schedule(f.last, evInput, f)
}

// hold keeps a flight that came at an instant, and all behind it, at its sender until a port or a backplane of
// InfiniBand has room. The sender learns of it after the time late.
func (p *process) hold(f *flight, came, room microproto.Instant, late time.Duration) {
	if room <= came {
		return
	}
	h := p.flight()
	h.last = room.Add(-late)
	p.post(f.from, p.now.Add(late), evHold, h)
}

// arrived handles the arrival of a flight's first frame. The protocol handles frames as they arrive.
func (m *machine) arrived(f *flight) {
	all := len(f.frame.Data)
	if w := &m.e.routes[m.index]; m.waiting+all > w.accepts && (!w.ib || f.frame.Mode == microproto.ModeAsynchronous) {
		m.e.countLost(f.from, f.overflow(m.waiting, w.accepts,
			float64(m.class.Receive.Segment)+m.class.Receive.Byte*float64(f.unit)))
		if f.over() {
			m.land(f)
			return
		}
	}
	m.waiting += all
	if m.queued(f) {
		return
	}
	m.receive(f)
}

// receive charges the protocol's time for a flight.
func (m *machine) receive(f *flight) {
	frames, bytes := f.carried()
	cost := time.Duration(frames)*m.class.Receive.Segment + time.Duration(m.class.Receive.Byte*float64(bytes))
	m.delayWake(f)
	m.backlog.protocolUsed(m, cost)
	_, f.last = m.chargeSegments(f.first, f.last, cost, frames, false)
	m.schedule(f.last, evInput, f)
}

// deliver passes the frames of a flight that were not lost to the host's node.
func (m *machine) deliver(fl *flight) {
	f, lost, unit, count := fl.frame, fl.lost, int(fl.unit), int(fl.count)
	f.Peer = addrOf(int(fl.from))
	fl.frame = microproto.Frame{}
	m.land(fl)
	m.waiting = max(0, m.waiting-len(f.Data))
	switch {
	case m.e.lost[m.index]:
		f.Release()
		return
	case lost == 0:
		m.host.Node.Input(m.now, 0, f)
	default:
		for at := 0; at < count; at++ {
			end := at
			for end < count && lost>>end&1 == 0 {
				end++
			}
			if end > at {
				run := f.Retain()
				run.Data = f.Data[at*unit : min(end*unit, len(f.Data))]
				m.host.Node.Input(m.now, 0, run)
			}
			at = end
		}
		f.Release()
	}
	m.host.Settle()
}
