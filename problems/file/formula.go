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
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/spelling"
)

// maxFormulaBytes and maxFormulaNodes bound formulas, and with them the depth of the parser's recursion. They
// are far above the size of formulas written by hand.
const (
	maxFormulaBytes = 8 << 10
	maxFormulaNodes = 2000
)

// scalar and predicate are compiled formulas: trees of closures over float64. They have no state and are safe
// for concurrent use.
type (
	scalar    func(x, y, z, t float64) float64
	predicate func(x, y, z, t float64) bool
)

// formula is a compiled formula. Constant formulas are folded.
type formula struct {
	node               // a number
	spatial       bool // depends on a coordinate
	timeDependent bool // depends on the time
}

// coefficient returns the formula at time t as a coefficient, which is constant if the formula is not spatial.
func (f formula) coefficient(t float64) problem.Coefficient {
	if f.constant {
		return problem.Coefficient{Value: f.value}
	}
	if v := f.eval(0, 0, 0, t); !f.spatial && kernel.Finite(v) { // validation finds values that are not finite
		return problem.Coefficient{Value: v}
	}
	return problem.Coefficient{Of: f.function(t)}
}

// function returns the formula at time t as a function of the point.
func (f formula) function(t float64) problem.Function {
	if f.constant {
		v := f.value
		return func(problem.Point) float64 { return v }
	}
	eval := f.eval
	return func(p problem.Point) float64 { return eval(p[0], p[1], p[2], t) }
}

// scope is the set of names that a formula may use: the coordinates of a dimension, and the time.
type scope struct {
	dimension int
	time      bool
}

// positionError is an error at a character of the formula, counted from 0.
type positionError struct {
	at     int
	reason string
}

func (p *positionError) Error() string { return p.reason }

// parseFormula parses and compiles a formula. The grammar is the arithmetic part of the expr language. Formulas
// are compiled to closures, because they are evaluated at every point of the grid.
func parseFormula(text string, in scope) (formula, error) {
	if len(text) > maxFormulaBytes {
		return formula{}, fmt.Errorf("the formula has %d characters, more than the %d allowed", len(text),
			maxFormulaBytes)
	}
	if strings.TrimSpace(text) == "" {
		return formula{}, errors.New("the formula is empty")
	}
	config := exprconf.CreateNew()
	config.MaxNodes = maxFormulaNodes
	config.DisableIfOperator = true
	// "?." is an operator of the language. In a formula it is the "?" of a choice followed by a number such as ".5".
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
	case n.constant && !kernel.Finite(n.value):
		return formula{}, fmt.Errorf("the formula's value is %g", n.value)
	}
	return formula{n, c.spatial, c.timeDependent}, nil
}

func syntaxError(err error) error {
	if e, ok := errors.AsType[*exprfile.Error](err); ok {
		message := strings.Replace(e.Message, "unexpected token EOF", "it is incomplete", 1)
		return &positionError{e.From, "the formula does not parse: " + message}
	}
	return fmt.Errorf("the formula does not parse: %w", err)
}

// node is a compiled part of a formula: a number (eval) or a truth value (truth).
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
	spatial       bool // a coordinate occurs
	timeDependent bool // the time occurs
	err           error
}

// fail records the first error and returns a placeholder.
func (c *compiler) fail(at ast.Node, format string, args ...any) node {
	if c.err == nil {
		c.err = &positionError{at.Location().From, fmt.Sprintf(format, args...)}
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
	return c.fail(n, "%s is not allowed: "+
		"formulas consist of numbers, names, + - * / ^, comparisons, a ? b : c and functions", n)
}

func (c *compiler) number(n ast.Node) node {
	v := c.compile(n)
	if v.truth != nil {
		return c.fail(n, "%s is a condition where a number is needed; write %s ? value : other, such as (%s ? 1 : 0)",
			n, n, n)
	}
	return v
}

func (c *compiler) condition(n ast.Node) predicate {
	v := c.compile(n)
	if v.truth == nil {
		c.fail(n, "%s is a number where a condition is needed; compare it, such as %s > 0", n, n)
		return func(_, _, _, _ float64) bool { return false }
	}
	return v.truth
}

func (c *compiler) name(n *ast.IdentifierNode) node {
	axis := slices.Index([]string{"x", "y", "z"}, n.Value)
	c.spatial = c.spatial || axis >= 0
	c.timeDependent = c.timeDependent || n.Value == "t" && c.time
	switch {
	case n.Value == "pi":
		return constant(math.Pi)
	case n.Value == "t" && c.time:
		return node{eval: func(_, _, _, t float64) float64 { return t }}
	case n.Value == "t":
		return c.fail(n, "t is the time, but the problem is stationary: add the key time")
	case axis >= 0 && c.dimension == 0:
		return c.fail(n, "%s is a coordinate, but a number is needed here", n.Value)
	case axis >= c.dimension:
		return c.fail(n, "%s is not a coordinate of a %d-D problem", n.Value, c.dimension)
	case axis >= 0:
		return node{eval: [...]scalar{
			func(x, _, _, _ float64) float64 { return x },
			func(_, y, _, _ float64) float64 { return y },
			func(_, _, z, _ float64) float64 { return z },
		}[axis]}
	}
	known := append([]string{"x", "y", "z", "t", "pi"}, functionNames()...)
	if slices.Contains(known, n.Value) {
		return c.fail(n, "%s is a function: write %s(…)", n.Value, n.Value)
	}
	return c.fail(n, "unknown name %q%s; the names are %s",
		n.Value, spelling.Suggest(n.Value, known), strings.Join(known, ", "))
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
	return c.fail(n, "formulas have no operator %s", n.Operator)
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
	i := slices.Index(functionNames(), name)
	if i < 0 {
		return c.fail(at, "unknown function %q%s; the functions are %s", name,
			spelling.Suggest(name, functionNames()), strings.Join(functionNames(), ", "))
	}
	f := functions()[i]
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
