package multilevel

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// maxSums bounds the sums of one total.
const maxSums = 3

// total adds exact sums up over the tree and brings what they come to, rounded once at
// the root, to everyone: so all peers decide by the same numbers. It goes on by itself
// once the own sums are given, while the peer does other things; one total is open at a
// time. The wish for an early end travels with it.
//
// Layout of the sums: reason, number of sums (one byte each), then each as its length
// (2 bytes, little endian) and its encoding. Of their total: reason, number, then each
// as a float64.
type total struct {
	g      *Levels
	phase  totalPhase
	n      int
	sums   [maxSums]kernel.Sum
	heard  int // children
	told   int
	values [maxSums]float64
	wish   iterate.Reason
	bytes  []byte
	up     *wire   // nil: the root
	down   []*wire // children
}

type totalPhase int

const (
	totalClosed totalPhase = iota
	totalOpen              // the own sums are in, children's are awaited
	totalAbove             // sent up
	totalBelow             // known; the children are being told
	totalKnown
)

func (t *total) init(g *Levels) {
	t.g, t.bytes = g, make([]byte, 0, sumsBytes)
	for _, q := range g.tree.Children {
		t.down = append(t.down, g.wireOf(q))
	}
	if g.tree.Parent >= 0 {
		t.up = g.wireOf(g.tree.Parent)
	}
}

// give opens a total with the own n sums, which the caller has put into t.sums.
func (t *total) give(n int) {
	t.phase, t.n, t.heard, t.told = totalOpen, n, 0, 0
	t.wish = t.g.wish
}

// proceed waits for the total.
func (t *total) proceed() (iterate.Op, bool) {
	if op, ok := t.advance(); ok || t.g.fault != nil {
		return op, ok
	}
	if t.phase != totalKnown {
		return iterate.Op{Kind: iterate.OpWait}, true
	}
	t.phase = totalClosed
	t.g.stage = nil
	return iterate.Op{}, false
}

// advance does what can be done for an open total; an operation if it is to send.
func (t *total) advance() (iterate.Op, bool) {
	switch t.phase {
	case totalOpen:
		for ; t.heard < len(t.down); t.heard++ {
			if came, err := t.hear(t.down[t.heard]); !came {
				t.g.fault = err
				return iterate.Op{}, false
			}
		}
		if t.up == nil {
			for i := range t.n {
				t.values[i] = t.sums[i].Float64()
			}
			t.know()
			return t.advance()
		}
		t.phase = totalAbove
		t.encodeSums()
		return t.g.sendBytes(t.up, cargoSums, t.bytes), true
	case totalAbove:
		if data, came := t.up.next(cargoTotal); came {
			if t.g.fault = t.decodeTotal(data); t.g.fault != nil {
				return iterate.Op{}, false
			}
			t.up.taken(cargoTotal)
			t.know()
			return t.advance()
		}
	case totalBelow:
		if t.told < len(t.down) {
			t.told++
			return t.g.sendBytes(t.down[t.told-1], cargoTotal, t.bytes), true
		}
		t.phase = totalKnown
	}
	return iterate.Op{}, false
}

// know: the values are there; what is to be told of them is made.
func (t *total) know() {
	t.phase = totalBelow
	t.bytes = append(t.bytes[:0], byte(t.wish), byte(t.n))
	for _, v := range t.values[:t.n] {
		t.bytes = iterate.AppendFloat(t.bytes, v)
	}
}

func (t *total) encodeSums() {
	t.bytes = append(t.bytes[:0], byte(t.wish), byte(t.n))
	for i := range t.n {
		at := len(t.bytes)
		t.bytes, _ = t.sums[i].AppendBinary(append(t.bytes, 0, 0)) // documented never to fail
		binary.LittleEndian.PutUint16(t.bytes[at:], uint16(len(t.bytes)-at-2))
	}
}

// hear merges the sums of a child, false while they have not come or are wrong.
func (t *total) hear(w *wire) (bool, error) {
	data, came := w.next(cargoSums)
	if !came {
		return false, nil
	}
	var sums [maxSums]kernel.Sum
	wish, n, err := decodeSums(data, &sums)
	if err == nil && n != t.n {
		err = fmt.Errorf("%d sums where %d belong", n, t.n)
	}
	if err != nil {
		return false, fmt.Errorf("solver: sums from rank %d: %w", w.to.Rank, err)
	}
	for i := range n {
		t.sums[i].Merge(&sums[i])
	}
	if t.wish == iterate.Running {
		t.wish = wish
	}
	w.taken(cargoSums)
	return true, nil
}

// decodeSums reads any bytes without panicking.
func decodeSums(data []byte, sums *[maxSums]kernel.Sum) (wish iterate.Reason, n int, err error) {
	if wish, n, data, err = decodeTotalHead(data); err != nil {
		return wish, n, err
	}
	for i := range n {
		if len(data) < 2 {
			return wish, n, iterate.ErrMessageLength
		}
		bytes := int(binary.LittleEndian.Uint16(data))
		if data = data[2:]; bytes > len(data) {
			return wish, n, iterate.ErrMessageLength
		}
		if err := sums[i].UnmarshalBinary(data[:bytes]); err != nil {
			return wish, n, err
		}
		data = data[bytes:]
	}
	if len(data) > 0 {
		return wish, n, iterate.ErrMessageLength
	}
	return wish, n, nil
}

func decodeTotalHead(data []byte) (wish iterate.Reason, n int, rest []byte, err error) {
	if len(data) < 2 {
		return 0, 0, nil, iterate.ErrMessageLength
	}
	wish, n = iterate.Reason(data[0]), int(data[1])
	if wish > iterate.LastReason || wish == iterate.Converged || n > maxSums {
		return 0, 0, nil, fmt.Errorf("%d sums and a wish of %d", n, data[0])
	}
	return wish, n, data[2:], nil
}

func (t *total) decodeTotal(data []byte) error {
	wish, n, rest, err := decodeTotalHead(data)
	switch {
	case err != nil:
	case n != t.n || len(rest) != 8*n:
		err = fmt.Errorf("%d totals in %d bytes where %d belong", n, len(data), t.n)
	}
	if err != nil {
		return fmt.Errorf("solver: a total from rank %d: %w", t.up.to.Rank, err)
	}
	t.wish = wish
	for i := range n {
		t.values[i] = math.Float64frombits(binary.LittleEndian.Uint64(rest[8*i:]))
	}
	return nil
}
