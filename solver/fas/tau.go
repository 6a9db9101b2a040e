package fas

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// A message of right-hand sides begins with the exponent e of their largest magnitude, as a float64. The values follow,
// divided by 2^e, so that they are below 2: as float32 where the tolerance allows, else as float64.

// singleFrom is the least tolerance at which values travel as float32. Their rounding leaves a relative residual of about
// 1e-9.
const singleFrom = 1e-7

const (
	tauHeader   = 8
	mostTau     = 1000 // largest exponent; values beyond it are sent as not finite
	leastTau    = -1074
	singleBytes = 4
	doubleBytes = 8
)

// tauBytes returns the length of a message of n values, whole words of 8 bytes.
func (g *plan) tauBytes(n int) int {
	if g.single {
		return tauHeader + (singleBytes*n+7)/8*8
	}
	return tauHeader + doubleBytes*n
}

// putTau writes values to dst, a message.
func (g *plan) putTau(dst []byte, values []float64) {
	_, e := math.Frexp(kernel.MaxAbs(values))
	e = max(e-1, leastTau)
	exponent := float64(e)
	for _, v := range values {
		if e > mostTau || !kernel.Finite(v) {
			exponent = math.NaN()
		}
	}
	binary.LittleEndian.PutUint64(dst, math.Float64bits(exponent))
	dst = dst[tauHeader:]
	for _, v := range values {
		v = math.Ldexp(v, -e)
		if g.single {
			binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(v)))
			dst = dst[singleBytes:]
		} else {
			binary.LittleEndian.PutUint64(dst, math.Float64bits(v))
			dst = dst[doubleBytes:]
		}
	}
	clear(dst)
}

// checkTau returns an error for a message with values that putTau does not write. kernel.Screen has checked its words.
func (g *plan) checkTau(m []byte) error {
	if e := tauExponent(m); e != math.Trunc(e) || e < leastTau || e > mostTau {
		return fmt.Errorf("%w: an exponent of %v", kernel.ErrImpossible, e)
	}
	const two, sign = 2 << 29, 1 << 31
	for w := m[tauHeader:]; g.single && len(w) > 0; w = w[singleBytes:] {
		if binary.LittleEndian.Uint32(w)&^sign > two {
			return kernel.ErrNotFinite
		}
	}
	return nil
}

func tauExponent(m []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(m)) }

// readTau reads values from *m, the rest of a message with exponent e.
func (g *plan) readTau(dst []float64, m *[]byte, e int) {
	scale := math.Ldexp(1, e)
	if !g.single {
		kernel.ReadFloats(dst, *m)
		*m = (*m)[doubleBytes*len(dst):]
	}
	for i := range dst {
		if g.single {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(*m)))
			*m = (*m)[singleBytes:]
		}
		dst[i] *= scale
	}
}
