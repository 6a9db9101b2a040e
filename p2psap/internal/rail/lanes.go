package rail

import "github.com/p2pdc/p2pdc/microproto"

// sort drops the first k frames, which are in the order of Push, and puts the others in lanes.
func (w *Window) sort(k int) {
	w.sorted = true
	w.unused = none
	w.waiting -= k
	for c := range w.rings {
		w.rings[c] = ring{none, none}
	}
	for i := range w.frames {
		if i < k {
			w.recycle(int32(i))
		} else {
			w.append(int32(i))
		}
	}
	if w.waiting == 0 {
		w.reset()
	}
}

// reset makes the empty window keep the order of Push.
func (w *Window) reset() {
	clear(w.frames)
	clear(w.offered)
	w.frames, w.entries, w.offered = w.frames[:0], w.entries[:0], w.offered[:0]
	w.waiting, w.sorted, w.bodies = 0, false, false
	w.sent = classBytes{}
}

// laneOf returns the lane of a session.
func (w *Window) laneOf(session uint32) *lane {
	at := int(session & 0xffff)
	for at >= len(w.lanes) {
		w.lanes = append(w.lanes, lane{first: none, last: none, seek: none, class: noClass, turn: turnBytes})
	}
	return &w.lanes[at]
}

// append puts an entry at the end of its session's lane.
func (w *Window) append(i int32) {
	e := &w.entries[i]
	e.next = none
	l := w.laneOf(e.Session)
	if l.first == none {
		l.first, l.last = i, i
		l.seek = none
		w.place(int32(e.Session & 0xffff))
		return
	}
	w.entries[l.last].next = i
	l.last = i
}

// removeFirst removes the first entry of a lane; place must follow.
func (w *Window) removeFirst(l *lane) {
	i := l.first
	if l.seek == i {
		l.seek = w.entries[i].next
	}
	if l.first = w.entries[i].next; l.first == none {
		l.last = none
	}
	w.drop(i)
}

// drop removes an entry that is in no lane any more.
func (w *Window) drop(i int32) {
	w.waiting--
	w.recycle(i)
}

func (w *Window) recycle(i int32) {
	w.frames[i] = microproto.Frame{}
	w.entries[i] = entry{next: w.unused}
	w.unused = i
}

// place puts a lane at the end of the ring of its first frame's class, unless it is in that ring.
func (w *Window) place(at int32) {
	l, class := &w.lanes[at], noClass
	if l.first != none {
		class = w.entries[l.first].Class
	}
	if class == l.class {
		return
	}
	w.leaveRing(l)
	if class == noClass {
		return
	}
	r := &w.rings[class]
	l.class = class
	l.prev, l.next = r.last, none
	if r.first == none {
		r.first = at
	} else {
		w.lanes[r.last].next = at
	}
	r.last = at
}

// leaveRing takes a lane out of its ring.
func (w *Window) leaveRing(l *lane) {
	if l.class == noClass {
		return
	}
	r := &w.rings[l.class]
	if l.prev == none {
		r.first = l.next
	} else {
		w.lanes[l.prev].next = l.next
	}
	if l.next == none {
		r.last = l.prev
	} else {
		w.lanes[l.next].prev = l.prev
	}
	l.class = noClass
}
