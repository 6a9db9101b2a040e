package rail

import "github.com/p2pdc/p2pdc/microproto"

// Queue holds frames until a link takes them, oldest first.
type Queue struct {
	frames []microproto.Frame
	owners []Owner
	bodies bool // some frames may have a Body
}

// Owner names the segment of the value that a frame carries. A synchronous frame is never
// replaced; its Index is -1.
type Owner struct {
	Session uint32
	Tag     uint32
	Index   int32
}

// Len returns the number of frames.
func (q *Queue) Len() int { return len(q.frames) }

// Frames returns the frames. The slice is the queue's.
func (q *Queue) Frames() []microproto.Frame { return q.frames }

// Push appends a frame.
func (q *Queue) Push(f microproto.Frame, o Owner) {
	q.bodies = q.bodies || f.Body != nil
	q.frames = append(q.frames, f)
	q.owners = append(q.owners, o)
}

// Replace puts f in the place of the waiting frame with the same owner, if there is one. It does
// not put it at the end: a busy link would then never carry the last segments of a value that is
// replaced over and over.
func (q *Queue) Replace(f microproto.Frame, o Owner) bool {
	for i := range q.owners {
		if q.owners[i] == o {
			q.frames[i].Release()
			q.frames[i] = f
			q.bodies = q.bodies || f.Body != nil
			return true
		}
	}
	return false
}

// Remove drops the first k frames, which belong to the link now.
func (q *Queue) Remove(k int) {
	left := copy(q.frames, q.frames[k:])
	copy(q.owners, q.owners[k:])
	q.truncate(left)
}

// Flatten copies the bodies of the waiting frames out of the memory of users. It returns how many
// frames were dropped because there was no memory.
func (q *Queue) Flatten(from microproto.FrameSource) (dropped int) {
	if !q.bodies {
		return 0
	}
	q.bodies = false
	left := len(q.frames)
	q.keep(func(f *microproto.Frame, _ Owner) bool {
		*f = f.Flatten(from)
		return f.Data != nil
	})
	return left - len(q.frames)
}

// Discard releases the frames of a session.
func (q *Queue) Discard(session uint32) {
	q.keep(func(f *microproto.Frame, o Owner) bool {
		if o.Session == session {
			f.Release()
		}
		return o.Session != session
	})
}

// keep removes the frames for which kept returns false.
func (q *Queue) keep(kept func(f *microproto.Frame, o Owner) bool) {
	left := 0
	for i := range q.frames {
		if kept(&q.frames[i], q.owners[i]) {
			q.frames[left], q.owners[left] = q.frames[i], q.owners[i]
			left++
		}
	}
	q.truncate(left)
}

// Clear releases all frames.
func (q *Queue) Clear() {
	for i := range q.frames {
		q.frames[i].Release()
	}
	q.Remove(len(q.frames))
}

func (q *Queue) truncate(n int) {
	clear(q.frames[n:])
	q.frames, q.owners = q.frames[:n], q.owners[:n]
}
