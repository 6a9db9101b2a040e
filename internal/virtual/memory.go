package virtual

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"

	"github.com/p2pdc/p2pdc/internal/cluster"
	"github.com/p2pdc/p2pdc/microproto"
)

// memory lends frames, and keeps what comes back by the power of two of its size.
// Frames may come back on any thread.
type memory struct {
	mu    sync.Mutex
	spare [32][]*microproto.Buffer
	put   func(*microproto.Buffer) // bound once
	lent  int
}

// leastBuffer is the size of the smallest buffers.
const leastBuffer = 6

func (m *memory) init() {
	m.put = func(b *microproto.Buffer) {
		k := bits.Len(uint(len(b.Bytes) - 1))
		m.mu.Lock()
		m.lent--
		m.spare[k] = append(m.spare[k], b)
		m.mu.Unlock()
	}
}

// acquire lends a frame of n bytes.
func (m *memory) acquire(n int) microproto.Frame {
	k := max(leastBuffer, bits.Len(uint(max(n, 1)-1)))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lent++
	if s := m.spare[k]; len(s) > 0 {
		b := s[len(s)-1]
		m.spare[k] = s[:len(s)-1]
		return b.Frame(0, 0, n)
	}
	return microproto.NewBuffer(make([]byte, 1<<k), m.put).Frame(0, 0, n)
}

// Bounds of what a link takes as one, bytes: as a UDP socket; headers of IP and UDP.
const (
	trainBytes = 65507
	udpHeaders = 28
)

// contact is a host's LinkContext.
type contact struct{ m *machine }

func addrOf(rank int) microproto.LinkAddr { return microproto.LinkAddr(rank + 1) }

// Acquire implements p2psap.LinkContext.
func (c contact) Acquire(n int) microproto.Frame { return c.m.memory.acquire(n) }

// Caps implements p2psap.LinkContext: those of an Ethernet link over UDP, or of queue pairs:
// reliable in synchronous mode, and in order in both.
func (c contact) Caps(m microproto.Mode) microproto.Caps {
	k := &c.m.e.model.Networks[c.m.e.model.Hosts[c.m.index].Network]
	if k.Kind == cluster.IB {
		return microproto.Caps{MTU: k.MTU, Batch: 16, Train: trainBytes, Reliable: m != microproto.ModeAsynchronous, Ordered: true}
	}
	return microproto.Caps{MTU: k.MTU - udpHeaders, Batch: 16, Train: trainBytes}
}

// Offer implements p2psap.LinkContext.
func (c contact) Offer(string) ([]byte, error) {
	return binary.BigEndian.AppendUint32(nil, uint32(addrOf(int(c.m.index)))), nil
}

// Accept implements p2psap.LinkContext.
func (c contact) Accept(remote []byte) (microproto.LinkAddr, error) {
	if len(remote) != 4 || int(binary.BigEndian.Uint32(remote)) > len(c.m.e.hosts) {
		return 0, errors.New("virtual: not an offer of this cluster")
	}
	return microproto.LinkAddr(binary.BigEndian.Uint32(remote)), nil
}
