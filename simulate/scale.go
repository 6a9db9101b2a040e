package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// standIn is a peer on a coarse grid that stands for one on a grid with more points a side:
// what it sends is longer, padded, and its relaxations count for more points. Agreement
// messages keep their lengths: they are few.
type scaledPeer struct {
	problem.Peer
	face, volume int // that a point stands for
	links        []iterate.Link
	part         int // points of the relaxation asked for
	received     map[iterate.Rank]*received
	sending      paddedBuffers // of faces
}

// received holds the faces from one rank.
type received struct {
	faces [][]byte // by tag
	next  uint32   // tag of the next one
}

// overlay is memory of messages of which only the beginnings are true: they lie side by side, and
// each message goes on over those behind it and an end that all have in common.
type paddedBuffers struct {
	memory []byte
	true   int // bytes at most
}

// Take implements virtual.Memory.
func (o *paddedBuffers) Take(i, n int) []byte {
	if most := (i+1)*o.true + n; most > len(o.memory) {
		grown := make([]byte, most)
		copy(grown, o.memory)
		o.memory = grown
	}
	return o.memory[i*o.true:][:n:n]
}

// Give implements virtual.Memory: there is nothing to keep.
func (*paddedBuffers) Give(int, []byte) {}

// stand has every point of a peer's grid stand for side points a side.
func scalePeer(p problem.Peer, side, dimension int) *scaledPeer {
	s := &scaledPeer{Peer: p, face: 1, volume: side, received: map[iterate.Rank]*received{}}
	for range dimension - 1 {
		s.face, s.volume = s.face*side, s.volume*side
	}
	for _, l := range p.Links() {
		long := l
		long.Slots, long.Sent = s.longer(l.Slots), s.longer(l.Sent)
		s.links = append(s.links, long)
		s.received[l.Rank] = &received{faces: make([][]byte, len(l.Slots))}
		for _, n := range l.Sent {
			s.sending.true = max(s.sending.true, n)
		}
	}
	return s
}

func (s *scaledPeer) longer(lengths []int) []int {
	out := make([]int, len(lengths))
	for i, n := range lengths {
		out[i] = n * s.face
	}
	return out
}

// Links implements problem.Peer.
func (s *scaledPeer) Links() []iterate.Link { return s.links }

// Next implements problem.Peer.
func (s *scaledPeer) Next(now time.Duration) iterate.Op {
	op := s.Peer.Next(now)
	s.part = op.Points
	op.Points, op.Bytes = op.Points*s.volume, op.Bytes*s.face
	return op
}

// Relax implements problem.Peer.
func (s *scaledPeer) Relax(op iterate.Op) {
	op.Points = s.part
	s.Peer.Relax(op)
}

// Expects implements exchange.Expecter: faces come under one tag after the other, and Halo has
// copied those before.
func (s *scaledPeer) Expects(q iterate.Rank) (tag uint32, ok bool) {
	return s.received[q].next, true
}

// Pack implements problem.Peer: what lies behind the face is whatever dst holds.
func (s *scaledPeer) Pack(op iterate.Op, dst []byte) {
	op.Bytes /= s.face
	s.Peer.Pack(op, dst[:op.Bytes])
}

// Halo implements problem.Peer. It keeps what is true of data itself: the shell may use its
// memory again.
func (s *scaledPeer) Halo(now time.Duration, q iterate.Rank, tag uint32, label uint64, data []byte) error {
	r := s.received[q]
	kept := append(r.faces[tag][:0], data[:len(data)/s.face]...)
	r.faces[tag], r.next = kept, (tag+1)%uint32(len(r.faces))
	return s.Peer.Halo(now, q, tag, label, kept)
}
