package ether

import (
	"errors"
	"net/netip"
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// single is the plain way: one datagram a system call, on any system.
type single struct {
	l       *Link
	sending sync.Mutex
	out     singleSend

	receiving sync.Mutex
	scratch   []byte
}

func (s *single) init(l *Link) {
	s.l = l
	s.out.init(l)
}

// send is batch.send, one frame at a time.
func (s *single) send(r *peerTable, frames []microproto.Frame) (n int, full bool, err error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	c := &s.l.count
	for n < len(frames) {
		f := &frames[n]
		*f = f.Flatten(s.l)
		size := len(f.Data)
		if f.Count() > 1 {
			size = f.Segment
		}
		for at := 0; at == 0 || at < len(f.Data); at += max(1, size) {
			data := f.Data[at:min(at+size, len(f.Data))]
			full, lost, err := s.out.try(r.peer(f.Peer), data)
			switch {
			case at == 0 && (full || err != nil):
				return n, full, err
			case full || err != nil: // what goes as one is taken as one
				c.addLost(1, errFull)
			case lost != nil:
				c.addLost(1, lost)
			default:
				c.sendCalls.Add(1)
				c.framesSent.Add(1)
				c.bytesSent.Add(uint64(len(data)))
			}
		}
		f.Release()
		n++
	}
	return n, false, nil
}

var errFull = errors.New("ether: the socket has no room")

// recv returns one frame, or none when the datagram was dropped.
func (s *single) recv(batch []microproto.Frame) (int, error) {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	if s.scratch == nil {
		s.scratch = make([]byte, classBytes[largeClass])
	}
	c := &s.l.count
	n, from, err := s.l.conn.ReadFromUDPAddrPort(s.scratch)
	if err != nil {
		if transient(err) && !s.l.closed.Load() {
			return 0, nil
		}
		return 0, err
	}
	c.receiveCalls.Add(1)
	peer := s.l.peers.Load().bySource[s.source(from)]
	if peer == 0 {
		c.unknown.Add(1)
		return 0, nil
	}
	b := s.l.pool.get(classOf(n))
	if b == nil {
		c.noBuffer.Add(1)
		return 0, nil
	}
	copy(b.Bytes, s.scratch[:n])
	batch[0] = b.Frame(peer, 0, n)
	c.framesReceived.Add(1)
	c.bytesReceived.Add(uint64(n))
	return 1, nil
}

func (s *single) source(from netip.AddrPort) source {
	scope, err := scopeOf(from.Addr())
	if err != nil || !from.Addr().IsLinkLocalUnicast() {
		scope = 0
	}
	return sourceOf(from, scope)
}

// passing errors of a receive tell of an earlier datagram's fate.
func transient(err error) bool {
	for _, e := range transientErrors {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
