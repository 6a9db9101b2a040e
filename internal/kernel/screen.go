package kernel

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrNotFinite is the error of a Screen.
var ErrNotFinite = errors.New("it sent values that are not finite")

// Screen refuses messages of a neighbour with values that are not finite, unless large values came before: in a run that
// diverges, values grow over many messages before they overflow, and the neighbour is not to blame. The zero value is
// ready.
type Screen struct {
	Infinite  bool // infinite values are allowed, as those of bounds are
	diverging bool // large values came before
}

const (
	noSign   = 1<<63 - 1
	infinite = 0x7ff << 52 // bits of +Inf
)

// largeBits are the bits of the least value after which one that is not finite is accepted.
var largeBits = math.Float64bits(1e100)

// Check returns ErrNotFinite for a message whose little-endian values are not finite. Each piece but the last holds whole
// values.
func (s *Screen) Check(pieces ...[]byte) error {
	largest := uint64(0)
	for _, p := range pieces {
		largest = max(largest, s.largest(p))
	}
	if largest >= infinite && !s.diverging {
		return ErrNotFinite
	}
	s.diverging = s.diverging || largest >= largeBits
	return nil
}

// largest returns the largest bits of a value without its sign. They have the order of the values, with NaN last.
func (s *Screen) largest(p []byte) uint64 {
	var a, b, c, d uint64
	for ; len(p) >= 32 && !s.Infinite; p = p[32:] {
		a = max(a, binary.LittleEndian.Uint64(p)&noSign)
		b = max(b, binary.LittleEndian.Uint64(p[8:])&noSign)
		c = max(c, binary.LittleEndian.Uint64(p[16:])&noSign)
		d = max(d, binary.LittleEndian.Uint64(p[24:])&noSign)
	}
	for ; len(p) >= 8; p = p[8:] {
		if v := binary.LittleEndian.Uint64(p) & noSign; v != infinite || !s.Infinite {
			a = max(a, v)
		}
	}
	return max(a, b, c, d)
}
