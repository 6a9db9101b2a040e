package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

const (
	limbBits = 32
	// sumLimbs is the number of limbs. Bit p has the value 2^(p−1075), so that a mantissa starts at the
	// bit of its biased exponent; 2^1024 is bit 2099, and 2^40 additions reach bit 2139. The last limb
	// starts at bit 2144 and has 63 bits.
	sumLimbs = 68
	// sumBatch bounds the additions between two normalisations. An Add adds less than 2^52 to a limb, so
	// 2^10 of them and a normalised limb stay below 2^63.
	sumBatch = 1 << 10
)

// Sum is an exact sum of float64 values: a fixed-point number wide enough for every finite float64 and for 2^64
// additions of the largest one. Nothing is rounded before Float64, so the result depends neither on the order nor on
// the partition of the additions. The technique is Kulisch's long accumulator with delayed carries, as in Neal, "Fast
// exact summation using small and large superaccumulators" (2015). The zero value is 0. A Sum must not be used by
// several goroutines at once.
type Sum struct {
	limb    [sumLimbs]int64 // little endian, base 2^32, carries pending
	pending int             // additions since the last normalisation
	flags   uint8
}

const (
	sawNaN uint8 = 1 << iota
	sawPlusInf
	sawMinusInf
)

// Add adds v exactly. Infinities and NaN are recorded as flags and determine the result.
func (s *Sum) Add(v float64) {
	if s.pending >= sumBatch {
		s.normalise()
	}
	s.add(math.Float64bits(v))
	s.pending++
}

// AddSquares adds v·v, rounded to float64, for each v of row.
func (s *Sum) AddSquares(row []float64) {
	for len(row) > 0 {
		if s.pending >= sumBatch {
			s.normalise()
		}
		m := min(len(row), sumBatch-s.pending)
		s.addSquares(row[:m])
		s.pending += m
		row = row[m:]
	}
}

// addSquares adds at most sumBatch − pending squares. Consecutive values mostly share a pair of
// limbs, which is kept in registers.
func (s *Sum) addSquares(row []float64) {
	var low, high int64
	var at uint64
	for _, v := range row {
		b := math.Float64bits(float64(v * v))
		exp := b >> 52 & 0x7ff // 11 bits: squares have no sign
		if exp-1 >= 0x7fe {
			if b != 0 {
				s.add(b) // subnormal or not finite
			}
			continue
		}
		man := b&(1<<52-1) | 1<<52
		if i := exp / limbBits; i != at {
			s.limb[at] += low
			s.limb[at+1] += high
			at, low, high = i, 0, 0
		}
		shift := exp % limbBits
		low += int64(man << shift & (1<<limbBits - 1))
		high += int64(man >> (limbBits - shift))
	}
	s.limb[at] += low
	s.limb[at+1] += high
}

// add adds one value, given by its bits, to its two limbs.
func (s *Sum) add(b uint64) {
	exp := b >> 52 & 0x7ff
	man := b & (1<<52 - 1)
	switch exp {
	case 0:
		exp = 1
	case 0x7ff:
		s.addSpecial(b, man)
		return
	default:
		man |= 1 << 52
	}
	i, shift := exp/limbBits, exp%limbBits
	low := int64(man << shift & (1<<limbBits - 1))
	high := int64(man >> (limbBits - shift))
	if int64(b) < 0 {
		low, high = -low, -high
	}
	s.limb[i] += low
	s.limb[i+1] += high
}

func (s *Sum) addSpecial(b, man uint64) {
	switch {
	case man != 0:
		s.flags |= sawNaN
	case int64(b) < 0:
		s.flags |= sawMinusInf
	default:
		s.flags |= sawPlusInf
	}
}

// normalise propagates carries: every limb but the last is then in [0, 2^32); the last one holds the sign.
func (s *Sum) normalise() {
	var carry int64
	for i := range sumLimbs - 1 {
		v := s.limb[i] + carry
		carry = v >> limbBits
		s.limb[i] = v & (1<<limbBits - 1)
	}
	s.limb[sumLimbs-1] += carry
	s.pending = 0
}

// Merge adds the value of o exactly. It normalises o without changing its value.
func (s *Sum) Merge(o *Sum) {
	o.normalise()
	s.normalise()
	for i, v := range o.limb {
		s.limb[i] += v
	}
	s.normalise()
	s.flags |= o.flags
}

// Equal reports whether both hold the same exact sum.
func (s *Sum) Equal(o *Sum) bool {
	s.normalise()
	o.normalise()
	return s.limb == o.limb && s.flags == o.flags
}

// Float64 returns the sum rounded to nearest, ties to even. It is NaN if a NaN or both infinities
// were added, infinite if the sum exceeds the range of float64, and +0 if the sum is exactly 0.
func (s *Sum) Float64() float64 {
	switch {
	case s.flags&sawNaN != 0, s.flags&(sawPlusInf|sawMinusInf) == sawPlusInf|sawMinusInf:
		return math.NaN()
	case s.flags&sawPlusInf != 0:
		return math.Inf(1)
	case s.flags&sawMinusInf != 0:
		return math.Inf(-1)
	}
	s.normalise()
	t, sign := *s, uint64(0)
	if t.limb[sumLimbs-1] < 0 {
		sign = 1 << 63
		for i := range t.limb {
			t.limb[i] = -t.limb[i]
		}
		t.normalise()
	}
	return math.Float64frombits(sign | t.magnitude())
}

// magnitude returns the float64 bits of a normalised, nonnegative sum, rounded.
func (s *Sum) magnitude() uint64 {
	top := sumLimbs - 1
	for top > 0 && s.limb[top] == 0 {
		top--
	}
	high := top*limbBits + bits.Len64(uint64(s.limb[top])) - 1 // highest set bit
	if s.limb[top] == 0 {
		return 0
	}
	// A normal number with its highest bit at p ≥ 53 has the biased exponent p − 52. Below that, the last
	// place of the mantissa is bit 1.
	last := max(high-52, 1)
	man := s.mantissaAt(last)
	if s.bit(last-1) && (man&1 == 1 || s.anyBelow(last-1)) {
		man++
	}
	// The implicit bit and a carry out of the mantissa both increment the exponent. A subnormal number has neither.
	return min(uint64(last-1)<<52+man, 0x7ff<<52)
}

// mantissaAt returns the 53 bits from bit position p upwards.
func (s *Sum) mantissaAt(p int) uint64 {
	i, shift := p/limbBits, p%limbBits
	v := uint64(s.limb[i]) >> shift
	if i+1 < sumLimbs {
		v |= uint64(s.limb[i+1]) << (limbBits - shift)
	}
	if i+2 < sumLimbs && shift > 0 {
		v |= uint64(s.limb[i+2]) << (2*limbBits - shift)
	}
	return v
}

func (s *Sum) bit(p int) bool { return s.limb[p/limbBits]>>(p%limbBits)&1 == 1 }

// anyBelow reports whether a bit below position p is set.
func (s *Sum) anyBelow(p int) bool {
	i, shift := p/limbBits, p%limbBits
	return s.limb[i]&(1<<shift-1) != 0 || slices.ContainsFunc(s.limb[:i], func(v int64) bool { return v != 0 })
}

const (
	sumVersion   = 1
	sumHeader    = 4 // version, flags, first limb, number of limbs
	sumTopBytes  = 8
	maxSumLength = sumHeader + (sumLimbs-1)*4 + sumTopBytes
)

// MarshalBinary encodes the sum: version, flags, index of the first nonzero limb, number n of limbs, n limbs of 4
// bytes and the 8-byte top limb, all little endian. Equal sums have equal encodings. The error is always nil.
func (s *Sum) MarshalBinary() ([]byte, error) {
	return s.AppendBinary(make([]byte, 0, maxSumLength))
}

// AppendBinary appends the encoding to dst.
func (s *Sum) AppendBinary(dst []byte) ([]byte, error) {
	s.normalise()
	first, end := 0, sumLimbs-1
	for end > 0 && s.limb[end-1] == 0 {
		end--
	}
	for first < end && s.limb[first] == 0 {
		first++
	}
	if first == end {
		first, end = 0, 0
	}
	dst = append(dst, sumVersion, s.flags, byte(first), byte(end-first))
	for _, v := range s.limb[first:end] {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(s.limb[sumLimbs-1])), nil
}

var errSumTruncated = errors.New("kernel: encoded sum: wrong length")

// UnmarshalBinary replaces the sum by the encoded one. On an error the sum is unchanged. Arbitrary bytes are safe.
func (s *Sum) UnmarshalBinary(data []byte) error {
	if len(data) < sumHeader+sumTopBytes {
		return errSumTruncated
	}
	if data[0] != sumVersion {
		return fmt.Errorf("kernel: encoded sum: version %d is not supported; this program reads version %d",
			data[0], sumVersion)
	}
	if data[1]&^(sawNaN|sawPlusInf|sawMinusInf) != 0 {
		return fmt.Errorf("kernel: encoded sum: unknown flags %#x", data[1])
	}
	first, n := int(data[2]), int(data[3])
	if first+n > sumLimbs-1 {
		return fmt.Errorf("kernel: encoded sum: limbs %d to %d exceed the %d of a sum", first, first+n, sumLimbs-1)
	}
	if len(data) != sumHeader+4*n+sumTopBytes {
		return errSumTruncated
	}
	out := Sum{flags: data[1]}
	data = data[sumHeader:]
	for i := range n {
		out.limb[first+i] = int64(binary.LittleEndian.Uint32(data[4*i:]))
	}
	top := int64(binary.LittleEndian.Uint64(data[4*n:]))
	if top > maxTop || top < -maxTop {
		return fmt.Errorf("kernel: encoded sum: top limb %d is out of range", top)
	}
	out.limb[sumLimbs-1] = top
	*s = out
	return nil
}

// maxTop bounds a decoded top limb, so that merging any number of them that fits in memory does not overflow.
const maxTop = 1 << 44
