package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/microproto"
)

const (
	readBytes = 256 << 10 // bound of a buffer that a system call fills, unless a single frame is longer
	// shareBytes is the frame size from which a frame stays in the buffer that it was received in. Smaller ones are
	// copied, so that one that is kept for long does not keep the whole buffer.
	shareBytes = 16 << 10
	// tailBytes is the least room of a buffer for another system call.
	tailBytes = 16 << 10
	// fewPeers is the number of connections up to which reading each is cheaper than asking which have data.
	fewPeers = 2
)

// incoming holds the received bytes of a connection that were not yet returned as frames.
type incoming struct {
	buffer   *microproto.Buffer
	hold     microproto.Frame // a reference to buffer
	from, to int              // what of buffer is not returned yet
	shared   bool             // frames that were returned lie in buffer
}

func (in *incoming) drop() {
	in.hold.Release()
	*in = incoming{}
}

// pending returns the length of the first frame, 0 if not even that has arrived, and whether all of it is there.
func (in *incoming) pending() (length int, complete bool) {
	have := in.to - in.from
	if have < prefixBytes {
		return 0, false
	}
	length = int(binary.BigEndian.Uint32(in.buffer.Bytes[in.from:]))
	return length, have >= prefixBytes+length
}

// TryRecv is Recv that never waits.
func (l *Link) TryRecv(batch []microproto.Frame) (n int, err error) {
	l.rx.Lock()
	defer l.rx.Unlock()
	if l.closed.Load() {
		return 0, errClosed
	}
	if len(l.active) == 0 || len(batch) == 0 {
		l.waits.Disarm()
		return 0, nil
	}
	l.first = (l.first + 1) % len(l.active)
	for i := 0; i < len(l.active) && n < len(batch); i++ {
		p := l.active[(l.first+i)%len(l.active)]
		n += l.take(p, batch[n:])
	}
	if n > 0 {
		return n, nil
	}
	l.waits.Disarm()
	if len(l.active) > fewPeers {
		return l.readReady(batch), nil
	}
	for i := len(l.active) - 1; i >= 0; i-- { // fill may remove it
		if p := l.active[i]; l.fill(p) {
			n += l.take(p, batch[n:])
		}
	}
	return n, nil
}

// readReady reads the connections that have data. rx is held.
func (l *Link) readReady(batch []microproto.Frame) (n int) {
	k, err := unix.EpollWait(l.descriptor, l.ready, 0)
	if err != nil {
		return 0 // interrupted: the next call asks again
	}
	for _, e := range l.ready[:k] {
		i := slices.IndexFunc(l.active, func(p *peer) bool { return int32(p.addr) == e.Fd })
		if i < 0 || n == len(batch) {
			continue
		}
		if p := l.active[i]; l.fill(p) {
			n += l.take(p, batch[n:])
		}
	}
	if k == len(l.ready) {
		l.ready = append(l.ready, make([]unix.EpollEvent, k)...)
	}
	return n
}

// fill receives from a connection once. It reports whether bytes have come. rx is held.
func (l *Link) fill(p *peer) bool {
	in := &p.incoming
	if !l.makeRoom(in) {
		return false
	}
	b := in.buffer.Bytes[in.to:]
	got, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(p.socket), uintptr(unsafe.Pointer(&b[0])),
		uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return false
	case errno != 0:
		l.stopReading(p, down(errno))
		return false
	case got == 0:
		l.stopReading(p, fmt.Errorf("the other end has closed it: %w", io.EOF))
		return false
	}
	l.count.Reads.Add(1)
	in.to += int(got)
	return true
}

// stopReading takes a connection down that cannot be read. rx is held.
func (l *Link) stopReading(p *peer, err error) {
	if i := slices.Index(l.active, p); i >= 0 {
		l.active = slices.Delete(l.active, i, i+1)
	}
	_ = unix.EpollCtl(l.descriptor, unix.EPOLL_CTL_DEL, p.socket, nil) // otherwise every wait ends at once
	go l.failRound(p, p.round, err)                                    // it takes both locks
}

// bufferBytes returns the size of a receive buffer: as many of the largest frames as readBytes hold, so that a sequence
// of them is not cut by the buffer's end.
func (c *Config) bufferBytes() int {
	frame := c.FrameBytes + prefixBytes
	return frame * max(1, readBytes/frame)
}

// makeRoom prepares a buffer for a system call; false: there is no memory now. rx is held.
func (l *Link) makeRoom(in *incoming) bool {
	have := in.to - in.from
	if have == 0 && in.buffer != nil && !in.shared {
		in.from, in.to = 0, 0
		return true
	}
	if have > 0 {
		need := have + tailBytes
		if length, _ := in.pending(); length > 0 {
			need = prefixBytes + length
		}
		if len(in.buffer.Bytes)-in.from >= need {
			return true
		}
	}
	l.count.Moved.Add(uint64(have))
	if have > 0 && !in.shared {
		copy(in.buffer.Bytes, in.buffer.Bytes[in.from:in.to])
		in.from, in.to = 0, have
		return true
	}
	if have == 0 {
		in.drop() // the pool returns the same buffer unless frames in it are in use
	}
	old := *in
	b := l.pool.Get(l.config.bufferBytes(), true)
	if b == nil {
		return false
	}
	*in = incoming{buffer: b, hold: b.Frame(0, 0, 0)}
	if have > 0 {
		in.to = copy(b.Bytes, old.buffer.Bytes[old.from:old.to])
		old.hold.Release()
	}
	return true
}

var errLength = errors.New("it sent a frame of an invalid length")

// take returns the complete frames of the received bytes. rx is held.
func (l *Link) take(p *peer, batch []microproto.Frame) (n int) {
	in := &p.incoming
	for n < len(batch) {
		length, complete := in.pending()
		if in.to-in.from >= prefixBytes && (length == 0 || length > l.config.FrameBytes) {
			in.drop()
			l.stopReading(p, fmt.Errorf("%w: %d bytes of at most %d", errLength, length, l.config.FrameBytes))
			return n
		}
		if !complete {
			return n
		}
		at := in.from + prefixBytes
		if length >= shareBytes {
			batch[n] = in.buffer.Frame(p.addr, at, length)
			in.shared = true
		} else {
			b := l.pool.Get(length, true)
			if b == nil {
				return n // it stays there until memory is released
			}
			batch[n] = b.Frame(p.addr, 0, length)
			copy(batch[n].Data, in.buffer.Bytes[at:])
		}
		in.from = at + length
		n++
	}
	return n
}

// takes reports whether take would return a frame or take the connection down.
func (l *Link) takes(in *incoming) bool {
	length, complete := in.pending()
	return complete || length > l.config.FrameBytes
}

// arrived reports whether TryRecv would find something and has memory for it. With few connections it receives: only a
// whole frame ends a wait then, and the call that waits needs no system call after it.
func (l *Link) arrived() bool {
	l.rx.Lock()
	defer l.rx.Unlock()
	if l.closed.Load() {
		return true
	}
	if l.pool.Exhausted() {
		return false
	}
	for _, p := range l.active {
		if l.takes(&p.incoming) {
			return true
		}
	}
	if len(l.active) <= fewPeers {
		some := false
		for i := len(l.active) - 1; i >= 0; i-- { // fill may remove it
			p := l.active[i]
			for !l.takes(&p.incoming) && l.fill(p) { // until EAGAIN: the poller reports new bytes only
			}
			some = some || l.takes(&p.incoming)
		}
		return some
	}
	n, _ := unix.EpollWait(l.descriptor, l.ready, 0)
	return n > 0
}

// Recv waits for frames. After Wake it may return none.
func (l *Link) Recv(batch []microproto.Frame) (int, error) { return l.AwaitRecv(batch) }

// AwaitRecv is Recv: it waits for a frame or for Wake.
func (l *Link) AwaitRecv(batch []microproto.Frame) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	for {
		n, err := l.TryRecv(batch)
		if n > 0 || err != nil {
			return n, err
		}
		if err = l.awaitArrival(); err != nil {
			return 0, err
		}
		if l.wakeRequested.Swap(false) { // and not the link itself
			return l.TryRecv(batch)
		}
	}
}

// Await waits as AwaitRecv does, and leaves the frames to the next TryRecv. Several goroutines may so receive in turn
// without changing the order of frames.
func (l *Link) Await() error {
	err := l.awaitArrival()
	l.wakeRequested.Store(false)
	return err
}

// awaitArrival waits for a frame, Wake, or an event of the link itself: a new connection, memory that was released.
func (l *Link) awaitArrival() error {
	l.waitMu.Lock()
	defer l.waitMu.Unlock()
	if l.closed.Load() {
		return errClosed
	}
	l.count.Waits.Add(1)
	_, err := l.wait.Run()
	return l.closedError(err)
}

// Wake makes the waiting Recv, AwaitRecv or Await, or else the next one, return without a frame.
func (l *Link) Wake() {
	l.wakeRequested.Store(true)
	l.waits.Wake()
}
