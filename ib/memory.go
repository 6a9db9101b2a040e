package ib

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
)

// memory is the link's registered region: send blocks, then receive blocks, then the pattern
// that verifies windows, then the cells for the stamps of writes into windows. A send block is
// free or in use by a frame. The receive blocks are divided into shares, one per queue pair; a
// receive block is posted there or in use by a received frame.
//
// The mapping outlives Close until the last frame over it is released.
type memory struct {
	bytes  []byte
	base   uintptr // of bytes
	region verbs.Region
	addr   uint64
	key    uint32

	blockBytes, sendBlocks, receiveBlocks, receivesPerPair int
	pattern                                                int // offset of the pattern
	stampOffset                                            int // offset of the first cell

	mu       sync.Mutex
	free     fifo.Queue[int32] // send blocks, reused first in, first out
	reserved int               // free blocks that Acquire leaves for frames that must be copied
	inUse    int               // blocks in use by frames
	buffers  []*microproto.Buffer
	shares   []receiveShare
	closed   bool
}

// receiveShare is the receive blocks of one queue pair.
type receiveShare struct {
	owner *pair // nil: none
	inUse int   // blocks in use by frames
}

func newMemory(d verbs.Domain, c *Config) (*memory, error) {
	b, region, err := register(d, c.blockRegion(), verbs.LocalWrite)
	if err != nil {
		return nil, err
	}
	m := &memory{
		bytes: b, base: address(b), region: region, addr: region.Addr(), key: region.LocalKey(),
		blockBytes: c.BlockBytes, sendBlocks: c.SendBlocks, receiveBlocks: c.ReceiveBlocks,
		receivesPerPair: c.receivesPerPair(), reserved: max(1, c.SendBlocks/8),
		buffers: make([]*microproto.Buffer, c.SendBlocks+c.ReceiveBlocks), shares: make([]receiveShare, 2*c.Peers),
	}
	m.pattern = (m.sendBlocks + m.receiveBlocks) * m.blockBytes
	m.stampOffset = m.pattern + patternBytes
	m.free.Reserve(m.sendBlocks)
	for i := range m.buffers {
		free := m.freeSend
		if i >= m.sendBlocks {
			free = m.freeReceive
		} else {
			m.free.Push(int32(i))
		}
		m.buffers[i] = microproto.NewBuffer(m.blockAt(i), func(*microproto.Buffer) { free(int32(i)) })
		m.buffers[i].Scarce = true
	}
	return m, nil
}

// register allocates and registers n bytes.
func register(d verbs.Domain, n int, access verbs.Access) ([]byte, verbs.Region, error) {
	b, err := verbs.Allocate(n)
	if err != nil {
		return nil, nil, err
	}
	r, err := d.Register(b, access)
	if err == nil {
		return b, r, nil
	}
	remedy := ""
	if limit := new(verbs.LockLimitError); errors.As(err, &limit) {
		remedy = " (--ib-blocks, or smaller blocks)"
	}
	return nil, nil, errors.Join(fmt.Errorf("ib: cannot register memory: %w%s", err, remedy), verbs.Free(b))
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// blockAt returns the memory of block i.
func (m *memory) blockAt(i int) []byte {
	return m.bytes[i*m.blockBytes : (i+1)*m.blockBytes : (i+1)*m.blockBytes]
}

// offset returns the offset of b in the blocks, if it lies there.
func (m *memory) offset(b []byte) (int, bool) {
	at := address(b)
	if at < m.base || at-m.base+uintptr(len(b)) > uintptr(m.pattern) {
		return 0, false
	}
	return int(at - m.base), true
}

// acquire returns a frame over a free send block, if one is to spare.
func (m *memory) acquire(n int) (microproto.Frame, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.free.Len() <= m.reserved || n > m.blockBytes {
		return microproto.Frame{}, false
	}
	i := m.free.Pop()
	m.inUse++
	return m.buffers[i].Frame(0, 0, n), true
}

// acquireForCopy returns a block for a copy that is sent at once. It may return the last one.
func (m *memory) acquireForCopy() (int32, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.free.Len() == 0 {
		return 0, false
	}
	m.inUse++
	return m.free.Pop(), true
}

// freeSend returns a send block.
func (m *memory) freeSend(i int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free.Push(i)
	m.inUse--
	m.unmapIfUnused()
}

func (m *memory) freeBlocks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.free.Len()
}

// assignShare assigns a free share to a pair.
func (m *memory) assignShare(p *pair) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.shares {
		if m.shares[i].owner == nil && m.shares[i].inUse == 0 {
			m.shares[i].owner = p
			return i, nil
		}
	}
	return 0, fmt.Errorf("ib: all %d connections are in use: allow more peers (Config.Peers)", len(m.shares)/2)
}

// releaseShare releases a share. It becomes free when the last frame over its blocks has been
// released.
func (m *memory) releaseShare(s int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares[s].owner = nil
}

// frameOver returns a frame over the first n bytes of a receive block.
func (m *memory) frameOver(block int32, peer microproto.LinkAddr, n int) microproto.Frame {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inUse++
	m.shares[(int(block)-m.sendBlocks)/m.receivesPerPair].inUse++
	return m.buffers[block].Frame(peer, 0, n)
}

// freeReceive lets the pair that owns a receive block post it again.
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

// close ends the registration. The queue pairs are destroyed.
func (m *memory) close() error {
	err := m.region.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.unmapIfUnused()
	return err
}

// unmapIfUnused frees the memory after close, once no frame uses it. mu is held.
func (m *memory) unmapIfUnused() {
	if m.closed && m.inUse == 0 && m.bytes != nil {
		_ = verbs.Free(m.bytes)
		m.bytes = nil
	}
}
