package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// trunk is a line that many hosts share: one direction of a line between two sites, or the
// backplane of a switch.
type sharedLink struct {
	process
	port
	linkModel
	e    *engine
	last microproto.Instant // when the last flight is where it goes next: order is kept
}

// pipe is what a trunk does to flights.
type linkModel struct {
	each    float64       // nanoseconds per byte
	queue   time.Duration // it holds; 0: no bound
	latency time.Duration
	jitter  int64
	loss    float64
	plane   bool // stores nothing
}

func (e *engine) newSharedLink(p linkModel) *sharedLink {
	t := &sharedLink{e: e, linkModel: p}
	e.addProcess(&t.process, t)
	return t
}

// wide is the line from one site to another.
func (e *engine) wanLink(from, to int) *sharedLink {
	i := e.model.WANOf(from, to)
	if e.model.Sites[from] == e.model.WAN[i].Between[0] {
		return e.wanLinks[i][0]
	}
	return e.wanLinks[i][1]
}

// happen takes a flight through.
func (t *sharedLink) happen(ev *event) {
	f := ev.what
	e, w, r := t.e, &t.e.routes[f.from], &t.e.routes[f.to]
	lost, again := t.forward(f, t.now, t.each, w.around, t.linkModel.queue, t.plane)
	e.countLost(f.from, lost)
	if again > 0 {
		t.schedule(again, evPass, f)
		return
	}
	e.countLost(f.from, t.draw(f, t.loss))
	if f.over() {
		t.land(f)
		return
	}
	if t.plane {
		late := f.rest - time.Duration(float64(int(f.unit)+w.around)*t.each+0.5) // nothing is stored there
		f.first, f.last = max(t.now.Add(f.rest), f.first.Add(late)), f.last.Add(f.rest)
		t.post(f.to, f.first, evPort, f)
		return
	}
	late, next, kind := t.latency+r.latency, f.to, evPort
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
