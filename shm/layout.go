package shm

import (
	"errors"
	"fmt"
)

// Offsets of the words of an outbox that stand alone in their lines.
const (
	lineBytes = 64
	commitLen = 8 // bytes of a commit word

	magicAt    = 0 * lineBytes // layoutMagic
	asleepAt   = 2 * lineBytes // generation of the owner's sleep; 0: it is awake
	wantedAt   = 4 * lineBytes // generation of the owner's wish for room in its lane
	tailAt     = 6 * lineBytes // how many lines of the other end's lane the owner has read
	returnedAt = 8 * lineBytes // bit i changes when the owner gives block i of the other end back
	wordsEnd   = 10 * lineBytes

	layoutVersion = 3
	layoutMagic   = 0x50325044432d5300 | layoutVersion
)

// A slot has a buffer for the newest frame, the one that is written, one that is reserved, and those that the other end
// holds.
const (
	buffersPerSlot = 3 + heldPerSlot
	heldPerSlot    = 3
)

// A long frame lies in a block, which the receiver may keep for long without holding up the lane. In the lane is a record
// that names the block. An outbox has maxBlocks blocks, or fewer long ones: those that fit in blockBytes, and at least
// minBlocks.
const (
	maxBlocks  = 32
	minBlocks  = 8
	blockBytes = 4 << 20
)

// sizes are those that the two ends of a connection must have in common.
type sizes struct {
	FrameBytes uint32 // largest frame in the lane
	ValueBytes uint32 // size of a slot's buffer
	Values     uint32 // slots
	LaneBytes  uint32
}

// layout holds the offsets in an outbox.
type layout struct {
	sizes
	lines  uint64 // of the lane, a power of two
	latest int    // words: the newest frame of each slot
	acks   int    // words: notices of each of the other end's slots that the owner has taken
	reads  int    // words: buffers of each of the other end's slots that the owner reads, a bit each
	lane   int
	slots  int
	stride int // bytes of a slot's buffer, padded
	blocks int
	block  int // bytes of a block, padded

	blockCount int
	total      int
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

func newLayout(s sizes) *layout {
	words := roundUp(int(s.Values)*8, 2*lineBytes)
	l := &layout{sizes: s, lines: uint64(s.LaneBytes / lineBytes), stride: roundUp(int(s.ValueBytes), lineBytes)}
	l.latest = wordsEnd
	l.acks = l.latest + words
	l.reads = l.acks + words
	l.lane = roundUp(l.reads+words, pageBytes)
	l.slots = l.lane + int(s.LaneBytes)
	l.block = roundUp(int(s.FrameBytes), pageBytes)
	l.blocks = roundUp(l.slots+int(s.Values)*buffersPerSlot*l.stride, pageBytes)
	l.blockCount = min(max(blockBytes/l.block, minBlocks), maxBlocks)
	l.total = l.blocks + l.blockCount*l.block
	return l
}

const pageBytes = 4096

// largest returns the size of the largest frame in the lane.
func (l *layout) largest() int { return int(max(l.FrameBytes, l.ValueBytes)) }

// forNotices returns the lines that frames leave for notices, which must always fit. There is at most
// one unread notice of each slot.
func (l *layout) forNotices() uint64 { return uint64(l.Values) + 2 }

// buffer returns the offset of a slot's buffer.
func (l *layout) buffer(slot, index int) int { return l.slots + (slot*buffersPerSlot+index)*l.stride }

// blockAt returns the offset of a block.
func (l *layout) blockAt(index int) int { return l.blocks + index*l.block }

// lineAt returns the offset of the line with a number.
func (l *layout) lineAt(number uint64) int { return l.lane + int(number&(l.lines-1))*lineBytes }

// kind is that of a record in the lane.
type kind uint8

const (
	nothing      kind = iota
	frameRecord       // a frame: its length
	blockRecord       // a frame in a block: its length times maxBlocks, plus the number of the block
	noticeRecord      // a slot has a newer frame: its number
	skipRecord        // unused lines up to the end of the ring: their number
)

// record is a decoded commit word.
type record struct {
	kind  kind
	value int    // see kind; of a blockRecord the length
	block int    // of a blockRecord
	lines uint64 // that the record occupies
}

// commitWord encodes a record that begins at a line: 24 bits of its number, 8 of the kind, 32 of the
// value. It is never 0, which stands for a record that is not there yet.
func commitWord(line uint64, k kind, value int) uint64 {
	return (line+1)<<40 | uint64(k)<<32 | uint64(uint32(value))
}

var errRecord = errors.New("the other end wrote an impossible record")

// linesOf returns the lines of a frame of n bytes with its commit word.
func linesOf(n int) uint64 { return uint64(n+commitLen+lineBytes-1) / lineBytes }

// decode decodes the commit word of the record at a line. An error means that no correct program has
// written it.
func (l *layout) decode(line, commit uint64) (record, error) {
	if commit == 0 {
		return record{}, nil
	}
	r := record{kind: kind(commit >> 32), value: int(uint32(commit)), lines: 1}
	index := line & (l.lines - 1)
	valid := commit>>40 == (line+1)&(1<<24-1)
	switch r.kind {
	case frameRecord:
		r.lines = linesOf(r.value)
		valid = valid && r.value > 0 && r.value <= l.largest() && index+r.lines <= l.lines
	case blockRecord:
		r.value, r.block = r.value/maxBlocks, r.value%maxBlocks
		valid = valid && r.value > 0 && r.value <= int(l.FrameBytes) && r.block < l.blockCount
	case noticeRecord:
		valid = valid && r.value < int(l.Values)
	case skipRecord:
		r.lines = uint64(r.value)
		valid = valid && index > 0 && r.lines == l.lines-index
	default:
		valid = false
	}
	if !valid {
		return record{}, fmt.Errorf("%w: %#x at line %d", errRecord, commit, line)
	}
	return r, nil
}

// A slot's newest frame: 29 bits of its version, 32 of its length, indexBits of the buffer's index.
const (
	versionBits = 29
	indexBits   = 3
)

func latestWord(version uint64, length, index int) uint64 {
	return version<<(64-versionBits) | uint64(length)<<indexBits | uint64(index)
}

// decodeLatest decodes a slot's word. A length of 0 means that the slot was never written.
func (l *layout) decodeLatest(w uint64) (length, index int, err error) {
	length, index = int(uint32(w>>indexBits)), int(w&(1<<indexBits-1))
	if length > int(l.ValueBytes) || index >= buffersPerSlot {
		return 0, 0, fmt.Errorf("%w: %#x in a slot", errRecord, w)
	}
	return length, index, nil
}
