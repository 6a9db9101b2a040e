package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo programs read as assembly
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Comparison predicates, ordered and quiet.
const (
	less         = operand.U8(17)
	lessEqual    = operand.U8(18)
	greaterEqual = operand.U8(29)
	greater      = operand.U8(30)
)

// set is an instruction set.
type set interface {
	name() string
	zero() reg.Register
	held() reg.Register // −0
	broadcast(m operand.Mem) operand.Op
	// loops emits the loop over a row: body for whole vectors and for the rest. If masked, the rest is
	// processed by vectors too.
	loops(l *loop, masked bool, body func(v vector, offset int))
	// colour emits the state of l.colour at the start of a row.
	colour(l *loop)
	equal(l *loop, x reg.Register) reg.GPVirtual
	// outside returns one bit for each of 8 points, set unless phi < c < psi.
	outside(l *loop) reg.GPVirtual
	width() int
	whole() vector
	// table returns a permutation for part or join, or nil if the set needs none.
	table(l *loop, name string) operand.Op
	// part splits two vectors and the point after them into the even points, the odd points, and the even
	// points shifted by one.
	part(l *loop, low, high, after reg.Register) (even, odd, next reg.Register)
	// join is the inverse.
	join(l *loop, even, odd reg.Register) (low, high reg.Register)
	// rest returns masked vectors for the last count fine points of a row, fewer than two vectors: halves
	// for their count/2 coarse points, first and second for the fine points.
	rest(l *loop, count reg.Register) (halves, first, second vector)
}

// vector is the set of operations on several points at once. Operands have the order of Go's assembler,
// destination last: sub(a, b, d) is d = b − a.
type vector interface {
	register() reg.Register
	load(m operand.Mem) reg.Register
	operand(op operand.Op) operand.Op // op if an instruction may read it, else a register with its value
	store(x reg.Register, m operand.Mem, streaming bool)
	add(a operand.Op, b, d reg.Register)
	sub(a operand.Op, b, d reg.Register)
	mul(a operand.Op, b, d reg.Register)
	div(a operand.Op, b, d reg.Register) // d = b / a
	max(v, bound, d reg.Register)        // bound > v ? bound : v
	min(v, bound, d reg.Register)        // bound < v ? bound : v
	// clear sets r to −0 where both "u p bound" and "r q 0" hold.
	clear(l *loop, p operand.U8, bound operand.Op, u reg.Register, q operand.U8, r reg.Register)
	// west sets d to u shifted up by one point, with the last point of last first.
	west(last, u, d reg.Register)
	move(u, d reg.Register)
	// maxAt and minAt store max and min at the lanes of a colour of u.
	maxAt(colour, v, bound, u reg.Register)
	minAt(colour, v, bound, u reg.Register)
	// largest sets d to the larger of d and the bits of x without its sign. It overwrites x.
	largest(x, d reg.Register)
	or(x, d reg.Register)
	// between returns a mask of the lanes with phi < u < psi.
	between(phi, u, psi reg.Register) reg.Register
}

// whole emits "while index + step ≤ count { body }".
func whole(l *loop, label string, step int, body func()) {
	end := GP64()
	MOVQ(l.count, end)
	SUBQ(operand.U8(step), end)
	CMPQ(l.index, end)
	JG(operand.LabelRef(label + "Done"))
	Label(label)
	body()
	ADDQ(operand.U8(step), l.index)
	CMPQ(l.index, end)
	JLE(operand.LabelRef(label))
	Label(label + "Done")
}

// into emits an instruction that reads from and sets d, and returns d.
func into(emit func(ops ...operand.Op), d reg.VecVirtual, from operand.Mem) reg.VecVirtual {
	emit(from, d)
	return d
}

// loaded returns op, or a register with its value if it is in memory.
func loaded(v vector, op operand.Op) operand.Op {
	if m, ok := op.(operand.Mem); ok {
		return v.load(m)
	}
	return op
}

// packed holds the operations common to AVX2 and AVX-512.
type packed struct{}

func (packed) add(a operand.Op, b, d reg.Register) { VADDPD(a, b, d) }
func (packed) sub(a operand.Op, b, d reg.Register) { VSUBPD(a, b, d) }
func (packed) mul(a operand.Op, b, d reg.Register) { VMULPD(a, b, d) }
func (packed) div(a operand.Op, b, d reg.Register) { VDIVPD(a, b, d) }
func (packed) move(u, d reg.Register)              { VMOVAPD(u, d) }
func (packed) max(v, bound, d reg.Register)        { VMAXPD(v, bound, d) }
func (packed) min(v, bound, d reg.Register)        { VMINPD(v, bound, d) }
func (packed) operand(op operand.Op) operand.Op    { return op }
func (packed) store(x reg.Register, m operand.Mem, streaming bool) {
	if streaming {
		VMOVNTPD(x, m)
		return
	}
	VMOVUPD(x, m)
}
