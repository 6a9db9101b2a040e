package ether

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/microproto"
)

const (
	segmentsMax        = 64 // of one GSO datagram: the least of all kernels' UDP_MAX_SEGMENTS
	messagesMax        = 64 // of one sendmmsg
	framesMax          = 512
	vectorsMax         = framesMax + 2*segmentsMax // one frame more may have pieces
	receivesWithGRO    = 16                        // of one recvmmsg with GRO, when each may be 64 KiB
	receivesWithoutGRO = 64                        // without
)

// sockaddr is a socket address as the kernel lays it out, and for sendto.
type sockaddr struct {
	bytes [unix.SizeofSockaddrInet6]byte
	size  uint32
	unixSockaddr
}

func sockaddrOf(a netip.AddrPort, scope uint32, inet4 bool) sockaddr {
	s := sockaddr{unixSockaddr: unixSockaddrOf(a, scope, inet4)}
	if inet4 {
		s.size = unix.SizeofSockaddrInet4
		r := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.bytes))
		r.Family, r.Addr = unix.AF_INET, a.Addr().As4()
	} else {
		s.size = unix.SizeofSockaddrInet6
		r := (*unix.RawSockaddrInet6)(unsafe.Pointer(&s.bytes))
		r.Family, r.Addr, r.Scope_id = unix.AF_INET6, a.Addr().As16(), scope
	}
	binary.BigEndian.PutUint16(s.bytes[2:], a.Port()) // in both layouts
	return s
}

// sourceIn reads the address of a received datagram.
func sourceIn(b *[unix.SizeofSockaddrInet6]byte) (s source) {
	s.port = binary.BigEndian.Uint16(b[2:])
	if *(*uint16)(unsafe.Pointer(b)) == unix.AF_INET {
		s.ip = netip.AddrFrom4([4]byte(b[4:8])).As16()
		return s
	}
	r := (*unix.RawSockaddrInet6)(unsafe.Pointer(b))
	s.ip = r.Addr
	if netip.AddrFrom16(r.Addr).IsLinkLocalUnicast() {
		s.scope = r.Scope_id
	}
	return s
}

// mmsghdr is struct mmsghdr of <sys/socket.h>.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// batch is sendmmsg and recvmmsg over one socket. Its arrays are made once.
type batch struct {
	l      *Link
	socket *descriptor
	sender
	blocking receiver // of Recv
	polling  receiver // of TryRecv
}

// newBatch takes the link's socket over.
func newBatch(l *Link) (*batch, error) {
	d, err := newDescriptor(l.conn, l.raw)
	if err != nil {
		return nil, err
	}
	l.conn, l.raw = nil, d.raw
	b := &batch{l: l, socket: d}
	b.sender.call = b.sendmmsg
	b.blocking.init(l, b.socket)
	b.polling.init(l, b.socket)
	return b, nil
}

func (b *batch) recv(batch []microproto.Frame, whole bool) (n int, rung bool, err error) {
	return b.blocking.recv(batch, true, whole)
}

func (b *batch) tryRecv(batch []microproto.Frame) (int, error) {
	n, _, err := b.polling.recv(batch, false, true)
	return n, err
}

func (b *batch) awaitRecv(batch []microproto.Frame) (int, error) {
	n, _, err := b.polling.recv(batch, true, true)
	return n, err
}

func (b *batch) awaitRoom() { b.socket.awaitRoom() }

func (b *batch) wake() { b.socket.wake() }

func (b *batch) close() error { return b.socket.close() }

type sender struct {
	mu          sync.Mutex
	call        func(fd uintptr) // sendmmsg, bound once
	messages    [messagesMax]mmsghdr
	vectors     [vectorsMax]unix.Iovec
	used        int // vectors
	controls    [messagesMax]segmentControl
	first       [messagesMax + 1]int // index of a message's first frame in the batch
	from, to    int                  // messages to send
	sent        int
	errno       syscall.Errno
	splitFrames []microproto.Frame
}

func (b *batch) sendmmsg(fd uintptr) {
	s := &b.sender
	const flags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	var n uintptr
	var errno syscall.Errno
	if m := &s.messages[s.from]; s.to-s.from == 1 && m.hdr.Iovlen == 1 && s.fitsPacket() {
		// It is over at once: the runtime need not know of it.
		_, _, errno = syscall.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&m.hdr)), flags)
		n = 1
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(m)), uintptr(s.to-s.from), flags, 0, 0)
	}
	s.sent, s.errno = int(n), errno
	if errno != 0 {
		s.sent = 0
	}
}

// small tells whether the one message that is to be sent fits one packet.
func (s *sender) fitsPacket() bool { return s.messages[s.from].hdr.Iov.Len <= smallPacket }

// smallPacket is the most bytes of a datagram that goes without Go's scheduler being told.
const smallPacket = 2048

// send sends a prefix of frames, all of them valid, and releases it. full tells
// that the socket has no room.
func (b *batch) send(r *peerTable, frames []microproto.Frame) (n int, full bool, err error) {
	s := &b.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(frames) && !full && err == nil {
		var took int
		if b.mustSplit(r, &frames[n]) {
			took, full, err = b.sendSplit(r, &frames[n])
		} else {
			took, full, err = b.sendBatch(r, frames[n:])
		}
		n += took
	}
	return n, full, err
}

// refused tells whether a frame is a train that the kernel cannot cut.
func (b *batch) mustSplit(r *peerTable, f *microproto.Frame) bool {
	return f.Count() > 1 && !(b.l.gso.Load() && r.peer(f.Peer).gso.Load())
}

// sendPieces sends the frames of a train one by one. It takes all of them or none, so
// that those which find no room behind the first are lost, and counted.
func (b *batch) sendSplit(r *peerTable, f *microproto.Frame) (n int, full bool, err error) {
	s := &b.sender
	s.splitFrames = s.splitFrames[:0]
	f.Retain().Pieces(func(p microproto.Frame) { s.splitFrames = append(s.splitFrames, p) })
	sent := 0
	for sent < len(s.splitFrames) && !full && err == nil {
		n, full, err = b.sendBatch(r, s.splitFrames[sent:])
		sent += n
	}
	rest := s.splitFrames[sent:]
	release(rest)
	if sent == 0 {
		return 0, full, err
	}
	if len(rest) > 0 {
		b.l.count.addLost(len(rest), unix.EAGAIN)
	}
	f.Release()
	return 1, false, err
}

// sendSome gathers up to messagesMax messages and sends them.
func (b *batch) sendBatch(r *peerTable, frames []microproto.Frame) (n int, full bool, err error) {
	s := &b.sender
	count := b.fillMessages(r, frames)
	defer s.clearVectors()
	for s.from, s.to = 0, count; s.from < count; {
		if err := b.socket.control(s.call); err != nil {
			return s.first[s.from], false, err
		}
		if s.errno == 0 && s.sent > 0 {
			b.countSent(frames, s.from, s.from+s.sent)
			s.from += s.sent
			continue
		}
		first, next := s.first[s.from], s.first[s.from+1]
		switch s.errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return first, true, nil
		}
		p := r.peer(frames[first].Peer)
		if (next-first > 1 || frames[first].Count() > 1) && segmentationRefused(s.errno) && p.gso.Swap(false) {
			b.l.log("no segmentation offload towards %s (%v): one frame a datagram", p.to, s.errno)
			return first, false, nil // gathered again, without
		}
		b.l.count.addLost(countFrames(frames[first:next]), s.errno)
		release(frames[first:next])
		s.from++
	}
	return s.first[count], false, nil
}

// gather fills the messages: a run of frames to one peer, all of one length but
// the last, which may be shorter, is one datagram for the kernel to cut.
func (b *batch) fillMessages(r *peerTable, frames []microproto.Frame) (count int) {
	s, offload := &b.sender, b.l.gso.Load()
	limit := frameBytes(MaxMTU, !b.l.inet4)
	i := 0
	s.used = 0
	for count < messagesMax && i < len(frames) && s.used < framesMax {
		first, size, vector := i, frames[i].Bytes(), s.used
		p := r.peer(frames[i].Peer)
		if b.mustSplit(r, &frames[i]) {
			break // one by one
		}
		train := frames[i].Count() > 1
		total := 0
		for i < len(frames) && s.used < framesMax && (i == first || frames[i].Peer == frames[first].Peer) {
			n := frames[i].Bytes()
			if i > first && (train || n > size || n == 0 || total+n > limit || i-first == segmentsMax || frames[i].Count() > 1) {
				break
			}
			s.addFrame(&frames[i])
			total += n
			i++
			if n < size || !offload || !p.gso.Load() {
				break
			}
		}
		m := &s.messages[count].hdr
		m.Name, m.Namelen = &p.sockaddr.bytes[0], p.sockaddr.size
		m.Iov = &s.vectors[vector]
		m.SetIovlen(s.used - vector)
		m.Control = nil
		m.SetControllen(0)
		if train {
			size = frames[first].Segment
		}
		if train || i-first > 1 {
			c := &s.controls[count]
			c.set(uint16(size))
			m.Control = (*byte)(unsafe.Pointer(c))
			m.SetControllen(int(unsafe.Sizeof(*c)))
		}
		s.first[count] = first
		count++
	}
	s.first[count] = i
	return count
}

// account counts messages sent and releases their frames.
func (b *batch) countSent(frames []microproto.Frame, from, to int) {
	s, bytes, super := &b.sender, 0, 0
	for m := from; m < to; m++ {
		if s.first[m+1]-s.first[m] > 1 || frames[s.first[m]].Count() > 1 {
			super++
		}
	}
	sent := frames[s.first[from]:s.first[to]]
	for i := range sent {
		bytes += sent[i].Bytes()
	}
	c := &b.l.count
	c.sendCalls.Add(1)
	c.superSent.Add(uint64(super))
	c.framesSent.Add(uint64(countFrames(sent)))
	c.bytesSent.Add(uint64(bytes))
	release(sent)
}

func countFrames(frames []microproto.Frame) (n int) {
	for i := range frames {
		n += frames[i].Count()
	}
	return n
}

func release(frames []microproto.Frame) {
	for i := range frames {
		frames[i].Release()
	}
}

// forget drops the pointers into frames, so that plain ones can be collected.
func (s *sender) clearVectors() { clear(s.vectors[:s.used]) }

// point makes vectors of a frame's bytes.
func (s *sender) addFrame(f *microproto.Frame) {
	if f.Body == nil {
		s.addVector(f.Data)
		return
	}
	for i := range f.Count() {
		header, payload := f.Piece(i)
		s.addVector(header)
		s.addVector(payload)
	}
}

func (s *sender) addVector(b []byte) {
	v := &s.vectors[s.used]
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
	s.used++
}
