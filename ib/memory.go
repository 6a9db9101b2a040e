package ib

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// memory is the link's region: send blocks, then receive blocks, then the cells in
// which writes into windows are stamped. It is registered once. Send blocks are free or
// behind a frame; receive blocks belong to the shares, one for each queue pair, and are
// posted there, or behind a frame that was handed up without a copy.
//
// The mapping outlives Close until the last frame over it is released.
type memory struct {
	bytes  []byte
	base   uintptr // of bytes
	region verbs.Region
	addr   uint64
	key    uint32

	blockBytes, sendBlocks, receiveBlocks, receivesPerPair int
	pattern                                                int // offset of what proves windows
	stampOffset                                            int // of the first cell

	mu       sync.Mutex
	free     ring[int32] // send blocks: taken at the head, put back at the tail
	reserved int         // of them that Acquire leaves, for frames that must be copied
	inUse    int         // blocks behind frames
	buffers  []*microproto.Buffer
	shares   []receiveShare
	closed   bool
}

// share is the receive blocks of one queue pair.
type receiveShare struct {
	owner *pair // nil: none
	inUse int   // of its blocks, behind frames
}

func newMemory(d verbs.Domain, c *Config) (*memory, error) {
	n := c.blockRegion()
	b, err := verbs.Allocate(n)
	if err != nil {
		return nil, err
	}
	m := &memory{
		bytes: b, base: uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		blockBytes: c.BlockBytes, sendBlocks: c.SendBlocks, receiveBlocks: c.ReceiveBlocks, receivesPerPair: c.receivesPerPair(),
		reserved: max(1, c.SendBlocks/8), buffers: make([]*microproto.Buffer, c.SendBlocks+c.ReceiveBlocks),
		shares: make([]receiveShare, 2*c.Peers),
	}
	m.pattern = (m.sendBlocks + m.receiveBlocks) * m.blockBytes
	m.stampOffset = m.pattern + patternBytes
	if m.region, err = d.Register(b, verbs.LocalWrite); err != nil {
		return nil, errors.Join(explainLimit(err), verbs.Free(b))
	}
	m.addr, m.key = m.region.Addr(), m.region.LocalKey()
	m.free.grow(m.sendBlocks)
	for i := range m.buffers {
		give := m.freeSend
		if i >= m.sendBlocks {
			give = m.freeReceive
		} else {
			m.free.push(int32(i))
		}
		m.buffers[i] = microproto.NewBuffer(m.blockAt(i), func(*microproto.Buffer) { give(int32(i)) })
	}
	return m, nil
}

// explainLimit adds to an error of the limit on locked memory how less may be asked for.
func explainLimit(err error) error {
	var limit *verbs.LockLimitError
	if errors.As(err, &limit) {
		return fmt.Errorf("ib: registering memory: %w (--ib-blocks, or smaller blocks)", err)
	}
	return fmt.Errorf("ib: registering memory: %w", err)
}

// at is a block's memory.
func (m *memory) blockAt(i int) []byte {
	return m.bytes[i*m.blockBytes : (i+1)*m.blockBytes : (i+1)*m.blockBytes]
}

// offset tells where in the region b lies, if it does.
func (m *memory) offset(b []byte) (int, bool) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if at < m.base || at-m.base+uintptr(len(b)) > uintptr(m.pattern) {
		return 0, false
	}
	return int(at - m.base), true
}

// acquire returns a frame over a free send block, if there is one to spare.
func (m *memory) acquire(n int) (microproto.Frame, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.free.n <= m.reserved || n > m.blockBytes {
		return microproto.Frame{}, false
	}
	i := m.free.pop()
	m.inUse++
	return m.buffers[i].Frame(0, 0, n), true
}

// take is acquire for a copy that is to be sent now: it may have the last block.
func (m *memory) acquireForCopy() (int32, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.free.n == 0 {
		return 0, false
	}
	m.inUse++
	return m.free.pop(), true
}

// giveSend puts a send block back at the tail.
func (m *memory) freeSend(i int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free.push(i)
	m.inUse--
	m.unmapIfUnused()
}

func (m *memory) freeBlocks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.free.n
}

// assign gives a share to a pair.
func (m *memory) assignShare(p *pair) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.shares {
		if m.shares[i].owner == nil && m.shares[i].inUse == 0 {
			m.shares[i].owner = p
			return i, nil
		}
	}
	return 0, fmt.Errorf("ib: connections with %d peers are open already: raise the number of peers that the receive blocks are shared out to", len(m.shares)/2)
}

// resign takes a share back. It goes to somebody else when the last frame over its
// blocks has been released.
func (m *memory) releaseShare(s int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares[s].owner = nil
}

// receive returns a frame over the first n bytes of a receive block.
func (m *memory) frameOver(block int32, peer microproto.LinkAddr, n int) microproto.Frame {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inUse++
	m.shares[(int(block)-m.sendBlocks)/m.receivesPerPair].inUse++
	return m.buffers[block].Frame(peer, 0, n)
}

// giveReceive has a block posted again by the pair that owns it.
func (m *memory) freeReceive(i int32) {
	m.mu.Lock()
	s := &m.shares[(int(i)-m.sendBlocks)/m.receivesPerPair]
	s.inUse--
	m.inUse--
	owner := s.owner
	m.unmapIfUnused()
	m.mu.Unlock()
	if owner != nil {
		owner.returnBlock(i)
	}
}

// close ends the registration; the queue pairs are gone.
func (m *memory) close() error {
	err := m.region.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.unmapIfUnused()
	return err
}

// unmap frees the memory when nobody uses it any more. The lock is held.
func (m *memory) unmapIfUnused() {
	if m.closed && m.inUse == 0 && m.bytes != nil {
		_ = verbs.Free(m.bytes)
		m.bytes = nil
	}
}

// ring is a bounded queue.
type ring[T any] struct {
	slots   []T
	head, n int
}

// grow makes room for n in all.
func (r *ring[T]) grow(n int) {
	slots := make([]T, n)
	for i := range r.n {
		slots[i] = r.slots[(r.head+i)%len(r.slots)]
	}
	r.slots, r.head = slots, 0
}

func (r *ring[T]) push(x T) {
	at := r.head + r.n
	if at >= len(r.slots) {
		at -= len(r.slots)
	}
	r.slots[at] = x
	r.n++
}

func (r *ring[T]) pop() T {
	var zero T
	x := r.slots[r.head]
	r.slots[r.head] = zero
	if r.head++; r.head == len(r.slots) {
		r.head = 0
	}
	r.n--
	return x
}
