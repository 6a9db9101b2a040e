package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo programs read as assembly
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx2 works on 4 points at once, the rest of a row point by point.
type avx2 struct{}

func (avx2) name() string { return "AVX2" }

func (avx2) zero() reg.Register {
	y := YMM()
	VXORPD(y, y, y)
	return y
}

func (avx2) broadcast(m operand.Mem) operand.Op {
	y := YMM()
	VBROADCASTSD(m, y)
	return y
}

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
	NEGQ(rest)
	mask := YMM()
	VMOVUPD(operand.Mem{Base: l.symbol("firstLanes"), Index: rest, Scale: 8, Disp: 32}, mask)
	body(part{mask: mask}, 0)
	Label("next")
}

// colour: the points of a colour are every other lane.
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

// symbol is the address of a table.
func (l *loop) symbol(name string) reg.Register {
	g := GP64()
	LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(name), 0), g)
	return g
}

// masks writes the tables of lanes that the loops use: all lanes before a point, and
// every other one.
func masks() {
	for _, t := range []struct {
		name  string
		lanes []uint64
	}{{"firstLanes", []uint64{1, 1, 1, 1, 0, 0, 0, 0}}, {"everyOther", []uint64{0, 1, 0, 1, 0}}} {
		GLOBL(t.name, RODATA|NOPTR)
		for i, lane := range t.lanes {
			DATA(8*i, operand.U64(-lane))
		}
	}
}

type ymm struct{ packed }

func (ymm) west(last, u, d reg.Register) {
	VPERM2F128(operand.U8(0x21), u, last, d) // last's upper half, u's lower half
	VSHUFPD(operand.U8(5), u, d, d)
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

func (v part) operand(op operand.Op) operand.Op {
	if m, ok := op.(operand.Mem); ok {
		return v.load(m)
	}
	return op
}

func (v part) store(x reg.Register, m operand.Mem, _ bool) { VMASKMOVPD(x, v.mask, m) }

func (ymm) vector() reg.Register { return YMM() }

func (ymm) load(m operand.Mem) reg.Register {
	y := YMM()
	VMOVUPD(m, y)
	return y
}

func (ymm) clear(zero reg.Register, p operand.U8, bound operand.Op, u reg.Register, q operand.U8, r reg.Register) {
	at, sign := YMM(), YMM()
	VCMPPD(p, bound, u, at)
	VCMPPD(q, zero, r, sign)
	VANDPD(at, sign, at)
	VANDNPD(r, at, r)
}

// scalar works on one point in the low lane.
type scalar struct{}

func low(op operand.Op) operand.Op {
	if v, ok := op.(reg.VecVirtual); ok {
		return v.AsX()
	}
	return op
}

func (scalar) vector() reg.Register { return XMM() }

func (scalar) load(m operand.Mem) reg.Register {
	x := XMM()
	VMOVSD(m, x)
	return x
}

func (scalar) operand(op operand.Op) operand.Op            { return op }
func (scalar) store(x reg.Register, m operand.Mem, _ bool) { VMOVSD(x, m) }
func (scalar) add(a operand.Op, b, d reg.Register)         { VADDSD(low(a), b, d) }
func (scalar) sub(a operand.Op, b, d reg.Register)         { VSUBSD(low(a), b, d) }
func (scalar) mul(a operand.Op, b, d reg.Register)         { VMULSD(low(a), b, d) }
func (scalar) div(a operand.Op, b, d reg.Register)         { VDIVSD(low(a), b, d) }
func (scalar) max(v, bound, d reg.Register)                { VMAXSD(v, bound, d) }
func (scalar) min(v, bound, d reg.Register)                { VMINSD(v, bound, d) }
func (scalar) clear(zero reg.Register, p operand.U8, bound operand.Op, u reg.Register, q operand.U8, r reg.Register) {
	at, sign := XMM(), XMM()
	VCMPSD(p, bound, u, at)
	VCMPSD(q, low(zero), r, sign)
	VANDPD(at, sign, at)
	VANDNPD(r, at, r)
}

// Colours are worked on by vectors only.
func (scalar) west(_, _, _ reg.Register)     { panic("no colours") }
func (scalar) move(_, _ reg.Register)        { panic("no colours") }
func (scalar) maxAt(_, _, _, _ reg.Register) { panic("no colours") }
func (scalar) minAt(_, _, _, _ reg.Register) { panic("no colours") }
