package p2psap

import "github.com/p2pdc/p2pdc/microproto"

// frameQueue holds frames until the link takes them, oldest first.
type frameQueue struct {
	frames []microproto.Frame
	owners []frameOwner
	bodies bool // some of them may have a Body
}

// frameOwner tells which piece of which value a frame is. A synchronous frame has
// no segment to be replaced by: index is -1.
type frameOwner struct {
	session SessionID
	tag     Tag
	index   int32
}

func (q *frameQueue) push(f microproto.Frame, o frameOwner) {
	q.bodies = q.bodies || f.Body != nil
	q.frames = append(q.frames, f)
	q.owners = append(q.owners, o)
}

// replace puts f in the place of the frame that waits with the same owner. In its
// place, and not at the end: were a value that did not fit always sent again from
// its first segment, a busy link would never carry the last ones.
func (q *frameQueue) replace(f microproto.Frame, o frameOwner) bool {
	for i := range q.owners {
		if q.owners[i] == o {
			q.frames[i].Release()
			q.frames[i], q.bodies = f, q.bodies || f.Body != nil
			return true
		}
	}
	return false
}

// remove drops the first k, which belong to the link now.
func (q *frameQueue) remove(k int) {
	left := copy(q.frames, q.frames[k:])
	copy(q.owners, q.owners[k:])
	clear(q.frames[left:])
	q.frames, q.owners = q.frames[:left], q.owners[:left]
}

// flatten copies what the frames that wait have in the memory of users, who may be told
// next that it is theirs again. It returns how many there was no memory for.
func (q *frameQueue) flatten(from microproto.FrameSource) (lost int) {
	if !q.bodies {
		return 0
	}
	q.bodies = false
	left := 0
	for i := range q.frames {
		f := q.frames[i].Flatten(from)
		if f.Data == nil {
			lost++
			continue
		}
		q.frames[left], q.owners[left] = f, q.owners[i]
		left++
	}
	clear(q.frames[left:])
	q.frames, q.owners = q.frames[:left], q.owners[:left]
	return lost
}

// forget releases the frames of a session that has ended.
func (q *frameQueue) forget(id SessionID) {
	left := 0
	for i := range q.frames {
		if q.owners[i].session == id {
			q.frames[i].Release()
			continue
		}
		q.frames[left], q.owners[left] = q.frames[i], q.owners[i]
		left++
	}
	clear(q.frames[left:])
	q.frames, q.owners = q.frames[:left], q.owners[:left]
}

func (q *frameQueue) clear() {
	for i := range q.frames {
		q.frames[i].Release()
	}
	q.remove(len(q.frames))
}
