package file

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/p2pdc/p2pdc/internal/yamldoc"
)

// readExpression reads a number or a formula. It also returns the text of the expression.
func readExpression(e yamldoc.Entry, in scope) (formula, string, error) {
	switch v := e.Value.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		written := v.GetToken().Value
		value, err := strconv.ParseFloat(strings.ReplaceAll(written, "_", ""), 64)
		if i, ok := v.(*ast.IntegerNode); ok && err != nil { // 0x10, 0o17
			value, err = strconv.ParseFloat(fmt.Sprint(i.Value), 64)
		}
		if err != nil || !finite(value) {
			return formula{}, "", e.Errorf("%s is not a finite number", written)
		}
		n := constant(value)
		return formula{constant: true, value: value, eval: n.eval}, written, nil
	case *ast.InfinityNode, *ast.NanNode:
		return formula{}, "", e.Errorf("%s is not a finite number", v.GetToken().Value)
	}
	written, ok := e.Text()
	if !ok {
		return formula{}, "", e.Errorf("there should be a number or a formula, not %s", yamldoc.Kind(e.Value))
	}
	written = strings.TrimSpace(written)
	f, err := parseFormula(written, in)
	if err != nil {
		var p *positionError
		if errors.As(err, &p) {
			return formula{}, "", e.Errorf("%s, at character %d of %q", p.reason, p.at+1, yamldoc.Shorten(written))
		}
		return formula{}, "", e.Errorf("%s", err)
	}
	return f, written, nil
}

// readNumber reads a number or a formula without coordinates, such as 2*pi.
func readNumber(e yamldoc.Entry) (float64, error) {
	f, written, err := readExpression(e, scope{})
	if err != nil {
		return 0, err
	}
	if !f.constant {
		return 0, e.Errorf("there should be a number, not %q", yamldoc.Shorten(written))
	}
	return f.value, nil
}
