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
// (4 bytes, 0 in a stationary run), number (8 bytes), then by kind:
//
//	diagonal, step  one float64
//	estimate        two float64: the squared residual; the round-trip time in seconds from the
//	                receiver to the farthest peer of the sender's subtree. Reason 2: every
//	                peer of the subtree has made its last sweep
//	estimate reply  one float64: seconds until the tolerance is expected to be met
//	residual        length of the first sum (2 bytes), that sum, the second sum
//	verdict         two float64: the relative residual, the reference norm; the
//	                iterate to measure next (8 bytes)
//	captured, plane iterate (8 bytes), the values of the halo or plane
//	load            two float64: speed and longest sweep of the sender's side; planes (8 bytes)
//	move, grant     iterate (8 bytes), planes (8 bytes)
//	layers, shares, correction  iterate (8 bytes), values of 8 bytes each
//	reach, last     iterate (8 bytes)
//	stop, finished, close, halt  nothing
//
// The mark of a captured halo is the number of moves of its boundary. It is 1 in a residual of a void
// snapshot, in a verdict after which the next check reduces magnitudes, and in a correction that
// withdraws the previous one.
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
	MsgKinds                                // number of kinds plus 1
)

const (
	messageVersion = 6
	// MessageHeader is the length in bytes of the header of an agreement message.
	MessageHeader = 16
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
	switch m.Kind {
	case MsgDiagonal, MsgStep, MsgEstimateReply:
		out = AppendFloat(out, m.A)
	case MsgEstimate:
		out = AppendFloat(AppendFloat(out, m.A), m.B)
	case MsgVerdict:
		out = AppendFloat(AppendFloat(out, m.A), m.B)
		out = binary.LittleEndian.AppendUint64(out, uint64(m.Iterate))
	case MsgCaptured, MsgPlane, MsgLayers, MsgShares, MsgCorrection:
		out = binary.LittleEndian.AppendUint64(out, uint64(m.Iterate))
		out = append(out, m.Values...)
	case MsgLoad:
		out = AppendFloat(AppendFloat(out, m.A), m.B)
		out = binary.LittleEndian.AppendUint64(out, uint64(m.Count))
	case MsgReach, MsgLast:
		out = binary.LittleEndian.AppendUint64(out, uint64(m.Iterate))
	case MsgMove, MsgGrant:
		out = binary.LittleEndian.AppendUint64(out, uint64(m.Iterate))
		out = binary.LittleEndian.AppendUint64(out, uint64(m.Count))
	case MsgResidual:
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
	m.Kind, m.Reason = MessageKind(data[1]), Reason(data[2])
	m.Step, m.Number = int(binary.LittleEndian.Uint32(data[4:])), binary.LittleEndian.Uint64(data[8:])
	if m.Mark = data[3]; m.Mark > maxMark(m.Kind) || m.Reason > LastReason {
		return m, fmt.Errorf("unknown flags %#x %#x", data[2], data[3])
	}
	body := data[MessageHeader:]
	switch m.Kind {
	case MsgDiagonal, MsgStep, MsgEstimateReply:
		if len(body) != 8 {
			return m, ErrMessageLength
		}
		m.A = ReadFloat(body)
	case MsgEstimate:
		if len(body) != 16 {
			return m, ErrMessageLength
		}
		m.A, m.B = ReadFloat(body), ReadFloat(body[8:])
	case MsgVerdict:
		if len(body) != 24 {
			return m, ErrMessageLength
		}
		m.A, m.B = ReadFloat(body), ReadFloat(body[8:])
		m.Iterate = Iteration(binary.LittleEndian.Uint64(body[16:]))
	case MsgCaptured, MsgPlane:
		if len(body) != 8+haloBytes {
			return m, fmt.Errorf("a captured halo or plane of %d bytes; %d are expected", len(body)-8, haloBytes)
		}
		m.Iterate, m.Values = Iteration(binary.LittleEndian.Uint64(body)), body[8:]
	case MsgLoad, MsgMove, MsgGrant:
		err = m.decodeBalance(body)
	case MsgLayers, MsgShares, MsgCorrection:
		if len(body) < 8 || len(body)%8 != 0 {
			return m, ErrMessageLength
		}
		m.Iterate, m.Values = Iteration(binary.LittleEndian.Uint64(body)), body[8:]
	case MsgResidual:
		err = m.decodeSums(body)
	case MsgReach, MsgLast:
		if len(body) != 8 {
			return m, ErrMessageLength
		}
		m.Iterate = Iteration(binary.LittleEndian.Uint64(body))
	case MsgStop, MsgFinished, MsgClose, MsgHalt:
		if len(body) != 0 {
			return m, ErrMessageLength
		}
	default:
		return m, fmt.Errorf("unknown message kind %d", m.Kind)
	}
	return m, err
}

// maxMark returns the largest mark of a kind of message.
func maxMark(k MessageKind) uint8 {
	switch k {
	case MsgCaptured:
		return MaxBoundaryMoves
	case MsgResidual, MsgVerdict, MsgCorrection:
		return 1
	}
	return 0
}

func (m *Message) decodeBalance(body []byte) error {
	if m.Kind == MsgLoad {
		if len(body) != 24 {
			return ErrMessageLength
		}
		m.A, m.B, m.Count = ReadFloat(body), ReadFloat(body[8:]), int64(binary.LittleEndian.Uint64(body[16:]))
		return nil
	}
	if len(body) != 16 {
		return ErrMessageLength
	}
	m.Iterate, m.Count = Iteration(binary.LittleEndian.Uint64(body)), int64(binary.LittleEndian.Uint64(body[8:]))
	return nil
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
