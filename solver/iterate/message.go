package iterate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Agreement messages, between neighbours, reliable and in order. Layout, little
// endian: version, kind, reason, mark (one byte each), time step (4 bytes; 0 in a
// stationary run), number (8 bytes), then by kind:
//
//	diagonal, step  one float64
//	estimate        two float64: the guess, and the seconds that the way from the
//	                receiver to the farthest peer below and back takes; reason 1: every
//	                peer below has made its last sweep
//	heard           one float64: seconds until the tolerance may be met
//	residual        length of the first sum (2 bytes), that sum, the second sum
//	verdict         two float64: the relative residual, the reference norm; the
//	                iterate to be measured next (8 bytes)
//	face, plane     iterate (8 bytes), the face's or plane's values
//	load            two float64: speed and longest sweep beyond; planes (8 bytes)
//	move, grant     iterate (8 bytes), planes (8 bytes)
//	layers, shares, correction  iterate (8 bytes), values of 8 bytes each
//	reach, last     iterate (8 bytes)
//	stop, finished, close, halt  nothing
//
// The mark of a face is the age of the cut it belongs to; that of a residual is 1 when
// the snapshot is void, that of a verdict when the next check has to bring magnitudes, and
// that of a correction when it takes the one before it back.
type MessageKind uint8

const (
	MsgDiagonal      MessageKind = iota + 1 // up: largest diagonal entry below
	MsgStep                                 // down: the step δ
	MsgResidual                             // up: exact sums of check or snapshot number
	MsgVerdict                              // down: what they mean
	MsgCaptured                             // to every neighbour: frozen face of snapshot number
	MsgEstimate                             // up: a guess at the squared residual below
	MsgStop                                 // up: somebody wants an early end
	MsgFinished                             // up: all below have reached the last iterate
	MsgClose                                // down: all have; nobody needs faces any more
	MsgLoad                                 // to either neighbour: what the peers on the sender's side can do
	MsgMove                                 // to the upper neighbour: planes to be handed over, from iterate on
	MsgGrant                                // to the lower one: how many of them will be
	MsgPlane                                // from who gives planes: number counts them
	MsgLayers                               // to every peer whose region meets the own box: what a time step starts from
	MsgShares                               // up: shares of the coarse problem
	MsgCorrection                           // down: correction number
	MsgEstimateReply                        // down: the last estimate has come
	MsgHalt                                 // down: make no further iterate, the run is to end early
	MsgReach                                // up: the newest iterate that a peer below has begun
	MsgLast                                 // down: the iterate at which all end
	MsgKinds                                // the number of kinds plus 1
)

const (
	messageVersion = 6
	// MessageHeader is the length of the header of an agreement message in bytes.
	MessageHeader = 16
)

// Message is a decoded agreement message. values aliases the input.
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

// MaxSumBytes is more than an encoded kernel.Sum takes.
const MaxSumBytes = 320

// AgreementBytes returns an upper bound of the length of the agreement messages that travel
// between two neighbours that exchange halos of that length: what their session has to carry.
func AgreementBytes(haloBytes int) int {
	return MessageHeader + max(8+haloBytes, 2+2*MaxSumBytes)
}

// Encode returns the message in its wire format.
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

// ErrMessageLength reports an agreement message that is longer or shorter than its kind.
var ErrMessageLength = errors.New("wrong length")

// DecodeMessage reads any bytes without panicking; faceBytes is the length that a
// face of the sender's must have.
func decodeMessage(data []byte, faceBytes int) (m Message, err error) {
	if len(data) < MessageHeader {
		return m, ErrMessageLength
	}
	if data[0] != messageVersion {
		return m, fmt.Errorf("version %d, this program speaks %d", data[0], messageVersion)
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
		if len(body) != 8+faceBytes {
			return m, fmt.Errorf("a frozen face of %d bytes where %d belong", len(body)-8, faceBytes)
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
		return m, fmt.Errorf("unknown kind %d", m.Kind)
	}
	return m, err
}

// MostMark is the largest mark of a kind of message.
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
