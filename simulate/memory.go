package simulate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// memory lends frames and keeps those that are returned. All hosts share one, so that a frame is
// written to memory that was just read. Frames may be returned on any thread.
type memory struct {
	frames spares[*microproto.Buffer]
	put    func(*microproto.Buffer) // bound once
	lent   atomic.Int64             // bytes
	rooms  bufferPool
}

// bufferPool lends memory of messages, which is not zeroed.
type bufferPool struct{ spares[[]byte] }

// spares keeps slices that were returned, by size, to lend them again.
type spares[T any] struct {
	mu   sync.Mutex
	kept [sizes][]T
}

// take removes and returns the newest of a size, if there is one.
func (s *spares[T]) take(size int) (v T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[size]
	if len(k) == 0 {
		return v, false
	}
	s.kept[size] = k[:len(k)-1]
	return k[len(k)-1], true
}

func (s *spares[T]) put(size int, v T) {
	s.mu.Lock()
	s.kept[size] = append(s.kept[size], v)
	s.mu.Unlock()
}

const (
	leastBuffer = 6 // power of two: size of the smallest buffer
	sizes       = 4 * (32 - leastBuffer)
)

// sizeOf rounds a length up to one of four sizes between a power of two and the next, and returns
// the number of that size.
func sizeOf(n int) (size, number int) {
	if n <= 1<<leastBuffer {
		return 1 << leastBuffer, 0
	}
	power := bits.Len(uint(n-1)) - 1
	quarters := (n - 1) >> (power - 2) // 4 to 7
	return (quarters + 1) << (power - 2), 4*(power-leastBuffer) + quarters - 3
}

func (m *memory) init() {
	m.put = func(b *microproto.Buffer) {
		_, k := sizeOf(len(b.Bytes))
		m.lent.Add(-int64(len(b.Bytes)))
		m.frames.put(k, b)
	}
}

// acquire returns a frame of n bytes.
func (m *memory) acquire(n int) microproto.Frame {
	size, k := sizeOf(n)
	m.lent.Add(int64(size))
	b, ok := m.frames.take(k)
	if !ok {
		b = microproto.NewBuffer(make([]byte, size), m.put)
	}
	return b.Frame(0, 0, n)
}

// Bounds of the bytes of all frames under way. The larger one holds: mostLent, or mostLentEach for each host.
var (
	mostLent     int64 = 1 << 30
	mostLentEach int64 = 1 << 20
)

// crowded returns an error if the networks hold more than a bound. Hosts of an asynchronous run may send for ever
// faster than a network without a bound of its queues carries.
func (e *engine) crowded() error {
	lent := e.memory.lent.Load()
	if lent <= max(mostLent, mostLentEach*int64(len(e.hosts))) {
		return nil
	}
	return fmt.Errorf("simulate: after %v the networks hold frames of %d MiB: the machines send faster than a network "+
		"carries, and nothing bounds what waits; give each network of the description a queue",
		time.Duration(e.latest()).Round(time.Microsecond), lent>>20)
}

// Take implements exchange.Memory.
func (r *bufferPool) Take(_, n int) []byte {
	size, k := sizeOf(n)
	if b, ok := r.take(k); ok {
		return b[:n]
	}
	return make([]byte, n, size)
}

// Give implements exchange.Memory.
func (r *bufferPool) Give(_ int, b []byte) {
	_, k := sizeOf(cap(b))
	r.put(k, b)
}

// Bounds of a train, in bytes, as of a UDP socket, and the headers of IP and UDP.
const (
	trainBytes = 65507
	udpHeaders = 28
)

// linkAdapter is a host's LinkContext.
type linkAdapter struct{ m *machine }

func addrOf(rank int) microproto.LinkAddr { return microproto.LinkAddr(rank + 1) }

// Acquire implements p2psap.LinkContext.
func (c linkAdapter) Acquire(n int) microproto.Frame { return c.m.memory.acquire(n) }

// Caps implements p2psap.LinkContext. An Ethernet link is one over UDP. An InfiniBand link is one of
// queue pairs: reliable in synchronous mode, and ordered in both.
func (c linkAdapter) Caps(m microproto.Mode) microproto.Caps {
	k := &c.m.e.model.Networks[c.m.e.host(int(c.m.index)).Network]
	if k.Kind == cluster.IB {
		return microproto.Caps{MTU: k.MTU, Batch: 16, Train: trainBytes, Reliable: m != microproto.ModeAsynchronous,
			Ordered: true}
	}
	return microproto.Caps{MTU: k.MTU - udpHeaders, Batch: 16, Train: trainBytes}
}

// Offer implements p2psap.LinkContext.
func (c linkAdapter) Offer(string) ([]byte, error) {
	return binary.BigEndian.AppendUint32(nil, uint32(addrOf(int(c.m.index)))), nil
}

// Accept implements p2psap.LinkContext.
func (c linkAdapter) Accept(remote []byte) (microproto.LinkAddr, error) {
	if len(remote) != 4 || int(binary.BigEndian.Uint32(remote)) > len(c.m.e.hosts) {
		return 0, errors.New("simulate: not an offer of this cluster")
	}
	return microproto.LinkAddr(binary.BigEndian.Uint32(remote)), nil
}
