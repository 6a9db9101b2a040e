package ether

import (
	"errors"
	"net/netip"
	"slices"
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// single sends and receives one datagram per system call. It works on every system.
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

// send sends and releases a prefix of frames. full reports that the socket has no room.
func (s *single) send(peers *peerTable, frames []microproto.Frame) (n int, full bool, err error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	c := &s.l.count
	for n < len(frames) {
		f := &frames[n]
		*f = f.Flatten(s.l)
		to, size := peers.peer(f.Peer).used.Load(), len(f.Data)
		if f.Count() > 1 {
			size = f.Segment
		}
		for at := 0; at == 0 || at < len(f.Data); at += max(1, size) {
			data := f.Data[at:min(at+size, len(f.Data))]
			full, lost, err := s.out.try(to, data)
			switch {
			case at == 0 && (full || err != nil):
				return n, full, err
			case full || err != nil: // the train was taken with its first frame
				s.l.addLost(1, errFull)
			case lost != nil:
				s.l.addLost(1, lost)
			default:
				c.SendCalls.Add(1)
				c.FramesSent.Add(1)
				c.BytesSent.Add(uint64(len(data)))
			}
		}
		f.Release()
		n++
	}
	return n, false, nil
}

var errFull = errors.New("ether: the socket has no room")

func release(frames []microproto.Frame) {
	for i := range frames {
		frames[i].Release()
	}
}

// recv receives one frame, or none if the datagram was dropped.
func (s *single) recv(batch []microproto.Frame) (int, error) {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	if s.scratch == nil {
		s.scratch = make([]byte, datagramBytes)
	}
	c := &s.l.count
	n, from, err := s.l.conn.ReadFromUDPAddrPort(s.scratch)
	if err != nil {
		if transient(err) && !s.l.closed.Load() {
			return 0, nil
		}
		return 0, err
	}
	c.ReceiveCalls.Add(1)
	peer := s.l.peers.Load().bySource[s.source(from)]
	if peer == 0 {
		c.Unknown.Add(1)
		return 0, nil
	}
	if b := s.scratch[:n]; mayHoldProbe(b, max(n, 1)) && s.l.cables.take(peer, s.source(from), b, n) == 0 {
		return 0, nil
	}
	b := s.l.buffer(n)
	if b == nil {
		c.NoBuffer.Add(1)
		return 0, nil
	}
	copy(b.Bytes, s.scratch[:n])
	batch[0] = b.Frame(peer, 0, n)
	c.FramesReceived.Add(1)
	c.BytesReceived.Add(uint64(n))
	return 1, nil
}

func (s *single) source(from netip.AddrPort) source {
	scope, err := scopeOf(from.Addr())
	if err != nil || !from.Addr().IsLinkLocalUnicast() {
		scope = 0
	}
	return sourceOf(from, scope)
}

// transient reports whether a receive error concerns only an earlier datagram.
func transient(err error) bool {
	return slices.ContainsFunc(transientErrors[:], func(e error) bool { return errors.Is(err, e) })
}
