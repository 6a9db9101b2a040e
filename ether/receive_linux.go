package ether

import (
	"net"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/microproto"
)

// receiver is a receiving half of a batch: recvmmsg into large buffers, which are
// cut into frames as they are handed out.
type receiver struct {
	l        *Link
	mu       sync.Mutex
	socket   *descriptor
	wait     readinessWait
	pollCall func(fd uintptr) // of a look, bound once
	messages []mmsghdr
	vectors  []unix.Iovec
	names    [][unix.SizeofSockaddrInet6]byte
	controls [][controlBytes]byte
	buffers  []*microproto.Buffer
	got      int
	errno    syscall.Errno

	// The datagrams of the last call, from next on, are still to be handed out;
	// current is being cut.
	next    int
	current datagram
}

// cut is a datagram that is handed out frame by frame. guard keeps its buffer
// until the last frame is out.
type datagram struct {
	buffer      *microproto.Buffer
	hold        microproto.Frame
	peer        microproto.LinkAddr
	at, end     int
	segmentSize int
}

func (r *receiver) init(l *Link, d *descriptor) {
	r.l, r.socket, r.pollCall = l, d, r.recvmmsg
	r.wait.init(d, &d.readable, func(fd uintptr) bool {
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
	// What lies ready to receive is not counted against frames in use.
	l.pool.limit += n * classBytes[largeClass]
	for i := range r.messages {
		r.buffers[i] = l.pool.get(largeClass)
		h := &r.messages[i].hdr
		h.Name = &r.names[i][0]
		h.Iov = &r.vectors[i]
		h.SetIovlen(1)
		h.Control = &r.controls[i][0]
		r.prepare(i)
	}
}

// arm makes message i ready to receive again.
func (r *receiver) prepare(i int) {
	r.vectors[i].Base = &r.buffers[i].Bytes[0]
	r.vectors[i].SetLen(len(r.buffers[i].Bytes))
	r.messages[i].hdr.Namelen = uint32(len(r.names[i]))
	r.messages[i].hdr.SetControllen(controlBytes)
	r.messages[i].n = 0
}

// recvmmsg never waits.
func (r *receiver) recvmmsg(fd uintptr) {
	for {
		// So that the runtime need not know of the call.
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

// recv hands out frames, after looking or waiting for datagrams when none is left;
// 0 frames and no error when there were none, or all of them were dropped; rung when
// the wait was ended.
func (r *receiver) recv(batch []microproto.Frame, waits, whole bool) (n int, rung bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.l.closed.Load() {
		return 0, false, net.ErrClosed
	}
	if r.next == r.got && r.current.buffer == nil {
		if rung, err = r.fill(waits); err != nil {
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
		f := r.current.next(whole)
		bytes += len(f.Data)
		count += f.Count()
		batch[n] = f
		n++
	}
	if n > 0 {
		r.l.count.framesReceived.Add(uint64(count))
		r.l.count.bytesReceived.Add(uint64(bytes))
	}
	return n, rung, nil
}

func (r *receiver) fill(waits bool) (rung bool, err error) {
	for i := 0; i < r.got; i++ {
		r.prepare(i)
	}
	r.next, r.got = 0, 0
	if waits {
		rung, err = r.wait.run()
	} else {
		err = r.socket.poll(r.pollCall)
	}
	if err != nil {
		return false, err
	}
	switch r.errno {
	case 0:
		r.l.count.receiveCalls.Add(1)
	case unix.EAGAIN:
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENOMEM, unix.ENOBUFS:
		// News of an earlier datagram, or a passing shortage: nothing was received.
	default:
		return false, r.errno
	}
	return rung, nil
}

// open starts to cut datagram i, or drops it. What is small is copied to a small
// buffer, so that a frame kept long does not keep 64 KiB.
func (r *receiver) openDatagram(i int) {
	l, m := r.l, &r.messages[i]
	peer := l.peers.Load().bySource[sourceIn(&r.names[i])]
	segment, ovf := parseControl(r.controls[i][:min(controlBytes, int(m.hdr.Controllen))])
	if ovf != 0 {
		l.count.addOverflow(ovf)
	}
	switch {
	case peer == 0:
		l.count.unknown.Add(1)
		return
	case m.hdr.Flags&unix.MSG_TRUNC != 0:
		l.count.truncated.Add(1)
		return
	}
	n := int(m.n)
	class := largeClass
	if n <= classBytes[smallClass] {
		class = smallClass
	}
	fresh := l.pool.get(class)
	if fresh == nil {
		l.count.noBuffer.Add(1)
		return
	}
	full := r.buffers[i]
	if class == smallClass {
		copy(fresh.Bytes, full.Bytes[:n])
		full = fresh
	} else {
		r.buffers[i] = fresh
	}
	if segment <= 0 || segment >= n {
		segment = max(n, 1)
	} else {
		l.count.superReceived.Add(1)
	}
	r.current = datagram{buffer: full, hold: full.Frame(0, 0, 0), peer: peer, end: n, segmentSize: segment}
}

// frame hands out the next frame of a datagram, or all that is left of it, and ends
// with the last.
func (c *datagram) next(whole bool) microproto.Frame {
	n := c.end - c.at
	train := whole && n > c.segmentSize
	if !train {
		n = min(c.segmentSize, n)
	}
	f := c.buffer.Frame(c.peer, c.at, n)
	if train {
		f.Segment = c.segmentSize
	}
	if c.at += n; c.at >= c.end {
		c.hold.Release()
		*c = datagram{}
	}
	return f
}
