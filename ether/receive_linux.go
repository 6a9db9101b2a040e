package ether

import (
	"net"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/readiness"
	"github.com/p2pdc/p2pdc/microproto"
)

// receiver receives with recvmmsg into large buffers and splits the datagrams into frames as
// they are handed out.
type receiver struct {
	l        *Link
	mu       sync.Mutex
	socket   *descriptor
	wait     readiness.Wait
	messages []mmsghdr
	vectors  []unix.Iovec
	names    [][unix.SizeofSockaddrInet6]byte
	controls [][controlBytes]byte
	recent   recentSource
	buffers  []*microproto.Buffer
	got      int // datagrams of the last call
	errno    syscall.Errno

	next    int      // the first datagram of the last call that was not opened yet
	current datagram // being split
}

// datagram is a received datagram that is handed out frame by frame. hold keeps its buffer
// until the last frame is out.
type datagram struct {
	buffer      *microproto.Buffer
	hold        microproto.Frame
	peer        microproto.LinkAddr
	at, end     int
	segmentSize int
}

func (r *receiver) init(l *Link, d *descriptor) {
	r.l, r.socket = l, d
	r.wait.Init(d.raw, &d.readable, func(fd uintptr) bool {
		r.recvmmsg(fd)
		return r.errno != unix.EAGAIN
	})
	n := receivesWithoutGRO
	if l.gro {
		n = receivesWithGRO
	}
	r.messages = make([]mmsghdr, n)
	r.vectors = make([]unix.Iovec, n)
	r.names = make([][unix.SizeofSockaddrInet6]byte, n)
	r.controls = make([][controlBytes]byte, n)
	r.buffers = make([]*microproto.Buffer, n)
	// Buffers that are ready to receive do not count as frames in use.
	l.pool.Extend(n * datagramBytes)
	for i := range r.messages {
		r.buffers[i] = l.buffer(datagramBytes)
		h := &r.messages[i].hdr
		h.Name = &r.names[i][0]
		h.Iov = &r.vectors[i]
		h.SetIovlen(1)
		h.Control = &r.controls[i][0]
		r.prepare(i)
	}
}

// prepare makes message i ready to receive.
func (r *receiver) prepare(i int) {
	r.vectors[i].Base = &r.buffers[i].Bytes[0]
	r.vectors[i].SetLen(len(r.buffers[i].Bytes))
	r.messages[i].hdr.Namelen = uint32(len(r.names[i]))
	r.messages[i].hdr.SetControllen(controlBytes)
	r.messages[i].n = 0
}

// recvmmsg receives without waiting. The raw system call spares the runtime's bookkeeping of
// calls that may block.
func (r *receiver) recvmmsg(fd uintptr) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.messages[0])),
			uintptr(len(r.messages)), unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if r.got, r.errno = int(n), errno; errno != 0 {
			r.got = 0
		}
		return
	}
}

// recv fills a prefix of batch with frames. When no received datagram is left it receives
// more, waiting for them if waits is set. It returns no frame and no error if nothing came
// or every datagram was dropped. woken reports that wake ended the wait.
func (r *receiver) recv(batch []microproto.Frame, waits, trains bool) (n int, woken bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.l.closed.Load() {
		return 0, false, net.ErrClosed
	}
	if r.next == r.got && r.current.buffer == nil {
		if woken, err = r.fill(waits); err != nil {
			return 0, false, err
		}
	}
	bytes, count := 0, 0
	for n < len(batch) {
		if r.current.buffer == nil {
			if r.next == r.got {
				break
			}
			r.openDatagram(r.next)
			r.next++
			continue
		}
		f := r.current.next(trains)
		bytes += len(f.Data)
		count += f.Count()
		batch[n] = f
		n++
	}
	if n > 0 {
		r.l.count.FramesReceived.Add(uint64(count))
		r.l.count.BytesReceived.Add(uint64(bytes))
	}
	return n, woken, nil
}

// fill makes one call of recvmmsg.
func (r *receiver) fill(waits bool) (woken bool, err error) {
	for i := range r.got {
		r.prepare(i)
	}
	r.next, r.got = 0, 0
	if waits {
		woken, err = r.wait.Run()
	} else {
		r.socket.readable.Disarm() // what recvmmsg finds needs no wake-up
		r.recvmmsg(r.socket.number)
	}
	if err != nil {
		return false, err
	}
	switch r.errno {
	case 0:
		r.l.count.ReceiveCalls.Add(1)
	case unix.EAGAIN, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENOMEM, unix.ENOBUFS:
		// Nothing was received. Other than EAGAIN these report the fate of an earlier datagram
		// or a transient shortage.
	default:
		return false, r.errno
	}
	return woken, nil
}

// openDatagram starts to split datagram i, or drops it. A small datagram is copied into a
// small buffer, so that a frame kept for long does not keep 64 KiB.
func (r *receiver) openDatagram(i int) {
	l, m := r.l, &r.messages[i]
	peer := r.recent.find(l.peers.Load(), &r.names[i])
	segment, overflow := parseControl(r.controls[i][:min(controlBytes, int(m.hdr.Controllen))])
	if overflow != 0 {
		l.count.addOverflow(overflow)
	}
	switch {
	case peer == 0:
		l.count.Unknown.Add(1)
		return
	case m.hdr.Flags&unix.MSG_TRUNC != 0:
		l.count.Truncated.Add(1)
		return
	}
	n := int(m.n)
	if segment <= 0 || segment >= n {
		segment = max(n, 1)
	}
	if b := r.buffers[i].Bytes[:n]; mayHoldProbe(b, segment) {
		if n = l.cables.take(peer, sourceIn(&r.names[i]), b, segment); n == 0 {
			return
		}
	}
	size, small := datagramBytes, n <= smallBytes
	if small {
		size = smallBytes
	}
	fresh := l.buffer(size)
	if fresh == nil {
		l.count.NoBuffer.Add(1)
		return
	}
	full := r.buffers[i]
	if small {
		copy(fresh.Bytes, full.Bytes[:n])
		full = fresh
	} else {
		r.buffers[i] = fresh
	}
	if segment < n {
		l.count.SuperReceived.Add(1)
	}
	r.current = datagram{buffer: full, hold: full.Frame(0, 0, 0), peer: peer, end: n, segmentSize: segment}
}

// recentSource is the source of the last datagram. Many come from one peer in sequence, and to compare bytes takes
// less time than to find the peer in the table.
type recentSource struct {
	table *peerTable
	name  [unix.SizeofSockaddrInet6]byte
	peer  microproto.LinkAddr
}

// find returns the peer with a source address, or 0.
func (s *recentSource) find(t *peerTable, name *[unix.SizeofSockaddrInet6]byte) microproto.LinkAddr {
	if s.table != t || s.name != *name {
		*s = recentSource{table: t, name: *name, peer: t.bySource[sourceIn(name)]}
	}
	return s.peer
}

// next returns the next frame of a datagram, or with trains all remaining ones as a train.
func (d *datagram) next(trains bool) microproto.Frame {
	n := d.end - d.at
	train := trains && n > d.segmentSize
	if !train {
		n = min(d.segmentSize, n)
	}
	f := d.buffer.Frame(d.peer, d.at, n)
	if train {
		f.Segment = d.segmentSize
	}
	if d.at += n; d.at >= d.end {
		d.hold.Release()
		*d = datagram{}
	}
	return f
}
