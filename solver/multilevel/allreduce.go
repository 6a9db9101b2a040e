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
type allReduce struct {
	peer       *peer
	phase      reducePhase
	n          int
	sums       [maxSums]kernel.Sum
	received   int // children
	sent       int
	values     [maxSums]float64
	stopReason iterate.Reason
	bytes      []byte
	parent     *channel   // nil: the root
	children   []*channel // children
}

type reducePhase int

const (
	reduceClosed  reducePhase = iota
	reduceOpen                // the own sums are in, children's are awaited
	reduceSentUp              // sent up
	reducePublish             // known; the children are being told
	reduceKnown
)

func (t *allReduce) init(g *peer) {
	t.peer, t.bytes = g, make([]byte, 0, sumsBytes)
	for _, q := range g.tree.Children {
		t.children = append(t.children, g.channelTo(q))
	}
	if g.tree.Parent >= 0 {
		t.parent = g.channelTo(g.tree.Parent)
	}
}

// give opens a total with the own n sums, which the caller has put into t.sums.
func (t *allReduce) contribute(n int) {
	t.phase, t.n, t.received, t.sent = reduceOpen, n, 0, 0
	t.stopReason = t.peer.stopWanted
}

// proceed waits for the total.
func (t *allReduce) proceed() (iterate.Op, bool) {
	if op, ok := t.advance(); ok || t.peer.fault != nil {
		return op, ok
	}
	if t.phase != reduceKnown {
		return iterate.Op{Kind: iterate.OpWait}, true
	}
	t.phase = reduceClosed
	t.peer.stage = nil
	return iterate.Op{}, false
}

// advance does what can be done for an open total; an operation if it is to send.
func (t *allReduce) advance() (iterate.Op, bool) {
	switch t.phase {
	case reduceOpen:
		for ; t.received < len(t.children); t.received++ {
			if came, err := t.receive(t.children[t.received]); !came {
				t.peer.fault = err
				return iterate.Op{}, false
			}
		}
		if t.parent == nil {
			for i := range t.n {
				t.values[i] = t.sums[i].Float64()
			}
			t.publish()
			return t.advance()
		}
		t.phase = reduceSentUp
		t.encodeSums()
		return t.peer.sendBytes(t.parent, payloadSums, t.bytes), true
	case reduceSentUp:
		if data, came := t.parent.next(payloadTotals); came {
			if t.peer.fault = t.decodeTotals(data); t.peer.fault != nil {
				return iterate.Op{}, false
			}
			t.parent.consume(payloadTotals)
			t.publish()
			return t.advance()
		}
	case reducePublish:
		if t.sent < len(t.children) {
			t.sent++
			return t.peer.sendBytes(t.children[t.sent-1], payloadTotals, t.bytes), true
		}
		t.phase = reduceKnown
	}
	return iterate.Op{}, false
}

// know: the values are there; what is to be told of them is made.
func (t *allReduce) publish() {
	t.phase = reducePublish
	t.bytes = append(t.bytes[:0], byte(t.stopReason), byte(t.n))
	for _, v := range t.values[:t.n] {
		t.bytes = iterate.AppendFloat(t.bytes, v)
	}
}

func (t *allReduce) encodeSums() {
	t.bytes = append(t.bytes[:0], byte(t.stopReason), byte(t.n))
	for i := range t.n {
		at := len(t.bytes)
		t.bytes, _ = t.sums[i].AppendBinary(append(t.bytes, 0, 0)) // documented never to fail
		binary.LittleEndian.PutUint16(t.bytes[at:], uint16(len(t.bytes)-at-2))
	}
}

// hear merges the sums of a child, false while they have not come or are wrong.
func (t *allReduce) receive(w *channel) (bool, error) {
	data, came := w.next(payloadSums)
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
	if t.stopReason == iterate.Running {
		t.stopReason = wish
	}
	w.consume(payloadSums)
	return true, nil
}

// decodeSums reads any bytes without panicking.
func decodeSums(data []byte, sums *[maxSums]kernel.Sum) (wish iterate.Reason, n int, err error) {
	if wish, n, data, err = decodeHeader(data); err != nil {
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

func decodeHeader(data []byte) (wish iterate.Reason, n int, rest []byte, err error) {
	if len(data) < 2 {
		return 0, 0, nil, iterate.ErrMessageLength
	}
	wish, n = iterate.Reason(data[0]), int(data[1])
	if wish > iterate.LastReason || wish == iterate.Converged || n > maxSums {
		return 0, 0, nil, fmt.Errorf("%d sums and a wish of %d", n, data[0])
	}
	return wish, n, data[2:], nil
}

func (t *allReduce) decodeTotals(data []byte) error {
	wish, n, rest, err := decodeHeader(data)
	switch {
	case err != nil:
	case n != t.n || len(rest) != 8*n:
		err = fmt.Errorf("%d totals in %d bytes where %d belong", n, len(data), t.n)
	}
	if err != nil {
		return fmt.Errorf("solver: a total from rank %d: %w", t.parent.to.Rank, err)
	}
	t.stopReason = wish
	for i := range n {
		t.values[i] = math.Float64frombits(binary.LittleEndian.Uint64(rest[8*i:]))
	}
	return nil
}
