package virtual

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/p2pdc/p2pdc/internal/cluster"
	"github.com/p2pdc/p2pdc/microproto"
)

// network carries frames between the hosts: each has a line to its site's switch, every
// port of which queues what goes to a host, and sites are joined by lines with queues. Frames
// that left as one (a train) stay one event; what is lost of them is noted frame by frame.
type network struct {
	e       *engine
	rand    *rand.Rand
	ways    []way     // by rank: its network, as numbers
	lines   []line    // by rank, towards the switch
	ports   []port    // by rank, from the switch
	planes  []port    // by network: backplane
	wides   [][2]port // by wide line: from the first site of it, and from the second
	flights []flight
	free    []int32
	cuts    []*cluster.Event // in force
}

// way is what a frame meets on a host's line.
type way struct {
	each    float64 // nanoseconds per byte
	plane   float64 // likewise, of the backplane; 0: none
	around  int     // bytes on the line around each frame
	latency time.Duration
	jitter  int64
	loss    float64
	accepts int           // bytes that may wait for the protocol
	room    time.Duration // that the line takes before it is full
	queue   time.Duration // that a port holds at most; 0: no bound
	ib      bool
	index   int // of the network
	site    int
}

// defaultQueue is what Linux lets a socket keep, each way, if nobody changes that.
const defaultQueue = 212992

// line is a host's line towards the switch.
type line struct {
	free microproto.Instant
	full bool               // frames wait in the node
	last microproto.Instant // when the last frame is at the switch: order is kept
}

// port sends what it holds, one frame after the other.
type port struct{ free microproto.Instant }

// flight is a frame on its way, or several that left as one. first and last are when the first
// and the last of them have come, whole, to where the flight is next.
type flight struct {
	frame       microproto.Frame
	from, to    int32
	count       int32
	unit        int32  // bytes of each frame but the last
	lost        uint64 // by frame, from bit 0
	first, last microproto.Instant
}

func (n *network) init(e *engine, hosts int) {
	n.e, n.rand = e, rand.New(rand.NewPCG(e.run.Seed, 0x6e6574776f726b))
	n.ways, n.lines, n.ports = make([]way, hosts), make([]line, hosts), make([]port, hosts)
	n.planes, n.wides = make([]port, len(e.model.Networks)), make([][2]port, len(e.model.Wide))
	for rank := range n.ways {
		h := &e.model.Hosts[rank]
		k := &e.model.Networks[h.Network]
		w := way{
			each: 1e9 / k.Rate, around: k.Frame, latency: k.Latency, jitter: int64(k.Jitter), loss: k.Loss,
			ib: k.Kind == cluster.IB, index: h.Network, site: h.Site,
		}
		w.room = time.Duration(float64(cmp.Or(e.run.SendQueue, defaultQueue)) * w.each)
		w.accepts = cmp.Or(e.run.ReceiveQueue, defaultQueue)
		if k.Queue > 0 {
			w.queue = time.Duration(float64(k.Queue) * w.each)
		}
		if k.Backplane > 0 {
			w.plane = 1e9 / k.Backplane
		}
		n.ways[rank] = w
	}
}

// Carry implements World.
func (e *engine) Carry(h *Host, _ int, f microproto.Frame) bool {
	n, from, to := &e.net, int(h.Rank), int(f.Peer)-1
	w, bytes, l := &n.ways[from], len(f.Data), &n.lines[from]
	if l.free.Sub(e.now) > w.room {
		if !l.full {
			l.full = true
			e.queue.push(l.free.Add(-w.room/2), evRoom, int32(from))
		}
		return false
	}
	fl := flight{frame: f, from: int32(from), to: int32(to), count: int32(f.Count()), unit: int32(bytes)}
	if fl.count > 1 {
		fl.unit = int32(f.Segment)
	}
	e.account.sent(from, int(fl.count), bytes)
	m := &e.machines[from]
	class := m.class
	cost := time.Duration(fl.count)*class.Send.Segment + time.Duration(class.Send.Byte*float64(bytes))
	first, last := e.now, e.now
	if m.costly {
		first, last = e.spend(from, e.now, e.now, cost, int(fl.count), true)
	}
	if e.lost[from] || e.lost[to] || len(n.cuts) > 0 && n.parted(from, to) {
		e.account.lose(from, int(fl.count))
		fl.frame.Release()
		return true
	}
	unit, final := w.of(int(fl.unit)), w.of(bytes-int(fl.unit)*int(fl.count-1))
	start := max(l.free, first)
	end := max(start.Add(time.Duration(fl.count-1)*unit+final), last.Add(final))
	l.free = end
	late := w.latency
	if w.jitter > 0 {
		late += time.Duration(n.rand.Int64N(w.jitter))
	}
	fl.first = max(start.Add(min(unit, end.Sub(start))+late), l.last)
	fl.last = max(end.Add(late), fl.first)
	l.last = fl.last
	if w.ib { // the first bit goes on at once
		fl.first = start.Add(late)
	}
	kind := evPort
	if n.ways[to].site != w.site {
		kind = evWide
	}
	e.queue.push(fl.first, kind, n.launch(fl))
	return true
}

// room: a host's line can take frames again.
func (n *network) room(rank int32) {
	n.lines[rank].full = false
	n.e.hosts[rank].Settle()
}

// of is what a frame of so many bytes takes on the line.
func (w *way) of(bytes int) time.Duration {
	return time.Duration(float64(bytes+w.around)*w.each + 0.5)
}

func (n *network) launch(f flight) int32 {
	if k := len(n.free); k > 0 {
		i := n.free[k-1]
		n.free = n.free[:k-1]
		n.flights[i] = f
		return i
	}
	n.flights = append(n.flights, f)
	return int32(len(n.flights) - 1)
}

// land gives a flight's place back.
func (n *network) land(i int32) {
	n.flights[i].frame.Release()
	n.free = append(n.free, i)
}

// forward passes a flight through a port that sends a byte in each nanoseconds and holds no
// more than queue: frames that do not fit are lost. It tells whether any is left.
func (n *network) forward(p *port, f *flight, each float64, around int, queue time.Duration, through bool) bool {
	all := int(f.count)
	unit := time.Duration(float64(int(f.unit)+around)*each + 0.5)
	final := time.Duration(float64(len(f.frame.Data)-(all-1)*int(f.unit)+around)*each + 0.5)
	stored := final
	if through {
		stored = 0
	}
	start := max(p.free, f.first)
	end := max(start.Add(time.Duration(all-1)*unit+final), f.last.Add(stored))
	if queue == 0 || end.Sub(f.last) <= queue+final && start.Sub(f.first)+unit <= queue+unit {
		f.first, f.last = min(start.Add(unit), end), end
		p.free = end
		return true
	}
	return n.squeeze(p, f, unit, final, queue)
}

// squeeze is forward frame by frame, of a flight that may not fit. Frames arrive evenly
// between the first and the last.
func (n *network) squeeze(p *port, f *flight, unit, final, queue time.Duration) bool {
	all := int(f.count)
	gap := time.Duration(0)
	if all > 1 {
		gap = f.last.Sub(f.first) / time.Duration(all-1)
	}
	came, any, lost := f.first, false, 0
	for i := range all {
		took := unit
		if i == all-1 {
			took = final
		}
		switch bit := uint64(1) << i; {
		case f.lost&bit != 0:
		case p.free.Sub(came) > queue:
			f.lost |= bit
			lost++
		default:
			p.free = max(p.free, came).Add(took)
			if !any {
				any, f.first = true, p.free
			}
			f.last = p.free
		}
		came = came.Add(gap)
	}
	n.e.account.lose(int(f.from), lost)
	return any
}

// wide: a flight is at the line to another site.
func (n *network) wide(i int32) {
	f := &n.flights[i]
	a, b := &n.ways[f.from], &n.ways[f.to]
	k := n.e.model.WideOf(a.site, b.site)
	w := &n.e.model.Wide[k]
	p := &n.wides[k][0]
	if n.e.model.Sites[a.site] != w.Between[0] {
		p = &n.wides[k][1]
	}
	each := 1e9 / w.Rate
	if !n.forward(p, f, each, a.around, time.Duration(float64(w.Queue)*each), false) || !n.spare(f, w.Loss) {
		n.land(i)
		return
	}
	late := w.Latency + b.latency
	if w.Jitter > 0 {
		late += time.Duration(n.rand.Int64N(int64(w.Jitter)))
	}
	f.first, f.last = f.first.Add(late), f.last.Add(late)
	n.e.queue.push(f.first, evPort, i)
}

// port: a flight is at the port of its receiver.
func (n *network) port(i int32) {
	f := &n.flights[i]
	w := &n.ways[f.to]
	if w.plane > 0 {
		n.forward(&n.planes[w.index], f, w.plane, w.around, 0, true)
		f.first = f.first.Add(-time.Duration(float64(int(f.unit)+w.around)*w.plane + 0.5)) // nothing is stored there
	}
	queue, p := w.queue, &n.ports[f.to]
	if w.ib {
		queue = 0
	}
	if !n.forward(p, f, w.each, w.around, queue, w.ib) || !n.spare(f, w.loss) {
		n.land(i)
		return
	}
	if w.ib && w.queue > 0 {
		// What a full port cannot take stays with its sender, and whatever is behind it.
		l := &n.lines[f.from]
		l.free = max(l.free, p.free.Add(-w.queue-w.latency))
	}
	if n.e.machines[f.to].costly {
		n.e.queue.push(f.first, evArrive, i)
		return
	}
	n.e.queue.push(f.last, evInput, i)
}

// spare draws which frames of a flight are lost by chance; false: all.
func (n *network) spare(f *flight, loss float64) bool {
	if loss <= 0 {
		return true
	}
	// The number of frames until the next loss is geometric.
	lost := 0
	for i := n.skip(loss); i < int(f.count); i += 1 + n.skip(loss) {
		if bit := uint64(1) << i; f.lost&bit == 0 {
			f.lost |= bit
			lost++
		}
	}
	n.e.account.lose(int(f.from), lost)
	return f.lost != 1<<f.count-1
}

func (n *network) skip(loss float64) int {
	if loss >= 1 {
		return 0
	}
	return int(min(math.Log1p(-n.rand.Float64())/math.Log1p(-loss), 1<<20))
}

// arrive: the first frame of a flight is there; the protocol takes them as they come.
func (n *network) arrive(i int32) {
	f := &n.flights[i]
	m := &n.e.machines[f.to]
	class, all := m.class, len(f.frame.Data)
	if w := &n.ways[f.to]; m.waiting+all > w.accepts && (!w.ib || f.frame.Mode == microproto.ModeAsynchronous) {
		n.e.account.lose(int(f.from), int(f.count))
		n.land(i)
		return
	}
	m.waiting += all
	cost := time.Duration(f.count)*class.Receive.Segment + time.Duration(class.Receive.Byte*float64(all))
	_, f.last = n.e.spend(int(f.to), f.first, f.last, cost, int(f.count), false)
	n.e.queue.push(f.last, evInput, i)
}

// input: the receiver's node takes what has come of a flight.
func (n *network) input(i int32) {
	f := n.flights[i]
	n.flights[i].frame = microproto.Frame{}
	n.free = append(n.free, i)
	h, m := n.e.hosts[f.to], &n.e.machines[f.to]
	m.waiting = max(0, m.waiting-len(f.frame.Data))
	if n.e.lost[f.to] {
		f.frame.Release()
		return
	}
	f.frame.Peer = addrOf(int(f.from))
	if f.lost == 0 {
		h.Node.Frame(n.e.now, f.frame)
		h.Settle()
		return
	}
	for at := 0; at < int(f.count); {
		end := at
		for end < int(f.count) && f.lost>>end&1 == 0 {
			end++
		}
		if end > at {
			run := f.frame.Retain()
			run.Data = f.frame.Data[at*int(f.unit) : min(end*int(f.unit), len(f.frame.Data))]
			h.Node.Frame(n.e.now, run)
		}
		at = end + 1
	}
	f.frame.Release()
	h.Settle()
}

// cut puts an event in force, or ends it.
func (n *network) cut(ev *cluster.Event, on bool) {
	if on {
		n.cuts = append(n.cuts, ev)
		return
	}
	for i, c := range n.cuts {
		if c == ev {
			n.cuts = append(n.cuts[:i], n.cuts[i+1:]...)
			return
		}
	}
}

// parted tells whether nothing passes between two ranks now.
func (n *network) parted(a, b int) bool {
	for _, c := range n.cuts {
		if n.e.parts(c, a, b) {
			return true
		}
	}
	return false
}

// parts tells whether an event of the model is between two ranks.
func (e *engine) parts(c *cluster.Event, a, b int) bool {
	sa, sb := e.model.Sites[e.model.Hosts[a].Site], e.model.Sites[e.model.Hosts[b].Site]
	if c.Cut[1] == "" || c.Cut[0] == c.Cut[1] {
		return sa == c.Cut[0] && sb == sa && e.upper(a) != e.upper(b)
	}
	return sa == c.Cut[0] && sb == c.Cut[1] || sa == c.Cut[1] && sb == c.Cut[0]
}

// upper tells whether a rank is in the upper half of its site.
func (e *engine) upper(rank int) bool {
	below, all := 0, 0
	for r := range e.hosts {
		if e.model.Hosts[r].Site == e.model.Hosts[rank].Site {
			all++
			if r < rank {
				below++
			}
		}
	}
	return 2*below >= all
}
