package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo programs read as assembly
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx2 processes 4 points at once and the rest of a row point by point, or under a mask.
type avx2 struct{}

func (avx2) name() string { return "AVX2" }

func (avx2) zero() reg.Register {
	y := YMM()
	VXORPD(y, y, y)
	return y
}

func (avx2) held() reg.Register {
	y := YMM()
	VPCMPEQQ(y, y, y)
	VPSLLQ(operand.U8(63), y, y)
	return y
}

func (avx2) broadcast(m operand.Mem) operand.Op { return into(VBROADCASTSD, YMM(), m) }

func (avx2) loops(l *loop, masked bool, body func(v vector, offset int)) {
	whole(l, "pair", 8, func() {
		body(ymm{}, 0)
		body(ymm{}, 4)
	})
	whole(l, "one", 4, func() { body(ymm{}, 0) })
	if !masked {
		whole(l, "point", 1, func() { body(scalar{}, 0) })
		return
	}
	rest := GP64()
	MOVQ(l.count, rest)
	SUBQ(l.index, rest)
	JZ(operand.LabelRef("next"))
	body(l.firstLanes(rest), 0)
	Label("next")
}

// colour sets a mask of every other lane, since the points of a colour alternate.
func (avx2) colour(l *loop) {
	if l.colour.last == nil {
		l.colour = colour{last: YMM(), mask: YMM()}
	}
	odd := GP64()
	MOVQ(l.field("odd"), odd)
	NEGQ(odd)
	VMOVUPD(operand.Mem{Base: l.symbol("everyOther"), Index: odd, Scale: 8, Disp: 8}, l.colour.mask)
	VBROADCASTSD(l.at("c", 0), l.colour.last)
}

// symbol returns the address of a table.
func (l *loop) symbol(name string) reg.Register {
	g := GP64()
	LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(name), 0), g)
	return g
}

// tables writes the constants that the loops use: masks of all lanes before a point and of every
// other lane, and the permutations of AVX-512.
func tables() {
	all := ^uint64(0)
	for _, t := range []struct {
		name  string
		words []uint64
	}{
		{"firstLanes", []uint64{all, all, all, all, 0, 0, 0, 0}},
		{"everyOther", []uint64{0, all, 0, all, 0}},
		{"evens", []uint64{0, 2, 4, 6, 8, 10, 12, 14}},
		{"odds", []uint64{1, 3, 5, 7, 9, 11, 13, 15}},
		{"firsts", []uint64{0, 8, 1, 9, 2, 10, 3, 11}},
		{"seconds", []uint64{4, 12, 5, 13, 6, 14, 7, 15}},
	} {
		GLOBL(t.name, RODATA|NOPTR)
		for i, w := range t.words {
			DATA(8*i, operand.U64(w))
		}
	}
}

func (avx2) width() int                     { return 4 }
func (avx2) whole() vector                  { return ymm{} }
func (avx2) table(*loop, string) operand.Op { return nil }

func (avx2) part(_ *loop, low, high, after reg.Register) (even, odd, next reg.Register) {
	even, odd, next = YMM(), YMM(), YMM()
	VUNPCKLPD(high, low, even)
	VPERMPD(operand.U8(0xd8), even, even)
	VUNPCKHPD(high, low, odd)
	VPERMPD(operand.U8(0xd8), odd, odd)
	VPERMPD(operand.U8(0x39), even, next)
	last := YMM()
	VBROADCASTSD(after, last)
	VBLENDPD(operand.U8(8), last, next, next)
	return even, odd, next
}

func (avx2) join(_ *loop, even, odd reg.Register) (low, high reg.Register) {
	low, high = YMM(), YMM()
	outer, inner := YMM(), YMM()
	VUNPCKLPD(odd, even, outer) // points 0, 1 and 4, 5
	VUNPCKHPD(odd, even, inner) // points 2, 3 and 6, 7
	VPERM2F128(operand.U8(0x20), inner, outer, low)
	VPERM2F128(operand.U8(0x31), inner, outer, high)
	return low, high
}

func (avx2) rest(l *loop, count reg.Register) (halves, first, second vector) {
	four, n := GP64(), GP64()
	MOVQ(operand.U32(4), four)
	MOVQ(count, n)
	CMPQ(n, four)
	CMOVQGT(four, n)
	first = l.firstLanes(n)
	MOVQ(count, n)
	SUBQ(four, n)
	zero := GP64()
	XORQ(zero, zero)
	CMPQ(n, zero)
	CMOVQLT(zero, n)
	second = l.firstLanes(n)
	MOVQ(count, n)
	INCQ(n)
	SHRQ(operand.U8(1), n)
	return l.firstLanes(n), first, second
}

// firstLanes returns a vector of the first n lanes. It overwrites n.
func (l *loop) firstLanes(n reg.Register) part {
	NEGQ(n)
	table := operand.Mem{Base: l.symbol("firstLanes"), Index: n, Scale: 8, Disp: 32}
	return part{mask: into(VMOVUPD, YMM(), table)}
}

type ymm struct{ packed }

func (ymm) west(last, u, d reg.Register) {
	VPERM2F128(operand.U8(0x21), u, last, d) // upper half of last, lower half of u
	VSHUFPD(operand.U8(5), u, d, d)
}

func (ymm) largest(x, d reg.Register) {
	above := YMM()
	VPSLLQ(operand.U8(1), x, x)
	VPSRLQ(operand.U8(1), x, x)
	VPCMPGTQ(d, x, above)
	VBLENDVPD(above, x, d, d)
}

func (ymm) or(x, d reg.Register) { VPOR(x, d, d) }

func (ymm) between(phi, u, psi reg.Register) reg.Register {
	above, free := YMM(), YMM()
	VCMPPD(greater, phi, u, above)
	VCMPPD(less, psi, u, free)
	VANDPD(above, free, free)
	return free
}

func (ymm) maxAt(colour, v, bound, u reg.Register) {
	VMAXPD(v, bound, v)
	VBLENDVPD(colour, v, u, u)
}

func (ymm) minAt(colour, v, bound, u reg.Register) {
	VMINPD(v, bound, v)
	VBLENDVPD(colour, v, u, u)
}

// part reads and writes only the lanes of its mask.
type part struct {
	ymm
	mask reg.Register
}

func (v part) load(m operand.Mem) reg.Register {
	y := YMM()
	VMASKMOVPD(m, v.mask, y)
	return y
}

func (v part) operand(op operand.Op) operand.Op { return loaded(v, op) }

func (v part) store(x reg.Register, m operand.Mem, _ bool) { VMASKMOVPD(x, v.mask, m) }

func (ymm) register() reg.Register { return YMM() }

func (ymm) load(m operand.Mem) reg.Register { return into(VMOVUPD, YMM(), m) }

func (ymm) clear(l *loop, p operand.U8, bound operand.Op, u reg.Register, q operand.U8, r reg.Register) {
	at, sign := YMM(), YMM()
	VCMPPD(p, bound, u, at)
	VCMPPD(q, l.scalars["zero"], r, sign)
	VANDPD(at, sign, at)
	VANDNPD(r, at, r)
	VANDPD(l.scalars["held"], at, at)
	VORPD(at, r, r)
}

// scalar processes one point in the low lane. It lacks the operations of colours and sums, whose loops use vectors
// only.
type scalar struct{ vector }

func low(op operand.Op) operand.Op {
	if v, ok := op.(reg.VecVirtual); ok {
		return v.AsX()
	}
	return op
}

func (scalar) register() reg.Register { return XMM() }

func (scalar) load(m operand.Mem) reg.Register { return into(VMOVSD, XMM(), m) }

func (scalar) operand(op operand.Op) operand.Op            { return op }
func (scalar) store(x reg.Register, m operand.Mem, _ bool) { VMOVSD(x, m) }
func (scalar) add(a operand.Op, b, d reg.Register)         { VADDSD(low(a), b, d) }
func (scalar) sub(a operand.Op, b, d reg.Register)         { VSUBSD(low(a), b, d) }
func (scalar) mul(a operand.Op, b, d reg.Register)         { VMULSD(low(a), b, d) }
func (scalar) div(a operand.Op, b, d reg.Register)         { VDIVSD(low(a), b, d) }
func (scalar) max(v, bound, d reg.Register)                { VMAXSD(v, bound, d) }
func (scalar) min(v, bound, d reg.Register)                { VMINSD(v, bound, d) }
func (scalar) clear(l *loop, p operand.U8, bound operand.Op, u reg.Register, q operand.U8, r reg.Register) {
	at, sign := XMM(), XMM()
	VCMPSD(p, bound, u, at)
	VCMPSD(q, low(l.scalars["zero"]), r, sign)
	VANDPD(at, sign, at)
	VANDNPD(r, at, r)
	VANDPD(low(l.scalars["held"]), at, at)
	VORPD(at, r, r)
}
