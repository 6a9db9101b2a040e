package microproto

// TimerID names a pending timer. 0 is none; the id of a timer that has fired or
// was cancelled names nothing, also when its place is used again.
type TimerID uint64

type timer struct {
	deadline Instant
	seq      uint64
	chain    *chain
	arg      any
	stamp    uint64 // the message's identity, 0: not a message
	turn     uint32 // generation of the place
	at       int32  // index in the heap, −1: free
}

// timers is a binary heap over places that are used again. Ties of deadline are
// broken by creation.
type timers struct {
	places []timer
	heap   []int32
	free   []int32
	seq    uint64
	few    struct {
		places     [fewTimers]timer
		heap, free [fewTimers]int32
	}
}

// Most composites have no more timers at once than these, which need no memory of their own.
const fewTimers = 3

func (t *timers) init() {
	t.places, t.heap, t.free = t.few.places[:0], t.few.heap[:0], t.few.free[:0]
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
		i = int32(len(t.places))
		t.places = append(t.places, timer{})
	}
	t.seq++
	n.seq, n.turn = t.seq, t.places[i].turn+1
	n.at = int32(len(t.heap))
	t.places[i] = n
	t.heap = append(t.heap, i)
	t.up(len(t.heap) - 1)
	return TimerID(uint64(n.turn)<<32 | uint64(i+1))
}

// lookup returns the place of a pending timer, −1 for a stale id.
func (t *timers) lookup(id TimerID) int32 {
	i := int64(uint32(id)) - 1
	if i < 0 || i >= int64(len(t.places)) {
		return -1
	}
	if p := &t.places[i]; p.at < 0 || p.turn != uint32(id>>32) {
		return -1
	}
	return int32(i)
}

func (t *timers) cancel(id TimerID) bool {
	i := t.lookup(id)
	if i < 0 {
		return false
	}
	t.remove(i)
	return true
}

// pop takes the first timer that is due at now and was made before seq.
func (t *timers) pop(now Instant, seq uint64) (timer, bool) {
	if len(t.heap) == 0 {
		return timer{}, false
	}
	first := t.places[t.heap[0]]
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
	return t.places[t.heap[0]].deadline
}

// clear cancels every timer.
func (t *timers) clear() {
	for len(t.heap) > 0 {
		t.remove(t.heap[len(t.heap)-1])
	}
}

func (t *timers) remove(i int32) {
	at, last := int(t.places[i].at), len(t.heap)-1
	t.swap(at, last)
	t.heap = t.heap[:last]
	if at < last {
		t.down(at)
		t.up(at)
	}
	p := &t.places[i]
	p.at = -1
	p.arg, p.chain = nil, nil
	t.free = append(t.free, i)
}

func (t *timers) before(a, b int32) bool {
	p, q := &t.places[a], &t.places[b]
	if p.deadline != q.deadline {
		return p.deadline < q.deadline
	}
	return p.seq < q.seq
}

func (t *timers) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.places[t.heap[i]].at = int32(i)
	t.places[t.heap[j]].at = int32(j)
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
