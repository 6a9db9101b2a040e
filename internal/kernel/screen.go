package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrImpossible is wrapped by errors about numbers that no peer of a run sends.
var ErrImpossible = errors.New("it sent values that no peer of this run has")

// Errors of a Screen.
var (
	ErrNotFinite = fmt.Errorf("%w: they are not finite", ErrImpossible)
	ErrTooLarge  = fmt.Errorf("%w: they are far beyond those of the problem", ErrImpossible)
	ErrNegative  = fmt.Errorf("%w: a sum of squares is negative", ErrImpossible)
)

// Screen refuses messages of a peer with numbers that no peer of the run sends: those that are not finite, those larger than
// Most, and negative sums of squares. Without Most the run may diverge: values then grow over many messages before they
// overflow, and the peer is not to blame. So values that are not finite are accepted after large ones. The zero value is
// ready.
type Screen struct {
	Infinite  bool    // values beyond Most are allowed, as those of bounds are, which may be infinite
	Most      float64 // the largest value; 0: the run may diverge
	diverging bool    // large values came before
}

const (
	noSign   = 1<<63 - 1
	infinite = 0x7ff << 52 // bits of +Inf
)

// large is the least value after which one that is not finite is accepted.
const large = 1e100

// Check returns an error for a message whose little-endian values are refused. Each piece but the last holds whole values.
func (s *Screen) Check(pieces ...[]byte) error {
	bits := uint64(0)
	for _, p := range pieces {
		bits = max(bits, s.largest(p))
	}
	return s.CheckLargest(math.Float64frombits(bits))
}

// CheckLargest is Check for the largest magnitude of the values of a message, NaN if one of them is.
func (s *Screen) CheckLargest(v float64) error {
	switch {
	case !Finite(v) && !s.diverging:
		return ErrNotFinite
	case s.Most > 0 && v > s.Most && !s.Infinite:
		return ErrTooLarge
	default:
		s.diverging = s.Most == 0 && (s.diverging || !(v < large))
	}
	return nil
}

// CheckSum returns an error for a sum over several peers that is not finite, unless the run may diverge: then it may be the
// first sign of that.
func (s *Screen) CheckSum(v float64) error {
	if s.Most > 0 && !Finite(v) {
		return ErrNotFinite
	}
	return nil
}

// CheckSquares is CheckSum for a sum of squares.
func (s *Screen) CheckSquares(v float64) error {
	if v < 0 {
		return ErrNegative
	}
	return s.CheckSum(v)
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
