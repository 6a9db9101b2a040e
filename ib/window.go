package ib

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/internal/fifo"
)

// A window is memory of this end into which one peer writes frames of asynchronous values in
// place, each value into a slot that the writer chooses. Its layout is
//
//	head    64 bytes that the writer writes once, reliably, to verify address and key
//	slots   each: row sums, growing downwards; a stamp; the frame's bytes
//	tail    64 bytes, as the head
//
//	stamp   version, 8 bytes: grows with every write into the slot, never 0
//	        length of the frame, 4 bytes; sum of version, length and row sums, 4 bytes
//
// A row is 1024 bytes of the frame, and its sum is CRC-32C. An unreliable write may land in
// part and in any order, and the next one may begin to land while this end reads. Only sums
// show that a frame is complete: the reader copies a row and sums the copy. It delivers a
// frame when all rows match one stamp. A frame of mixed rows passes with probability 2^-32.
const (
	windowHead   = 64
	windowTail   = 64
	patternBytes = 64 // written into head and tail
	rowBytes     = 1024
	stampFixed   = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func rowsOf(n int) int { return (n + rowBytes - 1) / rowBytes }

// stampBytes returns the room for the stamp and row sums of a frame of n bytes.
func stampBytes(n int) int { return (stampFixed + 4*rowsOf(n) + 63) &^ 63 }

// slotBytes returns the size of a slot for frames of up to n bytes.
func slotBytes(n int) int { return stampBytes(n) + (n+63)&^63 }

// stamp writes the stamp and row sums of a frame to the end of cell and returns that part.
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

// window is memory of this end that one peer writes into.
type window struct {
	bytes        []byte
	region       verbs.Region
	slots        int
	blockBytes   int
	noticeQueued []bool   // by slot
	delivered    []uint64 // version of the last frame delivered, by slot
	sums         []byte   // copy of a slot's stamp and row sums
}

func (l *Link) newWindow() (*window, error) {
	n := l.config.windowRegion()
	if n == 0 {
		return nil, nil
	}
	b, r, err := register(l.domain, n, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		return nil, err
	}
	c := &l.config
	return &window{
		bytes: b, region: r, slots: c.WindowSlots, blockBytes: c.BlockBytes,
		noticeQueued: make([]bool, c.WindowSlots), delivered: make([]uint64, c.WindowSlots),
		sums: make([]byte, stampBytes(c.BlockBytes)),
	}, nil
}

// close ends the other end's right to write. The queue pairs are destroyed.
func (w *window) close() error {
	if err := w.region.Close(); err != nil {
		return err // the adapter still uses the memory
	}
	return verbs.Free(w.bytes)
}

// clear removes what an earlier connection has left. The peer is disconnected.
func (w *window) clear() {
	clear(w.delivered)
	clear(w.noticeQueued)
	for i := range w.slots {
		clear(w.fixed(i))
	}
}

// frameOffset returns the offset of a slot's frame; its stamp lies in front.
func (w *window) frameOffset(slot int) int {
	return windowHead + slot*slotBytes(w.blockBytes) + stampBytes(w.blockBytes)
}

// fixed returns a slot's stamp without the row sums.
func (w *window) fixed(slot int) []byte {
	at := w.frameOffset(slot)
	return w.bytes[at-stampFixed : at]
}

// readResult is the outcome of reading a slot.
type readResult uint8

const (
	readWhole readResult = iota
	readStale            // nothing newer than what was delivered
	readTorn             // incomplete at present
)

// readAttempts bounds the attempts to read a slot that is being written.
const readAttempts = 4

// read copies the newest frame of a slot into dst, which holds blockBytes.
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

// readStamp copies a slot's stamp and row sums and reports whether their sum is right.
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

// copyRows copies a frame row by row, and stops at a row that does not match its sum.
func (w *window) copyRows(slot int, dst []byte) bool {
	data, rows := w.bytes[w.frameOffset(slot):], rowsOf(len(dst))
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

// remoteWindow is the other end's window, for writing. Link.mu guards it.
type remoteWindow struct {
	slots         int
	address       uint64
	key           uint32
	state         verification
	slotOf        map[uint64]int32  // by value
	uses          []slotUse         // by slot
	writes        uint64            // into all slots: the next version
	misses        uint64            // frames for which there was no slot: the clock of uses
	retryAt       uint64            // count of misses before which no slot can be reassigned
	unannounced   fifo.Queue[int32] // slots written without a notice
	isUnannounced []bool            // by slot
}

type slotUse struct {
	value uint64
	last  uint64 // misses at the last use
}

// verification is the state of the check of the other end's address and key.
type verification uint8

const (
	unverified verification = iota
	verifying
	verified
)

// reset prepares for a new connection.
func (r *remoteWindow) reset(o *offer, l *Link) {
	writes := r.writes
	*r = remoteWindow{}
	if l.config.WindowSlots == 0 || o.Slots == 0 {
		return
	}
	*r = remoteWindow{
		slots: int(o.Slots), address: o.Address, key: o.Key, writes: writes,
		slotOf: make(map[uint64]int32, o.Slots), isUnannounced: make([]bool, o.Slots),
	}
	r.unannounced.Reserve(r.slots)
}

// idleMisses is the number of misses per slot after which the slot of an unused value may be
// reassigned.
const idleMisses = 4

// slotFor returns the slot of a value: its own, a new one, or that of a value that seems to be
// sent no more. It returns -1 if there is none.
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

// addressOf returns the remote address of a slot's frame.
func (r *remoteWindow) addressOf(slot int32, block int) uint64 {
	return r.address + windowHead + uint64(slot)*uint64(slotBytes(block)) + uint64(stampBytes(block))
}

// checkWindow returns an error if the offer describes an impossible window.
func checkWindow(o *offer) error {
	size := uint64(windowHead + windowTail + int(o.Slots)*slotBytes(int(o.BlockBytes)))
	if o.Slots > 0 && o.Address+size < o.Address {
		return fmt.Errorf("%w: a window of %d bytes at %#x", errOffer, size, o.Address)
	}
	return nil
}
