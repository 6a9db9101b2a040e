package stream

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/readiness"
	"github.com/p2pdc/p2pdc/microproto"
)

// prefixBytes is the size of the length in front of every frame, big endian.
const prefixBytes = 4

const (
	runFrames = 64       // frames of a system call
	runBytes  = 1 << 20  // bytes from which no further frame joins a system call
	flatBytes = 2 << 10  // bytes up to which a frame is copied instead of gathered
	waitBytes = 64 << 10 // of frames that wait for the two ends to meet
)

// vectors are the arguments of a system call that sends several frames.
type vectors struct {
	prefixes [runFrames][prefixBytes]byte
	iovecs   [3 * runFrames]unix.Iovec
	header   unix.Msghdr
	flat     [prefixBytes + flatBytes]byte
}

// outgoing holds what the kernel did not take: the rest of a frame, or frames from before the two ends have met.
type outgoing struct {
	rest []byte
	sent int // of rest
}

func (o *outgoing) waiting() bool { return o.sent < len(o.rest) }

// Send passes frames to the kernel. When a connection's send queue is full, the rest of the frame that did not fit is
// copied. Frames to a peer whose connection is down are dropped and counted; Watch has reported it.
func (l *Link) Send(batch []microproto.Frame) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(batch) {
		k, err := l.sendRun(batch[n:])
		for range k {
			batch[n].Release()
			n++
		}
		if k == 0 || err != nil {
			return n, err
		}
	}
	return n, nil
}

// sendRun sends frames from the first on that have the same peer. It returns how many were taken. mu is held.
func (l *Link) sendRun(frames []microproto.Frame) (int, error) {
	if l.closed.Load() {
		return 0, errClosed
	}
	p := l.peer(frames[0].Peer)
	if p == nil || p.remote == nil && p.failure == nil {
		return 0, fmt.Errorf("stream: frame to link address %d, which was never accepted or was forgotten", frames[0].Peer)
	}
	k := 0
	for bytes := 0; k < min(len(frames), runFrames) && frames[k].Peer == p.addr && bytes < runBytes; k++ {
		f := &frames[k]
		if f.Bytes() == 0 || f.Bytes() > l.config.FrameBytes || f.Count() > 1 {
			if k > 0 {
				break
			}
			return 0, fmt.Errorf("stream: %d frames of %d bytes in all: a frame must be single, of 1 to %d bytes",
				f.Count(), f.Bytes(), l.config.FrameBytes)
		}
		bytes += f.Bytes()
	}
	switch {
	case p.failure != nil:
		l.count.Discarded.Add(uint64(k))
		return k, nil
	case !p.connected && len(p.outgoing.rest) < waitBytes:
		p.outgoing.keep(&frames[0], 0)
		return 1, nil
	case !p.connected || !l.flush(p):
		l.full = p
		l.count.SendFull.Add(1)
		return 0, nil
	}
	return l.transmit(p, frames[:k]), nil
}

// keep copies a frame behind its length into rest, without the first bytes, which were sent.
func (o *outgoing) keep(f *microproto.Frame, sent int) {
	var prefix [prefixBytes]byte
	binary.BigEndian.PutUint32(prefix[:], uint32(f.Bytes()))
	for _, b := range [][]byte{prefix[:], f.Data, f.Body} {
		skip := min(sent, len(b))
		o.rest = append(o.rest, b[skip:]...)
		sent -= skip
	}
}

// flush sends the rest of earlier frames. It reports whether nothing of them is left. mu is held.
func (l *Link) flush(p *peer) bool {
	o := &p.outgoing
	for o.waiting() {
		b := o.rest[o.sent:]
		n, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(p.socket), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		sent, over := l.sent(p, int(n), errno)
		if over {
			return false
		}
		o.sent += sent
	}
	o.rest, o.sent = o.rest[:0], 0
	return true
}

// sendRest starts a goroutine that sends the rest of earlier frames when there is room. The caller of Send does not
// wait for room if Send took all frames. mu is held.
func (l *Link) sendRest(p *peer) {
	if !p.connected || p.sendsRest || !p.outgoing.waiting() {
		return
	}
	p.sendsRest = true
	round, room := p.round, p.room
	go func() {
		var w readiness.Wait
		w.Init(l.raw, room, func(uintptr) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			done := p.round != round || l.flush(p)
			if done && p.round == round {
				p.sendsRest = false
			}
			return done
		})
		_, _ = w.Run() // an error means that the connection or the link was closed
	}()
}

// sent evaluates a system call that sends. over reports that the connection takes nothing more now. mu is held.
func (l *Link) sent(p *peer, n int, errno syscall.Errno) (sent int, over bool) {
	switch errno {
	case 0:
		l.count.Writes.Add(1)
		return n, false
	case unix.EINTR:
		return 0, false
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		return 0, true
	}
	go l.failRound(p, p.round, down(errno)) // it takes both locks
	return 0, true
}

// transmit passes frames of a peer to the kernel, with one system call. It returns how many were taken. mu is held.
func (l *Link) transmit(p *peer, frames []microproto.Frame) (taken int) {
	v := &l.send
	var n uintptr
	var errno syscall.Errno
	if f := &frames[0]; len(frames) == 1 && f.Bytes() <= flatBytes {
		binary.BigEndian.PutUint32(v.flat[:], uint32(f.Bytes()))
		copy(v.flat[prefixBytes:], f.Data)
		copy(v.flat[prefixBytes+len(f.Data):], f.Body)
		n, _, errno = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(p.socket), uintptr(unsafe.Pointer(&v.flat[0])),
			uintptr(prefixBytes+f.Bytes()), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	} else {
		v.gather(frames)
		n, _, errno = unix.Syscall(unix.SYS_SENDMSG, uintptr(p.socket), uintptr(unsafe.Pointer(&v.header)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		clear(v.iovecs[:v.header.Iovlen]) // they refer to memory of users
	}
	bytes, over := l.sent(p, int(n), errno)
	for taken < len(frames) && bytes >= prefixBytes+frames[taken].Bytes() {
		bytes -= prefixBytes + frames[taken].Bytes()
		taken++
	}
	if bytes > 0 { // the kernel took a part of the next frame
		p.outgoing.keep(&frames[taken], bytes)
		taken++
		l.sendRest(p)
	}
	if over {
		l.full = p
		l.count.SendFull.Add(1)
	}
	return taken
}

// gather fills in the arguments for frames.
func (v *vectors) gather(frames []microproto.Frame) {
	used := 0
	add := func(b []byte) {
		if len(b) > 0 {
			v.iovecs[used].Base = &b[0]
			v.iovecs[used].SetLen(len(b))
			used++
		}
	}
	for i := range frames {
		binary.BigEndian.PutUint32(v.prefixes[i][:], uint32(frames[i].Bytes()))
		add(v.prefixes[i][:])
		add(frames[i].Data)
		add(frames[i].Body)
	}
	v.header.Iov = &v.iovecs[0]
	v.header.SetIovlen(used)
}

// Writable calls f when the connection that stopped Send has room, is down or forgotten, or the link is closed.
func (l *Link) Writable(f func()) {
	l.mu.Lock()
	l.waiters = append(l.waiters, f)
	p := l.full
	if p != nil && p.connected && !l.awaiting {
		l.awaiting = true
		go l.awaitRoom(p, p.round, p.room)
	}
	l.mu.Unlock()
	if p == nil {
		l.callWritable()
	}
}

// awaitRoom waits until a connection has room, and calls the functions given to Writable.
func (l *Link) awaitRoom(p *peer, round uint64, room *readiness.Watch) {
	var w readiness.Wait
	w.Init(l.raw, room, func(uintptr) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return p.round != round || l.flush(p) && hasRoom(p.socket)
	})
	_, _ = w.Run() // an error means that the connection or the link was closed
	l.mu.Lock()
	l.awaiting = false
	if l.full == p {
		l.full = nil
	}
	l.mu.Unlock()
	l.callWritable()
}

func hasRoom(socket int) bool {
	fds := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return n > 0 || err != nil
}

// callWritable calls the functions given to Writable unless a connection stops Send.
func (l *Link) callWritable() {
	l.mu.Lock()
	var all []func()
	if p := l.full; p == nil {
		all, l.waiters = l.waiters, nil
	} else if p.connected && len(l.waiters) > 0 && !l.awaiting {
		l.awaiting = true
		go l.awaitRoom(p, p.round, p.room)
	}
	l.mu.Unlock()
	for _, f := range all {
		f()
	}
}
