package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo programs read as assembly
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transfers emits the loops of kernel.Transfer.
func transfers(s set) {
	addRows(s)
	restrictRows(s)
	prolongRows(s, false)
	prolongRows(s, true)
	mixRows(s)
	if g, ok := s.(avx512); ok {
		stretchRow(g)
	}
}

// addRows emits out = source·(c + step·s), with each product rounded.
func addRows(s set) {
	l := &loop{}
	rowsOf(s, "addRows", l, []string{"out", "c", "s+planeStep"}, []string{"step", "source"}, nil, func() {
		s.loops(l, true, func(v vector, offset int) {
			x := v.load(l.at("s", offset))
			v.mul(l.scalars["step"], x, x)
			v.add(v.operand(l.at("c", offset)), x, x)
			v.mul(l.scalars["source"], x, x)
			v.store(x, l.at("out", offset), false)
		})
	})
}

// restrictRows emits the weights 1, 2, 1 across three rows and then along them: the support of point j of out is 2j,
// 2j + 1 and 2j + 2. The last vector of a row overlaps the one before it, so count must be at least one vector.
func restrictRows(s set) {
	l := &loop{}
	rowsOf(s, "restrictRows", l, []string{"out", "s", "c", "n"}, nil, []string{"evens", "odds"}, func() {
		width := s.width()
		Label("block")
		fine := GP64()
		LEAQ(operand.Mem{Base: l.index, Index: l.index, Scale: 1}, fine)
		column := func(v vector, offset int) reg.Register {
			at := func(p string) operand.Mem {
				return operand.Mem{Base: l.ptr[p], Index: fine, Scale: 8, Disp: 8 * offset}
			}
			b := v.load(at("c"))
			v.add(b, b, b)
			v.add(v.operand(at("s")), b, b)
			v.add(v.operand(at("n")), b, b)
			return b
		}
		v := s.whole()
		even, odd, next := s.part(l, column(v, 0), column(v, width), column(scalar{}, 2*width))
		v.add(odd, odd, odd)
		v.add(odd, even, even)
		v.add(next, even, even)
		v.store(even, l.at("out", 0), false)
		ADDQ(operand.U8(width), l.index)
		CMPQ(l.index, l.count)
		JGE(operand.LabelRef("next"))
		last := GP64()
		MOVQ(l.count, last)
		SUBQ(operand.U8(width), last)
		CMPQ(l.index, last)
		CMOVQGT(last, l.index)
		JMP(operand.LabelRef("block"))
		Label("next")
	})
}

// prolongRows emits the correction, off the obstacles, of every second row of a plane from four coarse rows (or rows
// of −0), and the projection. The coarse rows begin at the point before the first point of c. That one is
// halfway between two coarse points. source is the factor there, step the factor at the others. If keeping, the old
// values of c go to out with streaming stores; its rows are aligned to 64 bytes.
func prolongRows(s set, keeping bool) {
	name, moves := "prolongRows", []string{"c", "s+xStep", "n+yStep", "b+zStep", "t", "phi", "psi"}
	if keeping {
		name, moves = name+"Keeping", append(moves, "out")
	}
	l := &loop{}
	rowsOf(s, name, l, moves, []string{"source", "step"}, []string{"firsts", "seconds"}, func() {
		width := s.width()
		block := func(v, first, second vector) {
			sum := func(offset int) reg.Register {
				at := func(p string) operand.Mem {
					// half as many points
					return operand.Mem{Base: l.ptr[p], Index: l.index, Scale: 4, Disp: 8 * offset}
				}
				x, y := v.load(at("s")), v.load(at("b"))
				v.add(v.operand(at("n")), x, x)
				v.add(v.operand(at("t")), y, y)
				v.add(y, x, x)
				return x
			}
			even, odd := sum(0), sum(1)
			v.add(odd, even, even)
			v.mul(l.scalars["source"], even, even)
			v.mul(l.scalars["step"], odd, odd)
			low, high := s.join(l, even, odd)
			for i, x := range []reg.Register{low, high} {
				w, at := []vector{first, second}[i], i*width
				u := w.load(l.at("c", at))
				if keeping {
					w.store(u, l.at("out", at), true)
				}
				w.add(u, x, x)
				project(l, w, u, x, at)
			}
		}
		whole(l, "pair", 2*width, func() {
			block(s.whole(), s.whole(), s.whole())
		})
		rest := GP64()
		MOVQ(l.count, rest)
		SUBQ(l.index, rest)
		JZ(operand.LabelRef("next"))
		block(s.rest(l, rest))
		Label("next")
	})
}

// project stores x, projected between the obstacles, where u does not touch them, and u elsewhere.
func project(l *loop, v vector, u, x reg.Register, offset int) {
	phi, psi := v.load(l.at("phi", offset)), v.load(l.at("psi", offset))
	free := v.between(phi, u, psi)
	v.max(x, phi, x)
	v.minAt(free, x, psi, u)
	v.store(u, l.at("c", offset), false)
}

// mixRows emits out = ke·(kc·s + kw·n) + ks·(kc·b + kw·t), with each product rounded.
func mixRows(s set) {
	l := &loop{}
	moves := []string{"out", "s+xStep", "n+yStep", "b+zStep", "t"}
	rowsOf(s, "mixRows", l, moves, []string{"kc", "kw", "ke", "ks"}, nil, func() {
		s.loops(l, true, func(v vector, offset int) {
			mix := func(a, b reg.Register, x, y string) reg.Register {
				v.mul(l.scalars[x], a, a)
				v.mul(l.scalars[y], b, b)
				v.add(b, a, a)
				return a
			}
			low := mix(v.load(l.at("s", offset)), v.load(l.at("n", offset)), "kc", "kw")
			high := mix(v.load(l.at("b", offset)), v.load(l.at("t", offset)), "kc", "kw")
			v.store(mix(low, high, "ke", "ks"), l.at("out", offset), false)
		})
	})
}

// stretchRow emits the interpolation of a row between arbitrary grids. A point is the coarse value at its index f
// (less odd) times its weight s plus, where its weight n is not 0, the next coarse value times n; the sum is
// multiplied by its factor b. The correction follows as in prolongRows, with the factor source of the whole row.
func stretchRow(s avx512) {
	l := &loop{}
	moves := []string{"c+outStep", "t+rowStep", "s+xStep", "n+xStep", "b+xStep", "f+xStep", "phi", "psi"}
	rowsOf(s, "stretchRow", l, moves, []string{"source", "odd"}, nil, func() {
		zero := s.zero()
		s.loops(l, true, func(v vector, offset int) {
			index, weight := v.load(l.at("f", offset)), v.load(l.at("n", offset))
			VPSUBQ(l.scalars["odd"], index, index)
			two, x, y := K(), ZMM(), ZMM()
			VCMPPD(operand.U8(12), zero, weight, two) // not equal, or unordered
			s.gather(v, operand.Mem{Base: l.ptr["t"], Index: index, Scale: 8}, x)
			v.mul(v.operand(l.at("s", offset)), x, x)
			VMOVAPD(zero, y)
			next := K()
			KMOVW(two, next)
			VGATHERQPD(operand.Mem{Base: l.ptr["t"], Index: index, Scale: 8, Disp: 8}, next, y)
			v.mul(weight, y, y)
			VADDPD(y, x, two, x)
			w := v.load(l.at("b", offset))
			v.mul(l.scalars["source"], w, w)
			v.mul(w, x, x)
			u := v.load(l.at("c", offset))
			v.add(u, x, x)
			project(l, v, u, x, offset)
		})
	})
}

// gather reads the points of the lanes of v from a row.
func (avx512) gather(v vector, m operand.Mem, d reg.VecVirtual) {
	lanes := K()
	if part, ok := v.(masked); ok {
		KMOVW(part.mask, lanes)
	} else {
		KXNORW(lanes, lanes, lanes)
	}
	VXORPD(d.AsX(), d.AsX(), d.AsX())
	VGATHERQPD(m, lanes, d)
}
