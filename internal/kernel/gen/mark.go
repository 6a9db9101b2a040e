package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo programs read as assembly
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// markRows emits one bit for each point of the rows of c, set where the value is −0, to the bytes
// of out. AVX2 omits a rest of fewer than 8 points.
func markRows(s set) {
	l := &loop{}
	rowsOf(s, "markRows", l, []string{"c", "out"}, nil, nil, func() {
		held := s.held()
		at := eights(l, func() reg.GPVirtual { return s.equal(l, held) })
		if g, ok := s.(avx512); ok {
			g.markRest(l, held, at)
		}
		Label("next")
	})
}

// equal returns one bit for each of 8 points of c, set where it has the bits of x.
func (avx512) equal(l *loop, x reg.Register) reg.GPVirtual {
	same, bits := K(), GP64()
	VPCMPEQQ(l.at("c", 0), x, same)
	KMOVW(same, bits.As32())
	return bits
}

func (s avx512) markRest(l *loop, held, at reg.Register) {
	rest, same := GP64(), K()
	MOVQ(l.count, rest)
	SUBQ(l.index, rest)
	JZ(operand.LabelRef("next"))
	bits := firstBits(rest, 0xff)
	VPCMPEQQ(lanes(bits).load(l.at("c", 0)), held, same)
	KMOVW(same, bits.As32())
	MOVB(bits.As8(), operand.Mem{Base: at})
}

func (avx2) equal(l *loop, x reg.Register) reg.GPVirtual {
	return halves(func(offset int) reg.GPVirtual {
		same, bits := YMM(), GP64()
		VPCMPEQQ(l.at("c", offset), x, same)
		VMOVMSKPD(same, bits.As32())
		return bits
	})
}

// touchRows emits one bit for each point of the rows of c, set where it is not between phi and psi,
// to the bytes of out. A rest of fewer than 8 points is omitted.
func touchRows(s set) {
	l := &loop{}
	rowsOf(s, "touchRows", l, []string{"c", "phi", "psi", "out"}, nil, nil, func() {
		eights(l, func() reg.GPVirtual { return s.outside(l) })
	})
}

// eights emits the loop that writes the bits of 8 points at once to the bytes of out. It returns the address after
// the last byte.
func eights(l *loop, bits func() reg.GPVirtual) reg.GPVirtual {
	at := GP64()
	MOVQ(l.ptr["out"], at)
	whole(l, "eight", 8, func() {
		MOVB(bits().As8(), operand.Mem{Base: at})
		INCQ(at)
	})
	return at
}

// halves returns the bits of 8 points from those of 4 points at an offset.
func halves(half func(offset int) reg.GPVirtual) reg.GPVirtual {
	low, high := half(0), half(4)
	SHLL(operand.U8(4), high.As32())
	ORL(high.As32(), low.As32())
	return low
}

func (avx512) outside(l *loop) reg.GPVirtual {
	v, bits := zmm{}, GP64()
	KMOVW(v.between(v.load(l.at("phi", 0)), v.load(l.at("c", 0)), v.load(l.at("psi", 0))), bits.As32())
	NOTL(bits.As32())
	return bits
}

func (avx2) outside(l *loop) reg.GPVirtual {
	bits := halves(func(offset int) reg.GPVirtual {
		v, bits := ymm{}, GP64()
		phi, u, psi := v.load(l.at("phi", offset)), v.load(l.at("c", offset)), v.load(l.at("psi", offset))
		VMOVMSKPD(v.between(phi, u, psi), bits.As32())
		return bits
	})
	NOTL(bits.As32())
	return bits
}
