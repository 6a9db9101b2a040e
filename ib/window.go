package ib

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// A window is memory of this end into which one peer writes frames of asynchronous
// values in place: a slot for each value, chosen by the writer. Laid out as
//
//	head    64 bytes that the writer writes once, reliably, to prove address and key
//	slots   each: sums of the rows, growing downwards; a stamp; the frame's bytes
//	tail    64 bytes, as the head
//
//	stamp   version 8: grows with every write into the slot, never 0
//	        length 4 of the frame; sum 4 of version, length and the sums of the rows
//
// A row is 1024 bytes of the frame and its sum CRC-32C. An unreliable write may land in
// part, in any order as far as this end is concerned, and the next may begin to land
// while this end reads. So nothing is believed but sums: a row is copied out first, and
// what was copied is summed. A frame goes up when all rows match one stamp. That takes
// for granted only that 2^-32 is rare enough for rows half old and half new.
const (
	windowHead   = 64
	windowTail   = 64
	patternBytes = 64 // written into head and tail
	rowBytes     = 1024
	stampFixed   = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func rowsOf(n int) int { return (n + rowBytes - 1) / rowBytes }

// stampBytes is the room for the stamp and sums of a frame of n bytes.
func stampBytes(n int) int { return (stampFixed + 4*rowsOf(n) + 63) &^ 63 }

// slotBytes is what a slot for frames of up to n bytes takes.
func slotBytes(n int) int { return stampBytes(n) + (n+63)&^63 }

// stamp writes stamp and sums of a frame into the end of cell and returns the part of
// the cell used.
func stamp(cell []byte, version uint64, frame []byte) []byte {
	rows := rowsOf(len(frame))
	used := cell[len(cell)-stampFixed-4*rows:]
	for i := range rows {
		row := frame[i*rowBytes : min((i+1)*rowBytes, len(frame))]
		binary.BigEndian.PutUint32(used[4*(rows-1-i):], crc32.Checksum(row, castagnoli))
	}
	fixed := used[4*rows:]
	binary.BigEndian.PutUint64(fixed, version)
	binary.BigEndian.PutUint32(fixed[8:], uint32(len(frame)))
	sum := crc32.Checksum(used[:4*rows+12], castagnoli)
	binary.BigEndian.PutUint32(fixed[12:], sum)
	return used
}

// window is this end's.
type window struct {
	bytes        []byte
	region       verbs.Region
	slots        int
	blockBytes   int
	noticeQueued []bool   // slots whose notice waits
	delivered    []uint64 // version last handed up, by slot
	sums         []byte   // copy of a slot's stamp and sums
}

func (l *Link) newWindow() (*window, error) {
	n := l.config.windowRegion()
	if n == 0 {
		return nil, nil
	}
	b, err := verbs.Allocate(n)
	if err != nil {
		return nil, err
	}
	r, err := l.domain.Register(b, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		_ = verbs.Free(b)
		return nil, explainLimit(err)
	}
	c := &l.config
	return &window{
		bytes: b, region: r, slots: c.WindowSlots, blockBytes: c.BlockBytes,
		delivered: make([]uint64, c.WindowSlots), noticeQueued: make([]bool, c.WindowSlots), sums: make([]byte, stampBytes(c.BlockBytes)),
	}, nil
}

// close revokes the other end's right to write. Its queue pairs are gone.
func (w *window) close() error {
	if err := w.region.Close(); err != nil {
		return err // the memory is the adapter's still
	}
	return verbs.Free(w.bytes)
}

// clear forgets what another connection has left. Nobody writes now.
func (w *window) clear() {
	clear(w.delivered)
	clear(w.noticeQueued)
	for i := range w.slots {
		clear(w.fixed(i))
	}
}

// data is a slot's room for frames.
func (w *window) data(slot int) []byte {
	at := windowHead + slot*slotBytes(w.blockBytes) + stampBytes(w.blockBytes)
	return w.bytes[at : at+w.blockBytes]
}

// fixed is a slot's stamp without the sums of rows.
func (w *window) fixed(slot int) []byte {
	at := windowHead + slot*slotBytes(w.blockBytes) + stampBytes(w.blockBytes) - stampFixed
	return w.bytes[at : at+stampFixed]
}

// reading is what became of looking into a slot.
type readResult uint8

const (
	readWhole readResult = iota
	readStale            // nothing newer than what was handed up
	readTorn             // not whole, now
)

// attempts of reading a slot that is being written.
const readAttempts = 4

// read copies the newest frame of a slot into dst, which has room for any.
func (w *window) read(slot int, dst []byte) (int, readResult) {
	for range readAttempts {
		version, n, ok := w.readStamp(slot)
		switch {
		case !ok:
			continue
		case version == w.delivered[slot]:
			return 0, readStale
		case w.copyRows(slot, dst[:n]):
			w.delivered[slot] = version
			return n, readWhole
		}
	}
	return 0, readTorn
}

// stamped copies a slot's stamp and sums and tells whether they belong together.
func (w *window) readStamp(slot int) (version uint64, n int, ok bool) {
	at := windowHead + slot*slotBytes(w.blockBytes)
	room := stampBytes(w.blockBytes)
	fixed := w.sums[room-stampFixed:]
	copy(fixed, w.bytes[at+room-stampFixed:])
	version = binary.BigEndian.Uint64(fixed)
	length := uint64(binary.BigEndian.Uint32(fixed[8:]))
	if length == 0 || length > uint64(w.blockBytes) {
		return version, 0, version == 0 && w.delivered[slot] == 0 // never written
	}
	used := stampFixed + 4*rowsOf(int(length))
	copy(w.sums[room-used:room-stampFixed], w.bytes[at+room-used:])
	sum := crc32.Checksum(w.sums[room-used:room-4], castagnoli)
	return version, int(length), sum == binary.BigEndian.Uint32(fixed[12:])
}

// rows copies a frame out row by row, as far as they match the sums.
func (w *window) copyRows(slot int, dst []byte) bool {
	data, rows := w.data(slot), rowsOf(len(dst))
	sums := w.sums[len(w.sums)-stampFixed-4*rows:]
	for i := range rows {
		row := dst[i*rowBytes : min((i+1)*rowBytes, len(dst))]
		copy(row, data[i*rowBytes:])
		if crc32.Checksum(row, castagnoli) != binary.BigEndian.Uint32(sums[4*(rows-1-i):]) {
			return false
		}
	}
	return true
}

// remoteWindow is the other end's, as this end uses it. Guarded by Link.mu.
type remoteWindow struct {
	slots         int
	address       uint64
	key           uint32
	state         verification
	slotOf        map[uint64]int32 // of a value
	uses          []slotUse
	writes        uint64 // of all slots: versions
	misses        uint64 // frames for which there was no slot: the age of use
	retryAt       uint64 // misses, before which no slot can change hands
	unannounced   ring[int32]
	isUnannounced []bool // slots in dirty: written without notice
}

type slotUse struct {
	value uint64
	last  uint64 // misses, when it was used last
}

// proving is how far it is known that the other end's address and key are right.
type verification uint8

const (
	unverified verification = iota
	verifying
	verified
)

// reset begins a connection.
func (r *remoteWindow) reset(o *offer, l *Link) {
	writes := r.writes
	*r = remoteWindow{}
	if l.config.WindowSlots == 0 || o.slots == 0 {
		return
	}
	*r = remoteWindow{
		slots: o.slots, address: o.address, key: o.key, writes: writes,
		slotOf: make(map[uint64]int32, o.slots), isUnannounced: make([]bool, o.slots),
	}
	r.unannounced.grow(o.slots)
}

// restedMisses is how many frames must have found no slot since a value was sent before
// its slot may go to another: that many for each slot.
const idleMisses = 4

// find is the slot of a value: its own, a new one, or that of a value which seems to be
// sent no more. -1: there is none.
func (r *remoteWindow) slotFor(value uint64) int32 {
	if i, ok := r.slotOf[value]; ok {
		return i
	}
	if len(r.uses) < r.slots {
		i := int32(len(r.uses))
		r.uses = append(r.uses, slotUse{value, r.misses})
		r.slotOf[value] = i
		return i
	}
	if r.misses++; r.misses < r.retryAt {
		return -1
	}
	oldest := 0
	for i := range r.uses {
		if r.uses[i].last < r.uses[oldest].last {
			oldest = i
		}
	}
	if r.retryAt = r.uses[oldest].last + uint64(idleMisses*r.slots); r.misses < r.retryAt {
		return -1
	}
	delete(r.slotOf, r.uses[oldest].value)
	r.uses[oldest] = slotUse{value, r.misses}
	r.slotOf[value] = int32(oldest)
	return int32(oldest)
}

// at is the remote address of a slot's frame.
func (r *remoteWindow) addressOf(slot int32, block int) uint64 {
	return r.address + windowHead + uint64(slot)*uint64(slotBytes(block)) + uint64(stampBytes(block))
}

// checkWindow refuses a descriptor that cannot be one.
func checkWindow(o *offer) error {
	size := uint64(windowHead + windowTail + o.slots*slotBytes(o.blockBytes))
	if o.slots > 0 && o.address+size < o.address {
		return fmt.Errorf("%w: a window of %d bytes at %#x", errOffer, size, o.address)
	}
	return nil
}
