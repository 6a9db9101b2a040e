package file

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/p2pdc/p2pdc/solver/problem"

	exprconf "github.com/expr-lang/expr/conf"

	exprfile "github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/p2pdc/p2pdc/internal/spelling"
)

// Bounds of a formula: what a person writes is far below them, and they bound
// the depth of the recursion that reads it.
const (
	maxFormulaBytes = 8 << 10
	maxFormulaNodes = 2000
)

// scalar and predicate are compiled formulas: trees of closures over float64.
// They keep no state, so they may be called from several goroutines at once.
type (
	scalar    func(x, y, z, t float64) float64
	predicate func(x, y, z, t float64) bool
)

// formula is a compiled formula; a constant one is folded.
type formula struct {
	constant bool
	placed   bool // it depends on the place, not on the time only
	timed    bool // it depends on the time
	value    float64
	eval     scalar
}

// coefficient and function are the formula at time t.
func (f formula) coefficient(t float64) problem.Coefficient {
	if f.constant {
		return problem.Coefficient{Value: f.value}
	}
	if v := f.eval(0, 0, 0, t); !f.placed && finite(v) { // another value is refused by the place where it shows
		return problem.Coefficient{Value: v}
	}
	return problem.Coefficient{Of: f.function(t)}
}

func (f formula) function(t float64) problem.Function {
	if f.constant {
		v := f.value
		return func(problem.Point) float64 { return v }
	}
	eval := f.eval
	return func(p problem.Point) float64 { return eval(p[0], p[1], p[2], t) }
}

// scope is what a formula may refer to.
type scope struct {
	dimension int
	time      bool
}

// positioned is a mistake at a character of the formula, counted from 0.
type positioned struct {
	at     int
	reason string
}

func (p *positioned) Error() string { return p.reason }

// parseFormula reads a formula. The grammar is that of the expr language; what
// of it is not arithmetic is refused, and the rest is compiled here, because a
// formula is evaluated at every point of the grid.
func parseFormula(text string, in scope) (formula, error) {
	if len(text) > maxFormulaBytes {
		return formula{}, fmt.Errorf("the formula has %d characters, more than the %d allowed", len(text), maxFormulaBytes)
	}
	if strings.TrimSpace(text) == "" {
		return formula{}, errors.New("the formula is empty")
	}
	config := exprconf.CreateNew()
	config.MaxNodes = maxFormulaNodes
	config.DisableIfOperator = true
	// "?." and "??" are operators of the language; after a condition they are
	// the "?" of a choice followed by a number.
	tree, err := parser.ParseWithConfig(strings.ReplaceAll(text, "?.", "? ."), config)
	if err != nil {
		return formula{}, syntaxError(err)
	}
	c := compiler{scope: in}
	n := c.compile(tree.Node)
	switch {
	case c.err != nil:
		return formula{}, c.err
	case n.truth != nil:
		return formula{}, errors.New("the formula is a condition, not a number; write condition ? value : other")
	case n.constant && !finite(n.value):
		return formula{}, fmt.Errorf("the formula's value is %g", n.value)
	}
	return formula{constant: n.constant, placed: c.placed, timed: c.timed, value: n.value, eval: n.eval}, nil
}

func syntaxError(err error) error {
	var e *exprfile.Error
	if errors.As(err, &e) {
		message := strings.Replace(e.Message, "unexpected token EOF", "it ends too early", 1)
		return &positioned{e.From, "the formula does not parse: " + message}
	}
	return fmt.Errorf("the formula does not parse: %w", err)
}

// node is a compiled part: a number (eval) or a truth value (truth).
type node struct {
	constant bool
	value    float64
	eval     scalar
	truth    predicate
}

func constant(v float64) node {
	return node{constant: true, value: v, eval: func(_, _, _, _ float64) float64 { return v }}
}

type compiler struct {
	scope
	placed bool // a coordinate was named
	timed  bool // the time was named
	err    error
}

// fail keeps the first mistake and returns a node that stands for it.
func (c *compiler) fail(at ast.Node, format string, args ...any) node {
	if c.err == nil {
		c.err = &positioned{at.Location().From, fmt.Sprintf(format, args...)}
	}
	return constant(0)
}

func (c *compiler) compile(n ast.Node) node {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return constant(float64(n.Value))
	case *ast.FloatNode:
		return constant(n.Value)
	case *ast.IdentifierNode:
		return c.name(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.choice(n)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.call(n, callee.Value, n.Arguments)
		}
	case nil:
		c.err = errors.New("the formula does not parse")
		return constant(0)
	}
	return c.fail(n, "%s is not arithmetic: formulas know numbers, names, + - * / ^, comparisons, a ? b : c and functions", n)
}

func (c *compiler) number(n ast.Node) node {
	v := c.compile(n)
	if v.truth != nil {
		return c.fail(n, "%s is a condition where a number is needed", n)
	}
	return v
}

func (c *compiler) condition(n ast.Node) predicate {
	v := c.compile(n)
	if v.truth == nil {
		c.fail(n, "%s is a number where a condition is needed", n)
		return func(_, _, _, _ float64) bool { return false }
	}
	return v.truth
}

func (c *compiler) name(n *ast.IdentifierNode) node {
	axis := slices.Index([]string{"x", "y", "z"}, n.Value)
	c.placed, c.timed = c.placed || axis >= 0, c.timed || n.Value == "t" && c.time
	switch {
	case n.Value == "pi":
		return constant(math.Pi)
	case n.Value == "t" && c.time:
		return node{eval: func(_, _, _, t float64) float64 { return t }}
	case n.Value == "t":
		return c.fail(n, "t is the time, and this problem has none: see the key time")
	case axis >= 0 && c.dimension == 0:
		return c.fail(n, "%s changes from place to place, and a number is needed here", n.Value)
	case axis >= c.dimension:
		return c.fail(n, "%s is not a coordinate of a %d-D problem", n.Value, c.dimension)
	case axis == 0:
		return node{eval: func(x, _, _, _ float64) float64 { return x }}
	case axis == 1:
		return node{eval: func(_, y, _, _ float64) float64 { return y }}
	case axis == 2:
		return node{eval: func(_, _, z, _ float64) float64 { return z }}
	}
	if _, isFunction := findFunction(n.Value); isFunction {
		return c.fail(n, "%s is a function: write %s(…)", n.Value, n.Value)
	}
	known := append([]string{"x", "y", "z", "t", "pi"}, functionNames()...)
	return c.fail(n, "unknown name %q%s; formulas know %s", n.Value, spelling.Suggest(n.Value, known), strings.Join(known, ", "))
}

func (c *compiler) unary(n *ast.UnaryNode) node {
	switch n.Operator {
	case "!", "not":
		a := c.condition(n.Node)
		return node{truth: func(x, y, z, t float64) bool { return !a(x, y, z, t) }}
	case "+":
		return c.number(n.Node)
	case "-":
		a := c.number(n.Node)
		if a.constant {
			return constant(-a.value)
		}
		f := a.eval
		return node{eval: func(x, y, z, t float64) float64 { return -f(x, y, z, t) }}
	}
	return c.fail(n, "the operator %s is not one that formulas know", n.Operator)
}

func (c *compiler) choice(n *ast.ConditionalNode) node {
	if !n.Ternary {
		return c.fail(n, "write condition ? value : other")
	}
	when, a, b := c.condition(n.Cond), c.number(n.Exp1).eval, c.number(n.Exp2).eval
	return node{eval: func(x, y, z, t float64) float64 {
		if when(x, y, z, t) {
			return a(x, y, z, t)
		}
		return b(x, y, z, t)
	}}
}

func (c *compiler) call(at ast.Node, name string, arguments []ast.Node) node {
	f, known := findFunction(name)
	if !known {
		return c.fail(at, "unknown function %q%s; formulas know %s", name,
			spelling.Suggest(name, functionNames()), strings.Join(functionNames(), ", "))
	}
	if len(arguments) < f.least || len(arguments) > f.most {
		return c.fail(at, "%s takes %s, not %d", name, f.arguments(), len(arguments))
	}
	parts := make([]node, len(arguments))
	fixed := true
	for i, a := range arguments {
		parts[i] = c.number(a)
		fixed = fixed && parts[i].constant
	}
	v := f.apply(parts)
	if fixed {
		return constant(v(0, 0, 0, 0))
	}
	return node{eval: v}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
