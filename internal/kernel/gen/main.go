// Command gen generates the assembly loops of package kernel (go generate in that package). Each loop is
// written once with a small set of vector operations and emitted for AVX2 and for AVX-512.
package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo programs read as assembly
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!noasm")
	tables()
	for _, s := range []set{avx2{}, avx512{}} {
		for _, f := range []form{simple, isotropic, constant, variable} {
			if f != simple {
				residual(s, f)
			}
			relax(s, f, false)
			if f != variable {
				relax(s, f, true)
			}
			relaxColour(s, f)
		}
	}
	for _, s := range []set{avx2{}, avx512{}} {
		transfers(s)
		markRows(s)
		touchRows(s)
		sums(s)
	}
	TEXT("storeFence", NOSPLIT, "func()")
	Doc("storeFence orders streaming stores before all later stores.")
	SFENCE()
	RET()
	Generate()
}

// form is the kind of operator, as kernel.Form; simple is the isotropic form with a constant source
// and no upper obstacle.
type form int

const (
	isotropic form = iota
	constant
	variable
	simple
)

func (f form) String() string {
	return [...]string{"Isotropic", "Constant", "Variable", "Simple"}[f]
}

// fields holds the byte offsets of the fields of kernel.tile. A test of package kernel compares them.
var fields = map[string]int{
	"out": 0, "c": 8, "s": 16, "n": 24, "b": 32, "t": 40, "f": 48, "phi": 56, "psi": 64,
	"count": 72, "rows": 80,
	"outStep": 88, "rowStep": 96, "planeStep": 104, "fStep": 112, "phiStep": 120, "psiStep": 128,
	"step": 136, "source": 144,
	"kc": 152, "kw": 160, "ke": 168, "ks": 176, "kn": 184, "kb": 192, "kt": 200,
	"pc": 208, "pw": 216, "pe": 224, "ps": 232, "pn": 240, "pb": 248, "pt": 256,
	"xStep": 264, "yStep": 272, "zStep": 280, "odd": 288,
}

// steps names the field that moves a pointer from row to row.
var steps = map[string]string{
	"out": "outStep", "c": "rowStep", "s": "rowStep", "n": "rowStep", "b": "planeStep", "t": "planeStep",
	"f": "fStep", "phi": "phiStep", "psi": "psiStep",
	"pc": "xStep", "pw": "xStep", "pe": "xStep", "ps": "yStep", "pn": "yStep", "pb": "zStep", "pt": "zStep",
}

// loop is the state of one emitted function.
type loop struct {
	form     form
	tile     reg.Register
	pointers []string
	ptr      map[string]reg.GPVirtual
	index    reg.GPVirtual
	count    reg.GPVirtual
	scalars  map[string]operand.Op // broadcast values
	colour   colour
}

func (l *loop) field(name string) operand.Mem {
	at, ok := fields[name]
	if !ok {
		panic("no field " + name)
	}
	return operand.Mem{Base: l.tile, Disp: at}
}

// at returns element index+offset of the row of pointer p.
func (l *loop) at(p string, offset int) operand.Mem {
	return operand.Mem{Base: l.ptr[p], Index: l.index, Scale: 8, Disp: 8 * offset}
}

// coefficient returns the operand of a coefficient: a broadcast register, or a row whose address is
// read from the tile because no register is left.
func (l *loop) coefficient(direction string, offset int) operand.Op {
	if l.form != variable {
		return l.scalars["k"+direction]
	}
	g := GP64()
	MOVQ(l.field("p"+direction), g)
	return operand.Mem{Base: g, Index: l.index, Scale: 8, Disp: 8 * offset}
}

// emit writes a function over the rows of a tile. Its output goes to out or, if inPlace, to the row
// of c.
func emit(s set, name, doc string, f form, inPlace bool, scalars []string, body func(l *loop, v vector, offset int)) {
	// The argument is the address of the tile's first field. Naming the type would require that the package
	// compiles without the functions to be generated.
	TEXT(name+s.name(), NOSPLIT, "func(tile **float64)")
	Doc(name + s.name() + " " + doc)
	Pragma("noescape")
	l := &loop{form: f, ptr: map[string]reg.GPVirtual{}, scalars: map[string]operand.Op{}}
	l.tile = Load(Param("tile"), GP64())
	l.pointers = []string{"c", "s", "n", "b", "t", "phi"}
	if !inPlace {
		l.pointers = append(l.pointers, "out")
	}
	if f != simple {
		l.pointers = append(l.pointers, "f", "psi")
	}
	for _, p := range l.pointers {
		l.ptr[p] = GP64()
		MOVQ(l.field(p), l.ptr[p])
	}
	for _, k := range scalars {
		l.scalars[k] = s.broadcast(l.field(k))
	}
	if !inPlace && strings.HasPrefix(name, "residual") {
		l.scalars["zero"], l.scalars["held"] = s.zero(), s.held()
	}
	l.count, l.index = GP64(), GP64()
	MOVQ(l.field("count"), l.count)
	Label("row")
	XORQ(l.index, l.index)
	if inPlace {
		s.colour(l)
	}
	s.loops(l, inPlace, func(v vector, offset int) { body(l, v, offset) })
	l.advance(inPlace)
	DECQ(l.field("rows"))
	JNZ(operand.LabelRef("row"))
	VZEROUPPER()
	RET()
}

// advance moves the pointers to the next row. Those of coefficients are kept in the tile.
func (l *loop) advance(inPlace bool) {
	for _, p := range l.pointers {
		ADDQ(l.field(steps[p]), l.ptr[p])
	}
	if l.form == variable {
		last, g := "", GP64()
		for _, p := range []string{"pc", "pw", "pe", "ps", "pn", "pb", "pt"} {
			if steps[p] != last {
				last = steps[p]
				MOVQ(l.field(last), g)
			}
			ADDQ(g, l.field(p))
		}
	}
	if inPlace {
		XORQ(operand.U8(1), l.field("odd"))
	}
}

// sum emits A·u − f at the vector offset elements after index. It also returns u.
func (l *loop) sum(v vector, offset int) (u, res reg.Register) {
	pair := func(low, high string, lowAt, highAt int, kl, kh string) reg.Register {
		var x reg.Register
		if low == "c" && l.colour.last != nil {
			x = v.vector()
			v.west(l.colour.last, u, x)
		} else {
			x = v.load(l.at(low, lowAt+offset))
		}
		if l.form == isotropic || l.form == simple {
			v.add(v.operand(l.at(high, highAt+offset)), x, x)
			return x
		}
		v.mul(v.operand(l.coefficient(kl, offset)), x, x)
		y := v.load(l.at(high, highAt+offset))
		v.mul(v.operand(l.coefficient(kh, offset)), y, y)
		v.add(y, x, x)
		return x
	}
	u = v.load(l.at("c", 1+offset))
	a := pair("c", "c", 0, 2, "w", "e")
	v.add(pair("s", "n", 0, 0, "s", "n"), a, a)
	v.add(pair("b", "t", 0, 0, "b", "t"), a, a)
	res = v.vector()
	v.mul(v.operand(l.coefficient("c", offset)), u, res)
	if l.form == isotropic || l.form == simple {
		v.mul(l.scalars["kw"], a, a)
	}
	v.sub(a, res, res)
	if l.form == simple {
		v.sub(l.scalars["source"], res, res)
	} else {
		v.sub(v.operand(l.at("f", offset)), res, res)
	}
	return u, res
}

// scalarsOf returns the names of the values to broadcast. For isotropic forms kc is the diagonal
// and kw the off-diagonal coefficient.
func scalarsOf(f form) []string {
	switch f {
	case simple:
		return []string{"kc", "kw", "source"}
	case isotropic:
		return []string{"kc", "kw"}
	case constant:
		return []string{"kc", "kw", "ke", "ks", "kn", "kb", "kt"}
	}
	return nil
}

// relax emits the relaxation of a tile, with streaming stores if requested.
func relax(s set, f form, streaming bool) {
	name, doc := "relax"+f.String(), "relaxes the points of a tile."
	if streaming {
		name += "Stream"
		doc = "relaxes the points of a tile with streaming stores; the rows of out are aligned to 64 bytes."
	}
	emit(s, name, doc, f, false, append(scalarsOf(f), "step"), func(l *loop, v vector, offset int) {
		u, res := l.sum(v, offset)
		v.mul(l.scalars["step"], res, res)
		v.sub(res, u, u)
		v.max(u, v.load(l.at("phi", offset)), u)
		if f != simple {
			v.min(u, v.load(l.at("psi", offset)), u)
		}
		v.store(u, l.at("out", offset), streaming)
	})
}

// residual emits the VI residual of a tile.
func residual(s set, f form) {
	doc := "writes the residual of the points of a tile to out."
	emit(s, "residual"+f.String(), doc, f, false, scalarsOf(f), func(l *loop, v vector, offset int) {
		u, res := l.sum(v, offset)
		v.add(l.scalars["zero"], res, res) // −0 is reserved for points in contact
		v.clear(l, lessEqual, v.operand(l.at("phi", offset)), u, greaterEqual, res)
		v.clear(l, greaterEqual, v.operand(l.at("psi", offset)), u, lessEqual, res)
		v.store(res, l.at("out", offset), false)
	})
}
