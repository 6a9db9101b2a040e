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

func (avx2) loops(l *loop, body func(v vector, offset int)) {
	whole(l, "pair", 8, func() {
		body(ymm{}, 0)
		body(ymm{}, 4)
	})
	whole(l, "one", 4, func() { body(ymm{}, 0) })
	whole(l, "point", 1, func() { body(scalar{}, 0) })
}

type ymm struct{ packed }

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
func (scalar) max(v, bound, d reg.Register)                { VMAXSD(v, bound, d) }
func (scalar) min(v, bound, d reg.Register)                { VMINSD(v, bound, d) }
func (scalar) clear(zero reg.Register, p operand.U8, bound operand.Op, u reg.Register, q operand.U8, r reg.Register) {
	at, sign := XMM(), XMM()
	VCMPSD(p, bound, u, at)
	VCMPSD(q, low(zero), r, sign)
	VANDPD(at, sign, at)
	VANDNPD(r, at, r)
}
