package file

import (
	"fmt"
	"math"

	"github.com/expr-lang/expr/ast"
)

// binary compiles a binary operator. Each operation is a separate call, so that no compiler can fuse a product
// and a sum: +, −, * and / have the same bits on every machine.
func (c *compiler) binary(n *ast.BinaryNode) node {
	switch n.Operator {
	case "&&", "and":
		a, b := c.condition(n.Left), c.condition(n.Right)
		return node{truth: func(x, y, z, t float64) bool { return a(x, y, z, t) && b(x, y, z, t) }}
	case "||", "or":
		a, b := c.condition(n.Left), c.condition(n.Right)
		return node{truth: func(x, y, z, t float64) bool { return a(x, y, z, t) || b(x, y, z, t) }}
	}
	if holds := comparisons[n.Operator]; holds != nil {
		a, b := c.number(n.Left).eval, c.number(n.Right).eval
		return node{truth: func(x, y, z, t float64) bool { return holds(a(x, y, z, t), b(x, y, z, t)) }}
	}
	arithmetic := operations[n.Operator]
	if arithmetic == nil {
		return c.fail(n, "formulas have no operator %s", n.Operator)
	}
	a, b := c.number(n.Left), c.number(n.Right)
	v := arithmetic(a, b)
	if a.constant && b.constant {
		return constant(v(0, 0, 0, 0))
	}
	return node{eval: v}
}

var comparisons = map[string]func(a, b float64) bool{
	"<":  func(a, b float64) bool { return a < b },
	"<=": func(a, b float64) bool { return a <= b },
	">":  func(a, b float64) bool { return a > b },
	">=": func(a, b float64) bool { return a >= b },
	"==": func(a, b float64) bool { return a == b },
	"!=": func(a, b float64) bool { return a != b },
}

var operations = map[string]func(a, b node) scalar{
	"+": add, "-": subtract, "*": multiply, "/": divide, "^": power, "**": power,
}

func add(a, b node) scalar {
	if a.constant {
		a, b = b, a
	}
	f, g := a.eval, b.eval
	if v := b.value; b.constant {
		return func(x, y, z, t float64) float64 { return f(x, y, z, t) + v }
	}
	return func(x, y, z, t float64) float64 { return f(x, y, z, t) + g(x, y, z, t) }
}

func subtract(a, b node) scalar {
	f, g := a.eval, b.eval
	switch {
	case b.constant:
		return add(a, constant(-b.value))
	case a.constant:
		v := a.value
		return func(x, y, z, t float64) float64 { return v - g(x, y, z, t) }
	}
	return func(x, y, z, t float64) float64 { return f(x, y, z, t) - g(x, y, z, t) }
}

func multiply(a, b node) scalar {
	if a.constant {
		a, b = b, a
	}
	f, g := a.eval, b.eval
	if v := b.value; b.constant {
		return func(x, y, z, t float64) float64 { return f(x, y, z, t) * v }
	}
	return func(x, y, z, t float64) float64 { return f(x, y, z, t) * g(x, y, z, t) }
}

func divide(a, b node) scalar {
	f, g := a.eval, b.eval
	if b.constant {
		v := b.value
		return func(x, y, z, t float64) float64 { return f(x, y, z, t) / v }
	}
	return func(x, y, z, t float64) float64 { return f(x, y, z, t) / g(x, y, z, t) }
}

// power computes small constant powers by multiplication.
func power(a, b node) scalar {
	f, g := a.eval, b.eval
	if b.constant {
		switch v := b.value; v {
		case 1:
			return f
		case 2:
			return func(x, y, z, t float64) float64 { a := f(x, y, z, t); return a * a }
		case 3:
			return func(x, y, z, t float64) float64 { a := f(x, y, z, t); return a * a * a }
		case 4:
			return func(x, y, z, t float64) float64 { a := f(x, y, z, t); a *= a; return a * a }
		default:
			return func(x, y, z, t float64) float64 { return math.Pow(f(x, y, z, t), v) }
		}
	}
	return func(x, y, z, t float64) float64 { return math.Pow(f(x, y, z, t), g(x, y, z, t)) }
}

// function is a function that formulas may call.
type function struct {
	name        string
	least, most int // number of arguments
	apply       func(arguments []node) scalar
}

// functions returns all functions in the order of error messages.
func functions() []function {
	return []function{
		one("sqrt", math.Sqrt), one("exp", math.Exp), one("log", math.Log),
		one("sin", math.Sin), one("cos", math.Cos), one("tan", math.Tan),
		{"atan2", 2, 2, func(a []node) scalar { return pair(a[0].eval, a[1].eval, math.Atan2) }},
		one("abs", math.Abs),
		{"min", 1, 16, func(a []node) scalar { return fold(a, math.Min) }},
		{"max", 1, 16, func(a []node) scalar { return fold(a, math.Max) }},
		one("floor", math.Floor),
	}
}

func one(name string, f func(float64) float64) function {
	return function{name, 1, 1, func(a []node) scalar {
		g := a[0].eval
		return func(x, y, z, t float64) float64 { return f(g(x, y, z, t)) }
	}}
}

func pair(a, b scalar, f func(a, b float64) float64) scalar {
	return func(x, y, z, t float64) float64 { return f(a(x, y, z, t), b(x, y, z, t)) }
}

func fold(arguments []node, f func(a, b float64) float64) scalar {
	v := arguments[0].eval
	for _, a := range arguments[1:] {
		v = pair(v, a.eval, f)
	}
	return v
}

func (f function) arguments() string {
	switch {
	case f.least != f.most:
		return fmt.Sprintf("%d to %d arguments", f.least, f.most)
	case f.most == 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", f.most)
}

func functionNames() []string {
	var names []string
	for _, f := range functions() {
		names = append(names, f.name)
	}
	return names
}
