package shm

// A slot has three buffers. The writer writes one that is neither the newest nor the one being read,
// and then makes it the newest. The reader marks the newest buffer as being read and then checks that
// it still is the newest: if so, the writer sees the mark before it chooses again.
//
// A notice in the lane announces a newer frame. The writer adds a notice once the reader has taken the one before.
// The reader takes the notice before it looks for the newest frame, and the writer stores the frame
// before it checks whether the notice was taken: one of them sees the other's store.

// slotWriter writes the slots of this end's outbox.
type slotWriter struct {
	slotOf  map[uint64]int32 // by value
	slots   []slotState
	clock   uint64 // frames with a value
	retryAt uint64 // clock before which no slot can be reassigned
}

type slotState struct {
	value   uint64
	used    uint64 // clock of the last frame
	version uint64
	index   int    // of the newest buffer
	notices uint64 // sent
}

// idleFrames is the number of frames per slot after which the slot of an unused value may be reassigned.
const idleFrames = 8

// slotFor returns the slot of a value: its own, an unused one, or that of a value that seems to be sent
// no more. It returns −1 if there is none.
func (s *slotWriter) slotFor(value uint64, values int) int {
	s.clock++
	if i, ok := s.slotOf[value]; ok {
		s.slots[i].used = s.clock
		return int(i)
	}
	if len(s.slots) < values {
		s.slots = append(s.slots, slotState{value: value, used: s.clock})
		s.slotOf[value] = int32(len(s.slots) - 1)
		return len(s.slots) - 1
	}
	if s.clock < s.retryAt || values == 0 {
		return -1
	}
	oldest := 0
	for i := range s.slots {
		if s.slots[i].used < s.slots[oldest].used {
			oldest = i
		}
	}
	o := &s.slots[oldest]
	if s.retryAt = o.used + uint64(idleFrames*values); s.clock < s.retryAt {
		return -1
	}
	delete(s.slotOf, o.value)
	o.value, o.used = value, s.clock
	s.slotOf[value] = int32(oldest)
	return oldest
}

// write makes a frame the newest of a slot. It reports whether the slot needs a notice.
func (s *slotWriter) write(w *laneWriter, slot int, head, body []byte) (notify bool) {
	o, reading := &s.slots[slot], 0
	if w.in != nil {
		reading = int(word(w.in, w.reads+8*slot).Load()) // index + 1; 0: none
	}
	index := 0
	for index == o.index || index == reading-1 {
		index++ // at most 2: the two differ from it
	}
	b := w.out[w.buffer(slot, index):]
	copy(b[copy(b, head):], body)
	o.version++
	o.index = index
	word(w.out, w.latest+8*slot).Store(latestWord(o.version, len(head)+len(body), index))
	taken := uint64(0)
	if w.in != nil {
		taken = word(w.in, w.acks+8*slot).Load()
	}
	if taken != o.notices {
		return false
	}
	o.notices++
	return true
}

// slotReader reads the slots of the other end's outbox.
type slotReader struct {
	taken     []uint64 // notices, by slot
	delivered []uint64 // word of the last frame delivered, by slot
	again     []int32  // slots whose notices were taken and whose newest frame is still to be read
}

// readAttempts bounds the attempts to find a slot's newest frame while the writer replaces it.
const readAttempts = 8

// take notes that the notice of a slot was read. The caller then has to read the slot.
func (s *slotReader) take(r *laneReader, slot int) {
	s.taken[slot]++
	word(r.out, r.acks+8*slot).Store(s.taken[slot])
}

// newest marks a slot's newest frame as being read and returns it, empty if it was delivered before. ok
// is false if the writer replaced it in every attempt.
func (s *slotReader) newest(r *laneReader, slot int) (frame []byte, ok bool, err error) {
	at := r.latest + 8*slot
	w := word(r.in, at).Load()
	for range readAttempts {
		if w == s.delivered[slot] {
			return nil, true, nil
		}
		length, index, err := r.decodeLatest(w)
		if err != nil || length == 0 {
			return nil, true, err
		}
		word(r.out, r.reads+8*slot).Store(uint64(index) + 1)
		seen := w
		if w = word(r.in, at).Load(); w == seen {
			s.delivered[slot] = w
			return r.slot(slot, index, length), true, nil
		}
	}
	return nil, false, nil
}

// slot returns the bytes of a frame in a buffer of a slot.
func (r *laneReader) slot(slot, index, length int) []byte {
	at := r.buffer(slot, index)
	return r.in[at : at+length : at+length]
}
