package ether

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/microproto"
)

const (
	segmentsMax        = 64                        // segments of a GSO datagram: the smallest UDP_MAX_SEGMENTS
	messagesMax        = 64                        // messages of a sendmmsg call
	framesMax          = 512                       // vectors of a sendmmsg call before its last frame
	vectorsMax         = framesMax + 2*segmentsMax // the last frame may be a train with a header and body per segment
	receivesWithGRO    = 16                        // messages of a recvmmsg call when each may hold 64 KiB
	receivesWithoutGRO = 64
)

// sockaddr is a socket address in the kernel's layout, and for sendto.
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
		r.Family, r.Scope_id = unix.AF_INET6, scope
		r.Addr = a.Addr().As16()
	}
	binary.BigEndian.PutUint16(s.bytes[2:], a.Port()) // in both layouts
	return s
}

// sourceIn decodes the source address of a received datagram.
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

// mmsghdr is struct mmsghdr of <sys/socket.h>; n is the number of bytes transferred.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// batch sends with sendmmsg and receives with recvmmsg on one socket.
type batch struct {
	l *Link
	*descriptor
	sender
	blocking receiver // of Recv
	polling  receiver // of TryRecv and AwaitRecv
}

// newBatch takes ownership of the link's socket.
func newBatch(l *Link) (*batch, error) {
	d, err := newDescriptor(l.conn, l.raw)
	if err != nil {
		return nil, err
	}
	l.conn, l.raw = nil, d.raw
	b := &batch{l: l, descriptor: d}
	b.blocking.init(l, d)
	b.polling.init(l, d)
	if err := b.polling.wait.Block(); err != nil {
		_ = b.close()
		return nil, fmt.Errorf("ether: eventfd: %w", err)
	}
	return b, nil
}

// close waits for the calls that use the number of the socket: after that another socket may get it. Such a call
// holds a lock, finds the link open, and does not wait for the network. The link is marked as closed before.
func (b *batch) close() error {
	b.stopWaits()
	for _, mu := range []*sync.Mutex{&b.sender.mu, &b.blocking.mu, &b.polling.mu} {
		mu.Lock()
		defer mu.Unlock()
	}
	return b.file.Close()
}

func (b *batch) recv(batch []microproto.Frame, trains bool) (n int, woken bool, err error) {
	return b.blocking.recv(batch, true, trains)
}

func (b *batch) pollRecv(batch []microproto.Frame, waits bool) (int, error) {
	n, _, err := b.polling.recv(batch, waits, true)
	return n, err
}

// hasRoom reports whether the send queue has room, without waiting.
func (b *batch) hasRoom() (room bool) {
	b.polling.mu.Lock() // close waits for it
	defer b.polling.mu.Unlock()
	return !b.l.closed.Load() && sendRoom(b.number)
}

type sender struct {
	mu          sync.Mutex
	messages    [messagesMax]mmsghdr
	vectors     [vectorsMax]unix.Iovec
	used        int // vectors in use
	controls    [messagesMax]segmentControl
	first       [messagesMax + 1]int // index of a message's first frame in the batch
	from, to    int                  // messages to send
	sent        int
	errno       syscall.Errno
	splitFrames []microproto.Frame
}

func (b *batch) sendmmsg() {
	s, fd := &b.sender, b.number
	const flags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	var n uintptr
	var errno syscall.Errno
	m, count := &s.messages[s.from], s.to-s.from
	if count == 1 && m.hdr.Iovlen == 1 && m.hdr.Iov.Len <= smallPacket {
		_, _, errno = syscall.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&m.hdr)), flags)
		n = 1
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(m)), uintptr(count), flags, 0, 0)
	}
	s.sent, s.errno = int(n), errno
	if errno != 0 {
		s.sent = 0
	}
}

// smallPacket is the size in bytes up to which one datagram is sent by a raw system call: it
// returns so soon that the runtime's bookkeeping of calls that may block does not pay.
const smallPacket = 2048

// send sends and releases a prefix of frames, all of which are valid. full reports that the
// socket has no room.
func (b *batch) send(peers *peerTable, frames []microproto.Frame) (n int, full bool, err error) {
	s := &b.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.l.closed.Load() {
		return 0, false, net.ErrClosed
	}
	for n < len(frames) && !full && err == nil {
		var took int
		if b.mustSplit(peers, &frames[n]) {
			took, full, err = b.sendSplit(peers, &frames[n])
		} else {
			took, full, err = b.sendBatch(peers, frames[n:])
		}
		n += took
	}
	return n, full, err
}

// mustSplit reports whether a frame is a train that the kernel cannot segment.
func (b *batch) mustSplit(peers *peerTable, f *microproto.Frame) bool {
	return f.Count() > 1 && !(b.l.gso.Load() && peers.peer(f.Peer).gso.Load())
}

// sendSplit sends the frames of a train one by one. It takes all of them or none: frames that
// find no room behind the first are lost and counted.
func (b *batch) sendSplit(peers *peerTable, f *microproto.Frame) (n int, full bool, err error) {
	s := &b.sender
	s.splitFrames = s.splitFrames[:0]
	f.Retain().Pieces(func(p microproto.Frame) { s.splitFrames = append(s.splitFrames, p) })
	sent := 0
	for sent < len(s.splitFrames) && !full && err == nil {
		n, full, err = b.sendBatch(peers, s.splitFrames[sent:])
		sent += n
	}
	rest := s.splitFrames[sent:]
	release(rest)
	if sent == 0 {
		return 0, full, err
	}
	if len(rest) > 0 {
		b.l.addLost(len(rest), unix.EAGAIN)
	}
	f.Release()
	return 1, false, err
}

// sendBatch sends up to messagesMax messages.
func (b *batch) sendBatch(peers *peerTable, frames []microproto.Frame) (n int, full bool, err error) {
	s := &b.sender
	count := b.fillMessages(peers, frames)
	defer s.clearVectors()
	for s.from, s.to = 0, count; s.from < count; {
		b.sendmmsg()
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
		p := peers.peer(frames[first].Peer)
		if (next-first > 1 || frames[first].Count() > 1) && segmentationRefused(s.errno) && p.gso.Swap(false) {
			b.l.log("segmentation offload refused on the route to %s (%v): sending one frame per datagram", p.used.Load().to, s.errno)
			return first, false, nil // filled again, without offload
		}
		b.l.addLost(countFrames(frames[first:next]), s.errno)
		release(frames[first:next])
		s.from++
	}
	return s.first[count], false, nil
}

// fillMessages turns a prefix of frames into messages and returns their number. A sequence of
// frames to one peer, all of one length but the last, which may be shorter, becomes one
// datagram that the kernel segments.
func (b *batch) fillMessages(peers *peerTable, frames []microproto.Frame) (count int) {
	s, offload := &b.sender, b.l.gso.Load()
	limit := frameBytes(MaxMTU, !b.l.inet4)
	i := 0
	s.used = 0
	for count < messagesMax && i < len(frames) && s.used < framesMax {
		first, vector := i, s.used
		size := frames[i].Bytes()
		p := peers.peer(frames[i].Peer)
		if b.mustSplit(peers, &frames[i]) {
			break
		}
		train := frames[i].Count() > 1
		total := 0
		for i < len(frames) && s.used < framesMax && (i == first || frames[i].Peer == frames[first].Peer) {
			n := frames[i].Bytes()
			fits := n > 0 && n <= size && total+n <= limit && i-first < segmentsMax && frames[i].Count() == 1
			if i > first && (train || !fits) {
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
		to := p.used.Load()
		m.Name, m.Namelen = &to.sockaddr.bytes[0], to.sockaddr.size
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

// countSent counts messages sent and releases their frames.
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
	c.SendCalls.Add(1)
	c.SuperSent.Add(uint64(super))
	c.FramesSent.Add(uint64(countFrames(sent)))
	c.BytesSent.Add(uint64(bytes))
	release(sent)
}

func countFrames(frames []microproto.Frame) (n int) {
	for i := range frames {
		n += frames[i].Count()
	}
	return n
}

// clearVectors drops the pointers into frames, so that unpooled ones can be collected.
func (s *sender) clearVectors() { clear(s.vectors[:s.used]) }

// addFrame appends vectors of a frame's bytes.
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
