package rendezvous

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Bounds on bodies, in bytes.
const (
	MaxGreeting = 4 << 10         // before a connection is trusted
	MaxBody     = 4 << 20         // Assign and Result name every peer
	MaxChunk    = 256 << 10       // payload of a Chunk
	chunkHeader = 1 + 8           // stream, offset
	frameHeader = 4 + 1           // length, kind
	readStep    = 64 << 10        // memory is taken for this much at a time
	maxOffset   = int64(64 << 30) // no stream is longer
)

// ErrMalformed is wrapped by every error about bytes that are no message.
var ErrMalformed = errors.New("not a message of the rendezvous protocol")

// bound is the longest body of a kind; 0: no such kind.
func bound(k Kind) int {
	switch k {
	case KindChallenge, KindJoin, KindWelcome, KindRefuse, KindListen:
		return MaxGreeting
	case KindAssign, KindResult, KindSessions:
		return MaxBody
	case KindChunk:
		return MaxChunk + chunkHeader
	case KindStep, KindBlock, KindReady, KindStart, KindBeat, KindStop, KindLost, KindBye:
		return MaxGreeting
	}
	return 0
}

// blank is a new message of a kind that has a JSON body.
func blank(k Kind) any {
	switch k {
	case KindChallenge:
		return new(Challenge)
	case KindJoin:
		return new(Join)
	case KindWelcome:
		return new(Welcome)
	case KindRefuse:
		return new(Refuse)
	case KindListen:
		return new(Listen)
	case KindAssign:
		return new(Assign)
	case KindReady:
		return new(Ready)
	case KindStart:
		return new(Start)
	case KindBeat:
		return new(Beat)
	case KindStop:
		return new(Stop)
	case KindLost:
		return new(Lost)
	case KindResult:
		return new(Result)
	case KindBye:
		return new(Bye)
	case KindSessions:
		return new(Sessions)
	case KindStep:
		return new(Step)
	case KindBlock:
		return new(Block)
	}
	return nil
}

// Append appends the frame of m to dst.
func Append(dst []byte, m Message) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, byte(m.Kind()))
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
	if n > bound(m.Kind()) {
		return dst[:start], fmt.Errorf("rendezvous: a %T of %d bytes; the bound is %d", m, n, bound(m.Kind()))
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(n))
	return dst, nil
}

// Read reads one frame. Only the kinds given are taken (none given: all), so
// that a stranger cannot send a long one before it is trusted. buf is reused
// between calls; a Chunk's data points into it.
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
	case len(only) > 0 && !contains(only, k):
		return nil, fmt.Errorf("%w: kind %d is not expected now", ErrMalformed, k)
	}
	body := (*buf)[:0]
	for rest := int(n); rest > 0; {
		step := min(rest, readStep)
		at := len(body)
		body = append(body, make([]byte, step)...)
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		rest -= step
	}
	*buf = body
	return Decode(k, body)
}

// Decode reads a body. Any bytes may be passed.
func Decode(k Kind, body []byte) (Message, error) {
	if bound(k) == 0 || len(body) > bound(k) {
		return nil, fmt.Errorf("%w: %d bytes of kind %d", ErrMalformed, len(body), k)
	}
	if k == KindChunk {
		return decodeChunk(body)
	}
	m := blank(k)
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("%w: kind %d: %w", ErrMalformed, k, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%w: kind %d: more than one value", ErrMalformed, k)
	}
	return reflect.ValueOf(m).Elem().Interface().(Message), nil
}

func decodeChunk(body []byte) (Message, error) {
	if len(body) < chunkHeader {
		return nil, fmt.Errorf("%w: a chunk of %d bytes", ErrMalformed, len(body))
	}
	c := Chunk{Stream: Stream(body[0]), Offset: int64(binary.BigEndian.Uint64(body[1:])), Data: body[chunkHeader:]}
	if c.Stream < StreamProblem || c.Stream > StreamStep || c.Offset < 0 || c.Offset > maxOffset {
		return nil, fmt.Errorf("%w: a chunk of stream %d at offset %d", ErrMalformed, c.Stream, c.Offset)
	}
	return c, nil
}

func contains(list []Kind, k Kind) bool {
	for _, l := range list {
		if l == k {
			return true
		}
	}
	return false
}
