package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo programs read as assembly
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx512 processes 8 points at once and the rest of a row under a mask.
type avx512 struct{}

func (avx512) name() string { return "AVX512" }

func (avx512) zero() reg.Register {
	z := ZMM()
	VPXORQ(z, z, z)
	return z
}

func (avx512) held() reg.Register {
	z := ZMM()
	VPTERNLOGQ(operand.U8(255), z, z, z)
	VPSLLQ(operand.U8(63), z, z)
	return z
}

func (avx512) broadcast(m operand.Mem) operand.Op { return into(VBROADCASTSD, ZMM(), m) }

func (avx512) loops(l *loop, _ bool, body func(v vector, offset int)) {
	whole(l, "pair", 16, func() {
		body(zmm{}, 0)
		body(zmm{}, 8)
	})
	whole(l, "one", 8, func() { body(zmm{}, 0) })
	rest := GP64()
	MOVQ(l.count, rest)
	SUBQ(l.index, rest)
	JZ(operand.LabelRef("next"))
	body(lanes(firstBits(rest, 0xff)), 0)
	Label("next")
}

// colour sets a mask of every other lane, since the points of a colour alternate.
func (avx512) colour(l *loop) {
	if l.colour.last == nil {
		l.colour = colour{last: ZMM(), mask: K()}
	}
	odd, lanes := GP64(), GP64()
	MOVQ(l.field("odd"), odd)
	MOVQ(operand.U32(0x55), lanes)
	SHLXQ(odd, lanes, lanes)
	KMOVW(lanes.As32(), l.colour.mask)
	VBROADCASTSD(l.at("c", 0), l.colour.last)
}

func (avx512) width() int    { return 8 }
func (avx512) whole() vector { return zmm{} }

func (avx512) table(l *loop, name string) operand.Op {
	return into(VMOVUPD, ZMM(), operand.Mem{Base: l.symbol(name)})
}

func (avx512) part(l *loop, low, high, after reg.Register) (even, odd, next reg.Register) {
	even, next = ZMM(), ZMM()
	VMOVAPD(low, even)
	VPERMT2PD(high, l.scalars["evens"], even)
	VPERMT2PD(high, l.scalars["odds"], low)
	VALIGNQ(operand.U8(1), even, after.(reg.VecVirtual).AsZ(), next)
	return even, low, next
}

func (avx512) join(l *loop, even, odd reg.Register) (low, high reg.Register) {
	low = ZMM()
	VMOVAPD(even, low)
	VPERMT2PD(odd, l.scalars["firsts"], low)
	VPERMT2PD(odd, l.scalars["seconds"], even)
	return low, even
}

func (avx512) rest(_ *loop, count reg.Register) (halves, first, second vector) {
	bits := firstBits(count, 0xffff)
	first = lanes(bits)
	SHRQ(operand.U8(8), bits)
	second = lanes(bits)
	INCQ(count)
	SHRQ(operand.U8(1), count)
	return lanes(firstBits(count, 0xffff)), first, second
}

// firstBits returns the first n bits of all.
func firstBits(n reg.Register, all operand.U32) reg.GPVirtual {
	bits := GP64()
	MOVQ(all, bits)
	BZHIQ(n, bits, bits)
	return bits
}

// lanes returns a vector with the mask bits.
func lanes(bits reg.GPVirtual) masked {
	k := K()
	KMOVW(bits.As32(), k)
	return masked{mask: k}
}

type zmm struct{ packed }

func (zmm) largest(x, d reg.Register) {
	VPSLLQ(operand.U8(1), x, x)
	VPSRLQ(operand.U8(1), x, x)
	VPMAXUQ(x, d, d)
}

func (zmm) or(x, d reg.Register) { VPORQ(x, d, d) }

func (zmm) between(phi, u, psi reg.Register) reg.Register {
	above, free := K(), K()
	VCMPPD(greater, phi, u, above)
	VCMPPD(less, psi, u, above, free)
	return free
}

func (zmm) west(last, u, d reg.Register) { VALIGNQ(operand.U8(7), last, u, d) }

func (zmm) maxAt(colour, v, bound, u reg.Register) { VMAXPD(v, bound, colour, u) }
func (zmm) minAt(colour, v, bound, u reg.Register) { VMINPD(v, bound, colour, u) }

func (zmm) register() reg.Register { return ZMM() }

func (zmm) load(m operand.Mem) reg.Register { return into(VMOVUPD, ZMM(), m) }

func (zmm) clear(l *loop, p operand.U8, bound operand.Op, u reg.Register, q operand.U8, r reg.Register) {
	at, both := K(), K()
	VCMPPD(p, bound, u, at)
	VCMPPD(q, l.scalars["zero"], r, at, both)
	VMOVAPD(l.scalars["held"], both, r)
}

// masked reads and writes only the lanes of its mask.
type masked struct {
	zmm
	mask reg.Register
}

func (v masked) load(m operand.Mem) reg.Register {
	z := ZMM()
	VMOVUPD_Z(m, v.mask, z)
	return z
}

func (v masked) operand(op operand.Op) operand.Op { return loaded(v, op) }

func (v masked) store(x reg.Register, m operand.Mem, _ bool) { VMOVUPD(x, v.mask, m) }
