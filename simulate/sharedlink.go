package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// sharedLink is a link that many hosts share: one direction of a WAN link, or the backplane of a
// switch.
type sharedLink struct {
	process
	port
	linkModel
	e    *engine
	last microproto.Instant // when the last flight reaches its next process: flights stay in order
}

// linkModel is what a shared link does to flights.
type linkModel struct {
	each    float64       // nanoseconds per byte
	queue   time.Duration // time that it holds frames at most (a backplane: the queues of all ports); 0: no bound
	latency time.Duration
	jitter  int64
	loss    float64
	plane   bool // a backplane, which stores nothing
}

func (e *engine) newSharedLink(p linkModel) *sharedLink {
	t := &sharedLink{e: e, linkModel: p}
	e.addProcess(&t.process, t)
	return t
}

// wanLink returns the link from one site to another.
func (e *engine) wanLink(from, to int) *sharedLink {
	i := e.model.WANOf(from, to)
	if e.model.Sites[from] == e.model.WAN[i].Between[0] {
		return e.wanLinks[i][0]
	}
	return e.wanLinks[i][1]
}

// happen passes a flight through.
func (t *sharedLink) happen(ev *event) {
	f := ev.what
	e := t.e
	w, r := &e.routes[f.from], &e.routes[f.to]
	queue := t.linkModel.queue
	if t.plane && w.ib {
		queue = 0
	}
	came := f.first
	lost, again := t.forward(f, t.now, t.each, w.around, queue, t.plane)
	e.countLost(f.from, lost)
	if again > 0 {
		t.schedule(again, evPass, f)
		return
	}
	if t.plane && w.ib && t.linkModel.queue > 0 {
		t.hold(f, came, t.free.Add(-t.linkModel.queue), w.latency-f.rest)
	}
	e.countLost(f.from, t.draw(f, t.loss))
	if f.over() {
		t.land(f)
		return
	}
	if t.plane {
		late := f.rest - time.Duration(float64(int(f.unit)+w.around)*t.each+0.5) // a backplane stores nothing
		f.first, f.last = max(t.now.Add(f.rest), f.first.Add(late)), f.last.Add(f.rest)
		t.post(f.to, f.first, evPort, f)
		return
	}
	late := t.latency + r.latency
	next, kind := f.to, evPort
	if r.plane != nil {
		next, kind = r.plane.index, evPass
		f.rest = r.latency - r.latency/2
		late -= f.rest
	}
	if t.jitter > 0 {
		late += time.Duration(t.process.rand.Int64N(t.jitter))
	}
	f.first = max(f.first.Add(late), t.last)
	f.last = max(f.last.Add(late), f.first)
	t.last = f.last
	t.post(next, f.first, kind, f)
}
