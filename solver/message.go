package solver

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
type messageKind uint8

const (
	msgDiagonal   messageKind = iota + 1 // up: largest diagonal entry below
	msgStep                              // down: the step δ
	msgResidual                          // up: exact sums of check or snapshot number
	msgVerdict                           // down: what they mean
	msgFace                              // to every neighbour: frozen face of snapshot number
	msgEstimate                          // up: a guess at the squared residual below
	msgStop                              // up: somebody wants an early end
	msgFinished                          // up: all below have reached the last iterate
	msgClose                             // down: all have; nobody needs faces any more
	msgLoad                              // to either neighbour: what the peers on the sender's side can do
	msgMove                              // to the upper neighbour: planes to be handed over, from iterate on
	msgGrant                             // to the lower one: how many of them will be
	msgPlane                             // from who gives planes: number counts them
	msgLayers                            // to every peer whose region meets the own box: what a time step starts from
	msgShares                            // up: shares of the coarse problem
	msgCorrection                        // down: correction number
	msgHeard                             // down: the last estimate has come
	msgHalt                              // down: make no further iterate, the run is to end early
	msgReach                             // up: the newest iterate that a peer below has begun
	msgLast                              // down: the iterate at which all end
	msgKinds
)

const (
	messageVersion = 6
	messageHeader  = 16
)

// message is a decoded agreement message. values aliases the input.
type message struct {
	kind    messageKind
	reason  Reason
	mark    uint8
	step    int // time step
	number  uint64
	a, b    float64
	iterate Iteration
	squares kernel.Sum // residual
	start   kernel.Sum // residual, number 0: of the reference vector; later: magnitudes, where they were asked for
	values  []byte     // face, plane, layers, shares, correction
	count   int64      // load, move, grant: planes; those of a move go up if positive
}

// maxSumBytes is more than an encoded kernel.Sum takes.
const maxSumBytes = 320

// AgreementBytes returns an upper bound of the length of the agreement messages that travel
// between two neighbours that exchange halos of that length: what their session has to carry.
func AgreementBytes(haloBytes int) int {
	return messageHeader + max(8+haloBytes, 2+2*maxSumBytes)
}

func (m *message) encode() []byte {
	out := make([]byte, messageHeader, messageHeader+24+len(m.values))
	out[0], out[1], out[2], out[3] = messageVersion, byte(m.kind), byte(m.reason), m.mark
	binary.LittleEndian.PutUint32(out[4:], uint32(m.step))
	binary.LittleEndian.PutUint64(out[8:], m.number)
	switch m.kind {
	case msgDiagonal, msgStep, msgHeard:
		out = appendFloat(out, m.a)
	case msgEstimate:
		out = appendFloat(appendFloat(out, m.a), m.b)
	case msgVerdict:
		out = appendFloat(appendFloat(out, m.a), m.b)
		out = binary.LittleEndian.AppendUint64(out, uint64(m.iterate))
	case msgFace, msgPlane, msgLayers, msgShares, msgCorrection:
		out = binary.LittleEndian.AppendUint64(out, uint64(m.iterate))
		out = append(out, m.values...)
	case msgLoad:
		out = appendFloat(appendFloat(out, m.a), m.b)
		out = binary.LittleEndian.AppendUint64(out, uint64(m.count))
	case msgReach, msgLast:
		out = binary.LittleEndian.AppendUint64(out, uint64(m.iterate))
	case msgMove, msgGrant:
		out = binary.LittleEndian.AppendUint64(out, uint64(m.iterate))
		out = binary.LittleEndian.AppendUint64(out, uint64(m.count))
	case msgResidual:
		first, _ := m.squares.MarshalBinary() // documented never to fail
		second, _ := m.start.MarshalBinary()
		out = binary.LittleEndian.AppendUint16(out, uint16(len(first)))
		out = append(append(out, first...), second...)
	}
	return out
}

func appendFloat(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

var errMessageLength = errors.New("wrong length")

// decodeMessage reads any bytes without panicking; faceBytes is the length that a
// face of the sender's must have.
func decodeMessage(data []byte, faceBytes int) (m message, err error) {
	if len(data) < messageHeader {
		return m, errMessageLength
	}
	if data[0] != messageVersion {
		return m, fmt.Errorf("version %d, this program speaks %d", data[0], messageVersion)
	}
	m.kind, m.reason = messageKind(data[1]), Reason(data[2])
	m.step, m.number = int(binary.LittleEndian.Uint32(data[4:])), binary.LittleEndian.Uint64(data[8:])
	if m.mark = data[3]; m.mark > mostMark(m.kind) || m.reason > lastReason {
		return m, fmt.Errorf("unknown flags %#x %#x", data[2], data[3])
	}
	body := data[messageHeader:]
	switch m.kind {
	case msgDiagonal, msgStep, msgHeard:
		if len(body) != 8 {
			return m, errMessageLength
		}
		m.a = readFloat(body)
	case msgEstimate:
		if len(body) != 16 {
			return m, errMessageLength
		}
		m.a, m.b = readFloat(body), readFloat(body[8:])
	case msgVerdict:
		if len(body) != 24 {
			return m, errMessageLength
		}
		m.a, m.b = readFloat(body), readFloat(body[8:])
		m.iterate = Iteration(binary.LittleEndian.Uint64(body[16:]))
	case msgFace, msgPlane:
		if len(body) != 8+faceBytes {
			return m, fmt.Errorf("a frozen face of %d bytes where %d belong", len(body)-8, faceBytes)
		}
		m.iterate, m.values = Iteration(binary.LittleEndian.Uint64(body)), body[8:]
	case msgLoad, msgMove, msgGrant:
		err = m.decodeBalance(body)
	case msgLayers, msgShares, msgCorrection:
		if len(body) < 8 || len(body)%8 != 0 {
			return m, errMessageLength
		}
		m.iterate, m.values = Iteration(binary.LittleEndian.Uint64(body)), body[8:]
	case msgResidual:
		err = m.decodeSums(body)
	case msgReach, msgLast:
		if len(body) != 8 {
			return m, errMessageLength
		}
		m.iterate = Iteration(binary.LittleEndian.Uint64(body))
	case msgStop, msgFinished, msgClose, msgHalt:
		if len(body) != 0 {
			return m, errMessageLength
		}
	default:
		return m, fmt.Errorf("unknown kind %d", m.kind)
	}
	return m, err
}

// mostMark is the largest mark of a kind of message.
func mostMark(k messageKind) uint8 {
	switch k {
	case msgFace:
		return mostAge
	case msgResidual, msgVerdict, msgCorrection:
		return 1
	}
	return 0
}

func (m *message) decodeBalance(body []byte) error {
	if m.kind == msgLoad {
		if len(body) != 24 {
			return errMessageLength
		}
		m.a, m.b, m.count = readFloat(body), readFloat(body[8:]), int64(binary.LittleEndian.Uint64(body[16:]))
		return nil
	}
	if len(body) != 16 {
		return errMessageLength
	}
	m.iterate, m.count = Iteration(binary.LittleEndian.Uint64(body)), int64(binary.LittleEndian.Uint64(body[8:]))
	return nil
}

func (m *message) decodeSums(body []byte) error {
	if len(body) < 2 {
		return errMessageLength
	}
	n := int(binary.LittleEndian.Uint16(body))
	body = body[2:]
	if n > len(body) {
		return errMessageLength
	}
	if err := m.squares.UnmarshalBinary(body[:n]); err != nil {
		return err
	}
	return m.start.UnmarshalBinary(body[n:])
}

func readFloat(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
