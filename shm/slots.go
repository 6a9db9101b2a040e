package shm

import "math/bits"

// The writer of a slot writes a buffer that is neither the newest nor reserved nor being read, and then makes it the
// newest; or the reserved one, in which the frame lies already. The reader marks the newest buffer as being read and then
// checks that it still is the newest: if so, the writer sees the mark before it chooses again.
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

	next     int  // index of the buffer that is reserved
	reserved bool // it is
	written  bool // it was made the newest since
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

// unused returns the index of a buffer of a slot that may be written.
func (s *slotWriter) unused(w *laneWriter, slot int) int {
	o := &s.slots[slot]
	own := uint64(1) << o.index
	if o.reserved {
		own |= 1 << o.next
	}
	used := own
	if w.in != nil {
		used |= word(w.in, w.reads+8*slot).Load()
	}
	free := ^used & (1<<buffersPerSlot - 1)
	if free == 0 { // no correct end holds so many
		free = ^own
	}
	return bits.TrailingZeros64(free)
}

// write makes a frame the newest of a slot. It reports whether the slot needs a notice, and whether the body lay in its
// place already.
func (s *slotWriter) write(w *laneWriter, slot int, head, body []byte) (notify, inPlace bool) {
	o, index := &s.slots[slot], 0
	if inPlace = s.isReserved(w, slot, head, body); inPlace {
		index, o.written = o.next, true
		copy(w.out[w.buffer(slot, index):], head)
	} else {
		index = s.unused(w, slot)
		b := w.out[w.buffer(slot, index):]
		copy(b[copy(b, head):], body)
	}
	o.version++
	o.index = index
	word(w.out, w.latest+8*slot).Store(latestWord(o.version, len(head)+len(body), index))
	taken := uint64(0)
	if w.in != nil {
		taken = word(w.in, w.acks+8*slot).Load()
	}
	if taken != o.notices {
		return false, inPlace
	}
	o.notices++
	return true, inPlace
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

// newest returns a slot's newest frame and the index of its buffer; no frame if it was delivered before. It marks that
// buffer and the held ones as being read. ok is false if the writer replaced the frame in every attempt.
func (s *slotReader) newest(r *laneReader, slot int, held uint64) (frame []byte, index int, ok bool, err error) {
	at := r.latest + 8*slot
	w := word(r.in, at).Load()
	for range readAttempts {
		if w == s.delivered[slot] {
			return nil, 0, true, nil
		}
		length, index, err := r.decodeLatest(w)
		if err != nil || length == 0 {
			return nil, 0, true, err
		}
		word(r.out, r.reads+8*slot).Store(held | 1<<index)
		seen := w
		if w = word(r.in, at).Load(); w == seen {
			s.delivered[slot] = w
			return r.slot(slot, index, length), index, true, nil
		}
	}
	return nil, 0, false, nil
}

// slot returns the bytes of a frame in a buffer of a slot.
func (r *laneReader) slot(slot, index, length int) []byte {
	at := r.buffer(slot, index)
	return r.in[at : at+length : at+length]
}
