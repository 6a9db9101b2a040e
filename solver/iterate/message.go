package iterate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// MessageKind is the kind of an agreement message. Agreement messages travel between neighbours, reliably
// and in order. Their layout is little endian: version, kind, reason, mark (one byte each), time step
// (4 bytes, 0 in a stationary run), number (8 bytes), then the body of the kind; see layouts.
type MessageKind uint8

const (
	MsgDiagonal      MessageKind = iota + 1 // up: largest diagonal entry of the subtree
	MsgStep                                 // down: the step length δ
	MsgResidual                             // up: exact sums of check or snapshot Number
	MsgVerdict                              // down: verdict on check or snapshot Number
	MsgCaptured                             // to every neighbour: captured halo of snapshot Number
	MsgEstimate                             // up: estimate of the squared residual of the subtree
	MsgStop                                 // up: request for an early end
	MsgFinished                             // up: the subtree has reached the last iterate
	MsgClose                                // down: all peers have reached it; no halo is needed any more
	MsgLoad                                 // to a neighbour: speed of the peers on the sender's side
	MsgMove                                 // to the upper neighbour: proposal to move planes, from Iterate on
	MsgGrant                                // to the lower neighbour: number of planes that will move
	MsgPlane                                // from the sender of planes: plane Number of the move
	MsgLayers                               // to every peer whose region meets the sender's box: start of a time step
	MsgShares                               // up: contributions to the coarse problem
	MsgCorrection                           // down: coarse correction Number
	MsgEstimateReply                        // down: acknowledges an estimate
	MsgHalt                                 // down: early end, make no further iterate
	MsgReach                                // up: newest iterate begun in the subtree
	MsgLast                                 // down: last iterate of all peers
	MsgKept                                 // up: the subtree has stored its copies of iterate Number
	MsgKeptAll                              // down: all peers have
	MsgKinds                                // number of kinds plus 1
)

const (
	messageVersion = 7
	// MessageHeader is the length in bytes of the header of an agreement message.
	MessageHeader = 16
)

// layout describes the body of a kind of message: fields of 8 bytes by their letters (A, B, Iterate, Count), then
// values.
type layout struct {
	fields  string
	values  bool
	halo    bool // the values have the length of a halo
	maxMark uint8
}

var layouts = [MsgKinds]layout{
	MsgDiagonal: {fields: "A"},
	MsgStep:     {fields: "A"},
	// The length of the first sum (2 bytes), that sum, the second sum. Mark 1: the snapshot is void.
	MsgResidual: {maxMark: 1},
	// The relative residual, the reference norm, the iterate to measure next.
	MsgVerdict: {fields: "ABI", maxMark: MarkMagnitudes | MarkKeep},
	// The mark is the number of moves of the boundary.
	MsgCaptured: {fields: "I", values: true, halo: true, maxMark: MaxBoundaryMoves},
	// The squared residual; the round-trip time in seconds from the receiver to the farthest peer of the sender's
	// subtree. Reason 2: every peer of the subtree has made its last sweep.
	MsgEstimate: {fields: "AB"},
	MsgLoad:     {fields: "ABC"}, // speed and longest sweep of the sender's side; planes
	MsgMove:     {fields: "IC"},
	MsgGrant:    {fields: "IC"},
	MsgPlane:    {fields: "I", values: true, halo: true},
	MsgLayers:   {fields: "I", values: true},
	MsgShares:   {fields: "I", values: true},
	// Mark 1: the correction withdraws the previous one.
	MsgCorrection:    {fields: "I", values: true, maxMark: 1},
	MsgEstimateReply: {fields: "A"}, // seconds until the tolerance is expected to be met
	MsgReach:         {fields: "I"},
	MsgLast:          {fields: "I"},
}

// Marks of a verdict.
const (
	MarkMagnitudes = 1 << iota // the next check reduces magnitudes
	MarkKeep                   // the iterate at which the verdict takes effect is kept
)

// Message is a decoded agreement message. Values aliases the input. Its kind determines the fields in use.
type Message struct {
	Kind    MessageKind
	Reason  Reason
	Mark    uint8
	Step    int // time step
	Number  uint64
	A, B    float64
	Iterate Iteration
	Squares kernel.Sum // residual
	Start   kernel.Sum // residual, number 0: of the reference vector; later: magnitudes, where they were asked for
	Values  []byte     // face, plane, layers, shares, correction
	Count   int64      // load, move, grant: planes; those of a move go up if positive
}

// MaxSumBytes bounds the length of an encoded kernel.Sum.
const MaxSumBytes = 320

// AgreementBytes returns an upper bound of the length of agreement messages between two neighbours whose
// halos have the given length.
func AgreementBytes(haloBytes int) int {
	return MessageHeader + max(8+haloBytes, 2+2*MaxSumBytes)
}

// Encode returns the message in the wire format.
func (m *Message) Encode() []byte {
	out := make([]byte, MessageHeader, MessageHeader+24+len(m.Values))
	out[0], out[1], out[2], out[3] = messageVersion, byte(m.Kind), byte(m.Reason), m.Mark
	binary.LittleEndian.PutUint32(out[4:], uint32(m.Step))
	binary.LittleEndian.PutUint64(out[8:], m.Number)
	l := layouts[m.Kind]
	for _, field := range l.fields {
		switch field {
		case 'A':
			out = AppendFloat(out, m.A)
		case 'B':
			out = AppendFloat(out, m.B)
		case 'I':
			out = binary.LittleEndian.AppendUint64(out, uint64(m.Iterate))
		case 'C':
			out = binary.LittleEndian.AppendUint64(out, uint64(m.Count))
		}
	}
	if l.values {
		out = append(out, m.Values...)
	}
	if m.Kind == MsgResidual {
		first, _ := m.Squares.MarshalBinary() // documented never to fail
		second, _ := m.Start.MarshalBinary()
		out = binary.LittleEndian.AppendUint16(out, uint16(len(first)))
		out = append(append(out, first...), second...)
	}
	return out
}

// AppendFloat appends the 8 bytes of v, little endian.
func AppendFloat(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

// ErrMessageLength reports an agreement message whose length does not match its kind.
var ErrMessageLength = errors.New("wrong message length")

// decodeMessage decodes a message. It does not panic for any input. haloBytes is the length of a halo from
// the sender.
func decodeMessage(data []byte, haloBytes int) (m Message, err error) {
	if len(data) < MessageHeader {
		return m, ErrMessageLength
	}
	if data[0] != messageVersion {
		return m, fmt.Errorf("message version %d; this program uses version %d: run the same program at all peers",
			data[0], messageVersion)
	}
	m.Kind, m.Reason, m.Mark = MessageKind(data[1]), Reason(data[2]), data[3]
	m.Step, m.Number = int(binary.LittleEndian.Uint32(data[4:])), binary.LittleEndian.Uint64(data[8:])
	if m.Kind < MsgDiagonal || m.Kind >= MsgKinds {
		return m, fmt.Errorf("unknown message kind %d", m.Kind)
	}
	l := layouts[m.Kind]
	if m.Mark > l.maxMark || m.Reason > LastReason {
		return m, fmt.Errorf("unknown flags %#x %#x", data[2], data[3])
	}
	body := data[MessageHeader:]
	if m.Kind == MsgResidual {
		return m, m.decodeSums(body)
	}
	rest := len(body) - 8*len(l.fields)
	switch {
	case l.halo && rest != haloBytes:
		return m, fmt.Errorf("a captured halo or plane of %d bytes; %d are expected", rest, haloBytes)
	case rest < 0, !l.values && rest > 0, !l.halo && rest%8 != 0:
		return m, ErrMessageLength
	}
	for _, field := range l.fields {
		switch field {
		case 'A':
			m.A = ReadFloat(body)
		case 'B':
			m.B = ReadFloat(body)
		case 'I':
			m.Iterate = Iteration(binary.LittleEndian.Uint64(body))
		case 'C':
			m.Count = int64(binary.LittleEndian.Uint64(body))
		}
		body = body[8:]
	}
	if l.values {
		m.Values = body
	}
	return m, nil
}

func (m *Message) decodeSums(body []byte) error {
	if len(body) < 2 {
		return ErrMessageLength
	}
	n := int(binary.LittleEndian.Uint16(body))
	body = body[2:]
	if n > len(body) {
		return ErrMessageLength
	}
	if err := m.Squares.UnmarshalBinary(body[:n]); err != nil {
		return err
	}
	return m.Start.UnmarshalBinary(body[n:])
}

// ReadFloat returns the float64 in the first 8 bytes of b, little endian.
func ReadFloat(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
