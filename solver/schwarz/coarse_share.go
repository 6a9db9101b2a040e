package schwarz

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// share is a peer's part of the coarse problem: the restricted residual of its own points and, at the coarse
// points whose nearest fine point it owns, the distances to the obstacles. All other values are 0, so that
// shares can be added.
type share struct {
	rank   iterate.Rank
	box    kernel.Box // of coarse points
	known  bool
	fresh  bool              // not yet forwarded or used
	label  iterate.Iteration // iterate from which it was computed
	number uint64            // number of the last correction in that iterate
	square float64           // ‖r‖² of the own points
	values []float64         // residual, gaps below, gaps above, each dense over box
}

// shareFields is the number of values per coarse point.
const shareFields = 3

// shareHeader is the length of the fields before a share's values: rank, label, number, square.
const shareHeader = 32

func shareBytes(box kernel.Box) int { return shareHeader + 8*shareFields*box.Points() }

func (s *share) field(i int) []float64 {
	n := s.box.Points()
	return s.values[i*n : (i+1)*n]
}

// encode appends the share to a message.
func (s *share) encode(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.rank))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.label))
	dst = binary.LittleEndian.AppendUint64(dst, s.number)
	dst = iterate.AppendFloat(dst, s.square)
	for _, v := range s.values {
		dst = iterate.AppendFloat(dst, v)
	}
	return dst
}

var errTruncatedShare = errors.New("truncated share of the coarse problem")

// readShares decodes the shares of a message and calls f for each. find returns the destination of a rank's
// share, or nil if the rank is not valid. Any bytes may arrive.
func readShares(data []byte, find func(iterate.Rank) *share, f func(*share) error) error {
	for len(data) > 0 {
		if len(data) < shareHeader {
			return errTruncatedShare
		}
		rank := binary.LittleEndian.Uint64(data)
		if rank >= problem.MaxPeers {
			return fmt.Errorf("share of invalid rank %d", rank)
		}
		s := find(iterate.Rank(rank))
		if s == nil {
			return fmt.Errorf("share of rank %d, which is not below the sender in the tree", rank)
		}
		n := shareBytes(s.box)
		if len(data) < n {
			return errTruncatedShare
		}
		head, values := data[8:shareHeader], data[shareHeader:n]
		data = data[n:]
		square := iterate.ReadFloat(head[16:])
		if square < 0 {
			return kernel.ErrNegative
		}
		if !(square >= 0) { // NaN: a diverging run ends by the rule of termination
			square = math.Inf(1)
		}
		s.known = true
		s.fresh = true
		s.square = square
		s.label, s.number = iterate.Iteration(binary.LittleEndian.Uint64(head)), binary.LittleEndian.Uint64(head[8:])
		for i := range s.values {
			s.values[i] = iterate.ReadFloat(values[8*i:])
		}
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// measure computes the own share from the working array.
func (s *share) measure(w *peer) {
	c := w.coarse
	g := c.grid
	clear(s.values)
	w.sweep.Defect(c.defect, w.work, w.inside)
	s.square = 0
	for z := w.inside.Lo[2]; z < w.inside.Hi[2]; z++ {
		for y := w.inside.Lo[1]; y < w.inside.Hi[1]; y++ {
			at := w.layout.Index(w.inside.Lo[0], y, z)
			for _, v := range c.defect[at : at+w.inside.Hi[0]-w.inside.Lo[0]] {
				s.square += float64(v * v)
			}
		}
	}
	b := w.own
	if len(c.couplings) > 0 {
		c.halveFluxes(w)
		b = grown(b, 1, g.fine)
	}
	g.restrict(s.field(0), s.box, c.defect, w.layout, w.ext.Lo, b, c.line)
	s.gaps(w)
	s.known = true
	s.fresh = true
	s.label = w.Iterate
	s.number = c.inWork
}

// gaps computes the distances to the obstacles at coarse points. A coarse point at a fine point in contact is
// fixed. Otherwise the correction would lift that point off, the projection would undo it, and the next
// correction would repeat it.
func (s *share) gaps(w *peer) {
	below, above := s.field(1), s.field(2)
	i := 0
	eachPoint(s.box, func(x, y, z int) {
		if at := w.coarse.grid.nearestFine(x, y, z); w.own.Contains(at) {
			for a := range 3 {
				at[a] -= w.ext.Lo[a]
			}
			u, d := w.work[w.layout.Index(at[0], at[1], at[2])], w.layout.Dense(at[0], at[1], at[2])
			lo, hi := w.block.Lower.At(d)-u, w.block.Upper.At(d)-u
			if !(lo < 0 && hi > 0) {
				lo, hi = 0, 0
			}
			below[i], above[i] = lo, hi
		}
		i++
	})
}
