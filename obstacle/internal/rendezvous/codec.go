package rendezvous

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Bounds on the length of bodies, in bytes.
const (
	MaxHello    = 4 << 10         // of small messages, and before a connection is authenticated
	MaxBody     = 4 << 20         // of messages that list peers or sessions
	MaxChunk    = 1<<16 - 1<<5    // payload of a Chunk: the frame fits the buffer of a connection
	chunkHeader = 1 + 8           // stream, offset
	frameHeader = 4 + 1           // length, kind
	readStep    = 64 << 10        // buffer of a connection
	maxOffset   = int64(64 << 30) // no stream is longer
)

// ErrMalformed is wrapped by every error about bytes that are not a message.
var ErrMalformed = errors.New("not a message of the rendezvous protocol")

// bodies returns a message of every kind, by kind.
func bodies() []Message {
	return []Message{
		KindChallenge: Challenge{}, KindJoin: Join{}, KindWelcome: Welcome{}, KindRefuse: Refuse{},
		KindListen: Listen{}, KindAssign: Assign{}, KindChunk: Chunk{}, KindReady: Ready{}, KindStart: Start{},
		KindBeat: Beat{}, KindStop: Stop{}, KindLost: Lost{}, KindResult: Result{}, KindBye: Bye{},
		KindSessions: Sessions{}, KindStep: Step{}, KindBlock: Block{}, KindSpare: Spare{}, KindEpoch: Epoch{},
		KindCapture: Capture{}, KindCaptured: Captured{}, KindRepaired: Repaired{}, KindHost: Host{}, KindProbe: Probe{},
		KindUnreachable: Unreachable{}, KindKeep: Keep{}, KindKeeping: Keeping{}, KindTerm: Term{}, KindRecord: Record{},
		KindVote: Vote{}, KindAnswer: Answer{}, KindLeave: Leave{}, KindResend: Resend{},
		KindHeld: Held{}, KindView: View{}, KindReceived: Received{},
	}
}

// kindOf returns the kind of a message, 0 for another type.
func kindOf(m Message) Kind {
	t := reflect.TypeOf(m)
	return Kind(max(0, slices.IndexFunc(bodies(), func(b Message) bool { return b != nil && reflect.TypeOf(b) == t })))
}

// bound returns the length of the longest body of a kind, 0 for an unknown kind.
func bound(k Kind) int {
	switch k {
	case 0:
		return 0
	case KindWelcome, KindAssign, KindResult, KindSessions, KindEpoch, KindCapture, KindRecord, KindAnswer,
		KindView:
		return MaxBody
	case KindChunk:
		return MaxChunk + chunkHeader
	}
	if int(k) < len(bodies()) {
		return MaxHello
	}
	return 0
}

// Append appends the frame of m to dst.
func Append(dst []byte, m Message) ([]byte, error) {
	start, k := len(dst), kindOf(m)
	dst = append(dst, 0, 0, 0, 0, byte(k))
	if c, is := m.(Chunk); is {
		dst = append(dst, byte(c.Stream))
		dst = binary.BigEndian.AppendUint64(dst, uint64(c.Offset))
		dst = append(dst, c.Data...)
	} else {
		body, err := json.Marshal(m)
		if err != nil {
			return dst[:start], fmt.Errorf("rendezvous: %T: %w", m, err)
		}
		dst = append(dst, body...)
	}
	n := len(dst) - start - frameHeader
	if n > bound(k) {
		return dst[:start], fmt.Errorf("rendezvous: a %T of %d bytes: the bound is %d", m, n, bound(k))
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(n))
	return dst, nil
}

// Read reads one frame. It accepts only the given kinds, or all if none is given, so that an unauthenticated peer
// cannot send a long frame. buf is reused between calls; the data of a Chunk points into it.
func Read(r io.Reader, buf *[]byte, only ...Kind) (Message, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n, k := int64(binary.BigEndian.Uint32(head[:])), Kind(head[4])
	switch {
	case bound(k) == 0:
		return nil, fmt.Errorf("%w: kind %d", ErrMalformed, k)
	case n > int64(bound(k)):
		return nil, fmt.Errorf("%w: %d bytes of kind %d, which has at most %d", ErrMalformed, n, k, bound(k))
	case len(only) > 0 && !slices.Contains(only, k):
		return nil, fmt.Errorf("%w: unexpected kind %d", ErrMalformed, k)
	}
	body, err := readBody(r, (*buf)[:0], int(n))
	if *buf = body; err != nil {
		return nil, err
	}
	return Decode(k, body)
}

// readBody reads n bytes into body, which grows as they arrive: a peer that announces more than it sends occupies little.
func readBody(r io.Reader, body []byte, n int) ([]byte, error) {
	for at := 0; at < n; at = len(body) {
		if at == cap(body) {
			body = slices.Grow(body, min(n, max(2*at, readStep))-at)
		}
		body = body[:min(n, cap(body))]
		if _, err := io.ReadFull(r, body[at:]); errors.Is(err, io.EOF) {
			return body, io.ErrUnexpectedEOF
		} else if err != nil {
			return body, err
		}
	}
	return body, nil
}

// Decode decodes a body. Any bytes may be passed.
func Decode(k Kind, body []byte) (Message, error) {
	if bound(k) == 0 || len(body) > bound(k) {
		return nil, fmt.Errorf("%w: %d bytes of kind %d", ErrMalformed, len(body), k)
	}
	if k == KindChunk {
		return decodeChunk(body)
	}
	m := reflect.New(reflect.TypeOf(bodies()[k]))
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(m.Interface()); err != nil {
		return nil, fmt.Errorf("%w: kind %d: %w", ErrMalformed, k, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%w: kind %d: more than one value", ErrMalformed, k)
	}
	if err := check("", m); err != nil {
		return nil, fmt.Errorf("%w: kind %d: %w", ErrMalformed, k, err)
	}
	return m.Elem().Interface(), nil
}

func decodeChunk(body []byte) (Message, error) {
	if len(body) < chunkHeader {
		return nil, fmt.Errorf("%w: a chunk of %d bytes", ErrMalformed, len(body))
	}
	c := Chunk{Stream: Stream(body[0]), Offset: int64(binary.BigEndian.Uint64(body[1:])), Data: body[chunkHeader:]}
	if c.Stream < StreamProblem || c.Stream >= streams || c.Offset < 0 || c.Offset > maxOffset {
		return nil, fmt.Errorf("%w: a chunk of stream %d at offset %d", ErrMalformed, c.Stream, c.Offset)
	}
	if c.Stream != StreamProblem {
		if err := new(kernel.Screen).Check(c.Data); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	return c, nil
}
