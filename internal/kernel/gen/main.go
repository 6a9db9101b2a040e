// Command gen writes the assembly rows of package kernel (go generate in that
// package). Each row loop is written once, over a small set of vector
// operations, and emitted for AVX2 and for AVX-512.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build" //nolint:staticcheck // avo programs read as assembly
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range []set{avx2{}, avx512{}} {
		for _, f := range []form{isotropic, constant, variable} {
			defect(s, f)
			relax(s, f, false)
			relax(s, f, true)
		}
	}
	TEXT("storeFence", NOSPLIT, "func()")
	Doc("storeFence orders the stores that passed the caches before all that follow.")
	SFENCE()
	RET()
	Generate()
}

// form is the shape of the operator, as kernel.Form.
type form int

const (
	isotropic form = iota
	constant
	variable
)

func (f form) String() string { return [...]string{"Isotropic", "Constant", "Variable"}[f] }

// Coefficients by direction: center, west, east, south, north, bottom, top.
var directions = [...]string{"kc", "kw", "ke", "ks", "kn", "kb", "kt"}

// row is the state of one emitted function.
type row struct {
	form    form
	ptr     map[string]reg.GPVirtual
	index   reg.GPVirtual
	count   reg.GPVirtual
	scalars map[string]operand.Op // broadcast values
}

func signature(f form, out string, relaxing bool) string {
	args := out + ", c, s, n, b, t, f, phi, psi"
	if f == variable {
		for _, k := range directions {
			args += ", " + k
		}
	}
	args += " *float64, count int"
	switch {
	case f == isotropic:
		args += ", diag, off"
	case f == constant:
		for _, k := range directions {
			args += ", " + k
		}
	}
	if relaxing {
		args += ", step"
	}
	if f != variable || relaxing {
		args += " float64"
	}
	return "func(" + args + ")"
}

func (r *row) begin(s set, out string, scalars []string) {
	r.ptr = map[string]reg.GPVirtual{}
	for _, p := range []string{out, "c", "s", "n", "b", "t", "f", "phi", "psi"} {
		g := GP64()
		Load(Param(p), g)
		r.ptr[p] = g
	}
	r.count = GP64()
	Load(Param("count"), r.count)
	r.scalars = map[string]operand.Op{}
	for _, name := range scalars {
		r.scalars[name] = s.broadcast(param(name))
	}
	r.index = GP64()
	XORQ(r.index, r.index)
}

// param is the memory operand of a scalar parameter.
func param(name string) operand.Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// at is element index+offset+unroll of the row p points to.
func (r *row) at(p string, offset int) operand.Mem {
	return operand.Mem{Base: r.ptr[p], Index: r.index, Scale: 8, Disp: 8 * offset}
}

// coefficient is the operand of a coefficient: a broadcast register, or a row
// whose pointer is read from the frame, since registers have run out.
func (r *row) coefficient(name string, offset int) operand.Op {
	if r.form == constant {
		return r.scalars[name]
	}
	g := GP64()
	Load(Param(name), g)
	return operand.Mem{Base: g, Index: r.index, Scale: 8, Disp: 8 * offset}
}

// sum emits A·u − f at the vector that starts offset elements after index; it
// also returns u.
func (r *row) sum(v vector, offset int) (u, res reg.Register) {
	pair := func(low, high string, lowAt, highAt int, kl, kh string) reg.Register {
		x := v.load(r.at(low, lowAt+offset))
		if r.form == isotropic {
			v.add(v.operand(r.at(high, highAt+offset)), x, x)
			return x
		}
		v.mul(v.operand(r.coefficient(kl, offset)), x, x)
		y := v.load(r.at(high, highAt+offset))
		v.mul(v.operand(r.coefficient(kh, offset)), y, y)
		v.add(y, x, x)
		return x
	}
	a := pair("c", "c", 0, 2, "kw", "ke")
	v.add(pair("s", "n", 0, 0, "ks", "kn"), a, a)
	v.add(pair("b", "t", 0, 0, "kb", "kt"), a, a)
	u = v.load(r.at("c", 1+offset))
	res = v.vector()
	if r.form == isotropic {
		v.mul(r.scalars["off"], a, a)
		v.mul(r.scalars["diag"], u, res)
	} else {
		v.mul(v.operand(r.coefficient("kc", offset)), u, res)
	}
	v.sub(a, res, res)
	v.sub(v.operand(r.at("f", offset)), res, res)
	return u, res
}

func scalarsOf(f form, relaxing bool) []string {
	var names []string
	switch f {
	case isotropic:
		names = []string{"diag", "off"}
	case constant:
		names = directions[:]
	}
	if relaxing {
		names = append(names[:len(names):len(names)], "step")
	}
	return names
}

// relax emits the relaxation of a row; streaming stores pass the caches.
func relax(s set, f form, streaming bool) {
	name := "relax" + f.String()
	if streaming {
		name += "Stream"
	}
	TEXT(name+s.name(), NOSPLIT, signature(f, "dst", true))
	doc := "%s%s relaxes count points of a row."
	if streaming {
		doc = "%s%s relaxes count points of a row whose dst is aligned to a vector, with stores that pass the caches."
	}
	Doc(fmt.Sprintf(doc, name, s.name()))
	Pragma("noescape")
	r := &row{form: f}
	r.begin(s, "dst", scalarsOf(f, true))
	s.loops(r, func(v vector, offset int) {
		u, res := r.sum(v, offset)
		v.mul(r.scalars["step"], res, res)
		v.sub(res, u, u)
		v.max(u, v.load(r.at("phi", offset)), u)
		v.min(u, v.load(r.at("psi", offset)), u)
		v.store(u, r.at("dst", offset), streaming)
	})
}

// defect emits the VI residual of a row.
func defect(s set, f form) {
	name := "residual" + f.String() + s.name()
	TEXT(name, NOSPLIT, signature(f, "r", false))
	Doc(name + " writes the residual of count points of a row to r.")
	Pragma("noescape")
	r := &row{form: f}
	r.begin(s, "r", scalarsOf(f, false))
	zero := s.zero()
	s.loops(r, func(v vector, offset int) {
		u, res := r.sum(v, offset)
		v.clear(zero, lessEqual, v.operand(r.at("phi", offset)), u, greater, res)
		v.clear(zero, greaterEqual, v.operand(r.at("psi", offset)), u, less, res)
		v.store(res, r.at("r", offset), false)
	})
}
