package simulate

import (
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// scaledPeer is a peer on a coarse grid that represents one on a grid with more points along each
// axis. Its faces are padded to the length of the fine grid's, and its points count for more.
// Agreement messages keep their lengths, since they are few.
type scaledPeer struct {
	problem.Peer
	face, volume int // points of the fine grid for each point of a face, and of the block
	links        []iterate.Link
	part         int                       // points of the relaxation asked for
	received     map[iterate.Rank][][]byte // faces, by tag
	sending      paddedBuffers             // of faces
}

// paddedBuffers is memory for messages of which only the beginnings are used. The beginnings lie
// side by side. The rest of a message overlaps the beginnings of those behind it, and the end of the
// memory, which all share.
type paddedBuffers struct {
	memory []byte
	used   int // length of the longest beginning, bytes
}

// Take implements exchange.Memory.
func (o *paddedBuffers) Take(i, n int) []byte {
	if most := (i+1)*o.used + n; most > len(o.memory) {
		grown := make([]byte, most)
		copy(grown, o.memory)
		o.memory = grown
	}
	return o.memory[i*o.used:][:n:n]
}

// Give implements exchange.Memory: there is nothing to keep.
func (*paddedBuffers) Give(int, []byte) {}

// scalePeer returns a peer each of whose grid points represents side points along each axis.
func scalePeer(p problem.Peer, side, dimension int) *scaledPeer {
	s := &scaledPeer{Peer: p, face: 1, volume: side, received: map[iterate.Rank][][]byte{}}
	for range dimension - 1 {
		s.face, s.volume = s.face*side, s.volume*side
	}
	for _, l := range p.Links() {
		long := l
		long.Slots, long.Sent = s.longer(l.Slots), s.longer(l.Sent)
		s.links = append(s.links, long)
		s.received[l.Rank] = make([][]byte, len(l.Slots))
		for _, n := range l.Sent {
			s.sending.used = max(s.sending.used, n)
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

// Links implements Peer.
func (s *scaledPeer) Links() []iterate.Link { return s.links }

// Next implements Peer.
func (s *scaledPeer) Next(now time.Duration) iterate.Op {
	op := s.Peer.Next(now)
	s.part = op.Points
	op.Points, op.Bytes = op.Points*s.volume, op.Bytes*s.face
	return op
}

// Relax implements Peer.
func (s *scaledPeer) Relax(op iterate.Op) {
	op.Points = s.part
	s.Peer.Relax(op)
}

// Pack implements Peer. The padding holds whatever dst held.
func (s *scaledPeer) Pack(op iterate.Op, dst []byte) {
	op.Bytes /= s.face
	s.Peer.Pack(op, dst[:op.Bytes])
}

// Halo implements Peer. It copies the beginning of data: the rest is padding.
func (s *scaledPeer) Halo(now time.Duration, q iterate.Rank, tag uint32, label uint64, data ...[]byte) error {
	length := 0
	for _, p := range data {
		length += len(p)
	}
	left, kept := length/s.face, s.received[q][tag][:0]
	for _, p := range data {
		p = p[:min(len(p), left)]
		kept, left = append(kept, p...), left-len(p)
	}
	s.received[q][tag] = kept
	return s.Peer.Halo(now, q, tag, label, kept)
}
