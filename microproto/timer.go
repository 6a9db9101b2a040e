package microproto

// TimerID identifies a pending timer; 0 stands for none. The id of a timer that has fired or
// was cancelled identifies no timer, even when its slot is reused.
type TimerID uint64

type timer struct {
	deadline   Instant
	seq        uint64
	chain      *chain
	arg        any
	messageID  uint64 // identity of the message that arg is, 0 for other types
	generation uint32 // of the slot
	heapIndex  int32  // -1: the slot is free
}

// timers is a binary heap of indices into slots, which are reused. Timers of one deadline
// are ordered by creation.
type timers struct {
	slots  []timer
	heap   []int32
	free   []int32
	seq    uint64
	inline struct {
		slots      [inlineTimers]timer
		heap, free [inlineTimers]int32
	}
}

// inlineTimers is the number of timers that need no allocation.
const inlineTimers = 3

func (t *timers) init() {
	t.slots = t.inline.slots[:0]
	t.heap = t.inline.heap[:0]
	t.free = t.inline.free[:0]
}

func (t *timers) add(n timer, limit int) TimerID {
	if len(t.heap) >= limit {
		return 0
	}
	var i int32
	if k := len(t.free); k > 0 {
		i = t.free[k-1]
		t.free = t.free[:k-1]
	} else {
		i = int32(len(t.slots))
		t.slots = append(t.slots, timer{})
	}
	t.seq++
	n.seq, n.generation = t.seq, t.slots[i].generation+1
	n.heapIndex = int32(len(t.heap))
	t.slots[i] = n
	t.heap = append(t.heap, i)
	t.up(len(t.heap) - 1)
	return TimerID(uint64(n.generation)<<32 | uint64(i+1))
}

// cancel cancels a pending timer. It reports whether the id is of one.
func (t *timers) cancel(id TimerID) bool {
	i := int64(uint32(id)) - 1
	if i < 0 || i >= int64(len(t.slots)) {
		return false
	}
	if p := &t.slots[i]; p.heapIndex < 0 || p.generation != uint32(id>>32) {
		return false
	}
	t.remove(int32(i))
	return true
}

// pop removes the first timer that is due at now and was created no later than seq.
func (t *timers) pop(now Instant, seq uint64) (timer, bool) {
	if len(t.heap) == 0 {
		return timer{}, false
	}
	first := t.slots[t.heap[0]]
	if first.deadline > now || first.seq > seq {
		return timer{}, false
	}
	t.remove(t.heap[0])
	return first, true
}

func (t *timers) deadline() Instant {
	if len(t.heap) == 0 {
		return Never
	}
	return t.slots[t.heap[0]].deadline
}

func (t *timers) remove(i int32) {
	p := &t.slots[i]
	at, last := int(p.heapIndex), len(t.heap)-1
	if at < last {
		t.swap(at, last)
	}
	t.heap = t.heap[:last]
	if at < last {
		t.down(at)
		t.up(at)
	}
	p.heapIndex = -1
	p.arg, p.chain = nil, nil
	t.free = append(t.free, i)
}

func (t *timers) before(a, b int32) bool {
	p, q := &t.slots[a], &t.slots[b]
	if p.deadline != q.deadline {
		return p.deadline < q.deadline
	}
	return p.seq < q.seq
}

func (t *timers) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.slots[t.heap[i]].heapIndex = int32(i)
	t.slots[t.heap[j]].heapIndex = int32(j)
}

func (t *timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(t.heap[i], t.heap[parent]) {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

func (t *timers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			return
		}
		if child+1 < len(t.heap) && t.before(t.heap[child+1], t.heap[child]) {
			child++
		}
		if !t.before(t.heap[child], t.heap[i]) {
			return
		}
		t.swap(i, child)
		i = child
	}
}
