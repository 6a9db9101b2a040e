package multilevel

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// maxSums bounds the sums of one reduction.
const maxSums = 3

// allReduce adds exact sums over the tree and sends the totals, rounded once at the root, to all peers, so that
// all decide by the same numbers. It proceeds in the background once the peer has contributed. One reduction is
// open at a time. It also propagates a request for an early end, and the root's request to keep an iterate.
//
// Sums are encoded as reason and number of sums (one byte each), then per sum its length (2 bytes, little
// endian) and encoding. Totals are encoded as reason, number (plus keepFlag), and one float64 per total.
type allReduce struct {
	peer       *peer
	phase      reducePhase
	n          int
	sums       [maxSums]kernel.Sum
	received   int // children whose sums have been merged
	sent       int // children that the totals have been sent to
	values     [maxSums]float64
	stopReason iterate.Reason
	keep       bool // the root wants an iterate to be kept
	bytes      []byte
	parent     *channel   // nil at the root
	children   []*channel // in the tree
}

// keepFlag is added to the number of totals if an iterate is to be kept.
const keepFlag = 0x80

type reducePhase int

const (
	reduceClosed  reducePhase = iota
	reduceOpen                // waiting for the children's sums
	reduceSentUp              // own sums sent to the parent
	reducePublish             // totals known, being sent to the children
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

// contribute opens a reduction of the n own sums in t.sums.
func (t *allReduce) contribute(n int) {
	t.phase = reduceOpen
	t.n = n
	t.received = 0
	t.sent = 0
	t.stopReason = t.peer.stopWanted
}

// proceed waits for the totals.
func (t *allReduce) proceed() (iterate.Op, bool) {
	if op, ok := t.advance(); ok || t.peer.fault != nil {
		return op, ok
	}
	if t.phase != reduceKnown {
		return iterate.Op{Kind: iterate.OpWait}, true
	}
	t.phase = reduceClosed
	t.peer.stage = nil
	if t.keep { // only now, so that all peers keep the same iterate
		t.peer.driver.keeps = true
	}
	return iterate.Op{}, false
}

// advance does what is possible for the open reduction. It returns an operation if there is a message to send.
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
			t.keep = t.peer.driver.keep.Due(t.peer.now)
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

// publish encodes the totals for the children.
func (t *allReduce) publish() {
	t.phase = reducePublish
	t.bytes = append(t.bytes[:0], byte(t.stopReason), byte(t.n))
	if t.keep {
		t.bytes[1] |= keepFlag
	}
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

// receive merges the sums of a child. It returns false if they have not arrived or are invalid.
func (t *allReduce) receive(w *channel) (bool, error) {
	data, came := w.next(payloadSums)
	if !came {
		return false, nil
	}
	var sums [maxSums]kernel.Sum
	reason, n, err := decodeSums(data, &sums)
	if err == nil && n != t.n {
		err = fmt.Errorf("%d sums; want %d", n, t.n)
	}
	if err != nil {
		return false, w.refuse("sums: %w", err)
	}
	for i := range n {
		t.sums[i].Merge(&sums[i])
	}
	if t.stopReason == iterate.Running {
		t.stopReason = reason
	}
	w.consume(payloadSums)
	return true, nil
}

// decodeSums decodes sums. It accepts any bytes without panicking.
func decodeSums(data []byte, sums *[maxSums]kernel.Sum) (reason iterate.Reason, n int, err error) {
	if reason, n, data, err = decodeHeader(data, 0); err != nil {
		return reason, n, err
	}
	for i := range n {
		if len(data) < 2 {
			return reason, n, iterate.ErrMessageLength
		}
		bytes := int(binary.LittleEndian.Uint16(data))
		if data = data[2:]; bytes > len(data) {
			return reason, n, iterate.ErrMessageLength
		}
		if err := sums[i].UnmarshalBinary(data[:bytes]); err != nil {
			return reason, n, err
		}
		data = data[bytes:]
	}
	if len(data) > 0 {
		return reason, n, iterate.ErrMessageLength
	}
	return reason, n, nil
}

// decodeHeader decodes the first two bytes, without flags in the second one.
func decodeHeader(data []byte, flags byte) (reason iterate.Reason, n int, rest []byte, err error) {
	if len(data) < 2 {
		return 0, 0, nil, iterate.ErrMessageLength
	}
	reason, n = iterate.Reason(data[0]), int(data[1]&^flags)
	if reason > iterate.LastReason || reason == iterate.Converged || n > maxSums {
		return 0, 0, nil, fmt.Errorf("%d sums and stop reason %d", n, data[0])
	}
	return reason, n, data[2:], nil
}

func (t *allReduce) decodeTotals(data []byte) error {
	reason, n, rest, err := decodeHeader(data, keepFlag)
	switch {
	case err != nil:
	case n != t.n || len(rest) != 8*n:
		err = fmt.Errorf("%d totals in %d bytes; want %d totals", n, len(data), t.n)
	}
	if err != nil {
		return t.parent.refuse("totals: %w", err)
	}
	t.stopReason, t.keep = reason, data[1]&keepFlag != 0
	kernel.ReadFloats(t.values[:n], rest)
	return nil
}
