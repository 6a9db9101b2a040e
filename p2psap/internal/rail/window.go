package rail

import "github.com/p2pdc/p2pdc/microproto"

// Window holds the frames of all sessions that wait for a link. While the link takes all that it is
// offered, frames leave in the order of Push. Once the link has refused one, and until the window is
// empty, they leave by class (see pick), in turns between the sessions of a class. The frames of one
// session always keep their order.
type Window struct {
	// BodiesStay: the Body of a synchronous frame may wait in the memory of its user, who gets it back when the
	// other end has accepted the message. Set it for links that are reliable: on others a message may be accepted
	// while a frame that repeats a part of it waits.
	BodiesStay bool

	frames  []microproto.Frame
	entries []entry // of frames
	waiting int
	bodies  bool // some frames may have a Body that must not wait

	sorted  bool   // frames are in lanes; else in the order of Push
	unused  int32  // first entry of the list of unused ones
	lanes   []lane // by index of the session
	rings   [numClasses]ring
	sent    classBytes
	offered []microproto.Frame // copies of the first frames of from
	from    int32              // lane
}

// Owner says whose a frame is. A newer frame of the same session, tag and index replaces it, unless
// Index is negative.
type Owner struct {
	Session uint32 // its low half is the index
	Tag     uint32
	Index   int32
	Class   Class
}

const none = -1

// entry is a frame that waits, or is unused.
type entry struct {
	Owner
	next int32 // in the lane, or in the list of unused ones
}

// lane is what waits of one session, oldest first.
type lane struct {
	first, last int32
	seek        int32 // entry at which Replace begins to search: segments are replaced in their order
	class       Class // that of the first frame: the ring that the lane is in; noClass: in none
	turn        int   // bytes left of its turn
	prev, next  int32 // in the ring
}

// ring holds the lanes whose first frames are of one class, in the order of their turns.
type ring struct{ first, last int32 }

// turnBytes is the length of a session's turn: about the longest train.
const turnBytes = 64 << 10

// Len returns the number of frames.
func (w *Window) Len() int { return w.waiting }

// Frames returns frames to offer to the link now, in this order: all of them, or those of a session's
// turn, after which there may be more. The slice is the window's.
func (w *Window) Frames() []microproto.Frame {
	if !w.sorted {
		return w.frames
	}
	w.offered = w.offered[:0]
	heads := w.heads()
	class := pick(&heads, &w.sent)
	if class == noClass {
		return nil
	}
	w.from = w.rings[class].first
	l := &w.lanes[w.from]
	left := l.turn
	for i := l.first; i != none && w.entries[i].Class == class && (left > 0 || i == l.first); i = w.entries[i].next {
		w.offered = append(w.offered, w.frames[i])
		left -= length(&w.frames[i])
	}
	return w.offered
}

// Sent removes the first k of the newest Frames, which belong to the link now. Fewer than were offered
// mean that the link is full.
func (w *Window) Sent(k int) {
	if !w.sorted {
		if k < w.waiting {
			w.sort(k)
			return
		}
		w.reset()
		return
	}
	clear(w.offered)
	w.offered = w.offered[:0]
	if k == 0 {
		return
	}
	l, bytes := &w.lanes[w.from], 0
	class := l.class
	for range k {
		bytes += length(&w.frames[l.first])
		w.removeFirst(l)
	}
	l.turn -= bytes
	if l.turn <= 0 || l.first == none {
		w.leaveRing(l)
		l.turn = min(max(l.turn, -turnBytes)+turnBytes, turnBytes)
	}
	w.place(w.from)
	if w.waiting == 0 {
		w.reset()
		return
	}
	heads := w.heads()
	w.sent.count(class, bytes, &heads)
}

func length(f *microproto.Frame) int { return len(f.Data) + len(f.Body) }

// heads returns the lengths of the frames that are next in their classes.
func (w *Window) heads() (out classBytes) {
	for c := range w.rings {
		if r := &w.rings[c]; r.first != none {
			out[c] = length(&w.frames[w.lanes[r.first].first])
		}
	}
	return out
}

// Push appends a frame.
func (w *Window) Push(f microproto.Frame, o Owner) {
	w.bodies = w.bodies || w.flattens(&f)
	w.waiting++
	i := w.unused
	if !w.sorted || i == none {
		i = int32(len(w.frames))
		w.frames, w.entries = append(w.frames, f), append(w.entries, entry{Owner: o})
	} else {
		w.unused = w.entries[i].next
		w.frames[i], w.entries[i] = f, entry{Owner: o}
	}
	if w.sorted {
		w.append(i)
	}
}

// Replace puts f in the place of the waiting frame with the same owner, if there is one. It does
// not put it at the end: a busy link would then never carry the last segments of a value that is
// replaced over and over.
func (w *Window) Replace(f microproto.Frame, o Owner) bool {
	if w.waiting == 0 || o.Index < 0 {
		return false
	}
	if !w.sorted {
		w.sort(0)
	}
	l := w.laneOf(o.Session)
	i := l.seek
	for range 2 { // from seek to the end, then from the first
		for ; i != none; i = w.entries[i].next {
			if w.entries[i].Owner != o {
				continue
			}
			w.frames[i].Release()
			w.frames[i] = f
			w.bodies = w.bodies || w.flattens(&f)
			l.seek = w.entries[i].next
			return true
		}
		i = l.first
	}
	return false
}

// Displace releases the oldest frame that may be lost, of the lowest class below one, to make room: values may be lost,
// since newer ones follow. It returns that frame, whose bytes must not be read, and its session; found is false if there
// is none.
func (w *Window) Displace(class Class) (displaced microproto.Frame, session uint32, found bool) {
	if w.waiting > 0 && !w.sorted {
		w.sort(0)
	}
	for c := Bulk; w.waiting > 0 && c > class; c-- {
		for at := w.rings[c].first; at != none; at = w.lanes[at].next {
			if l := &w.lanes[at]; w.entries[l.first].Index >= 0 {
				displaced, session = w.frames[l.first], w.entries[l.first].Session
				w.frames[l.first].Release()
				w.removeFirst(l)
				w.place(at)
				return displaced, session, true
			}
		}
	}
	return displaced, 0, false
}

// flattens reports whether a frame that waits must not refer to its user's memory.
func (w *Window) flattens(f *microproto.Frame) bool {
	return f.Body != nil && !(w.BodiesStay && f.Mode == microproto.ModeSynchronous)
}

// Flatten copies the bodies of the waiting frames out of the memory of users, except those that may stay there. It
// returns how many frames were dropped because there was no memory.
func (w *Window) Flatten(from microproto.FrameSource) (dropped int) {
	if !w.bodies {
		return 0
	}
	w.bodies = false
	before := w.waiting
	w.keep(func(f *microproto.Frame, _ uint32) bool {
		if w.flattens(f) {
			*f = f.Flatten(from)
		}
		return f.Data != nil
	})
	return before - w.waiting
}

// Discard releases the frames of a session.
func (w *Window) Discard(session uint32) {
	w.keep(func(f *microproto.Frame, of uint32) bool {
		if of == session {
			f.Release()
		}
		return of != session
	})
}

// Clear releases all frames.
func (w *Window) Clear() {
	w.keep(func(f *microproto.Frame, _ uint32) bool {
		f.Release()
		return false
	})
}

// keep removes the frames for which kept returns false.
func (w *Window) keep(kept func(f *microproto.Frame, session uint32) bool) {
	if w.waiting == 0 {
		return
	}
	if !w.sorted {
		w.keepUnsorted(kept)
		return
	}
	for at := range w.lanes {
		if l := &w.lanes[at]; l.first != none {
			w.keepIn(l, kept)
			w.place(int32(at))
		}
	}
	if w.waiting == 0 {
		w.reset()
	}
}

func (w *Window) keepUnsorted(kept func(f *microproto.Frame, session uint32) bool) {
	left := 0
	for i := range w.frames {
		if kept(&w.frames[i], w.entries[i].Session) {
			w.frames[left], w.entries[left] = w.frames[i], w.entries[i]
			left++
		}
	}
	clear(w.frames[left:])
	w.frames, w.entries = w.frames[:left], w.entries[:left]
	w.waiting = left
}

func (w *Window) keepIn(l *lane, kept func(f *microproto.Frame, session uint32) bool) {
	last := int32(none)
	l.seek = none
	for i := l.first; i != none; {
		next := w.entries[i].next
		switch {
		case kept(&w.frames[i], w.entries[i].Session):
			last = i
		case last == none:
			l.first = next
			w.drop(i)
		default:
			w.entries[last].next = next
			w.drop(i)
		}
		i = next
	}
	l.last = last
}
