package file

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/expr-lang/expr"
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFormulas(t *testing.T) {
	at := problem.Point{0.75, -2, 3}
	x, y, z := at[0], at[1], at[2]
	for text, want := range map[string]float64{
		"x":                                    x,
		"-x^2":                                 -(x * x),
		"(-x)^2":                               x * x,
		"2^-x":                                 math.Pow(2, -x),
		"2^x^2":                                math.Pow(2, x*x),
		"z^3^2":                                math.Pow(z, 9),
		"-2^2":                                 -4,
		"x - y - z":                            x - y - z,
		"x - (y - z)":                          x - (y - z),
		"x/z/y":                                x / z / y,
		"1/2":                                  0.5,
		"x*y^2/z":                              x * (y * y) / z,
		"2 ** 3":                               8,
		"+x":                                   x,
		"--x":                                  x,
		"sqrt(z)":                              math.Sqrt(3),
		"exp(x) + log(z)":                      math.Exp(x) + math.Log(z),
		"sin(x)*cos(y) - tan(z)":               math.Sin(x)*math.Cos(y) - math.Tan(z),
		"atan2(y, x)":                          math.Atan2(y, x),
		"abs(y)":                               2,
		"min(x, y, z)":                         -2,
		"max(x, y)":                            x,
		"floor(x + y)":                         -2,
		"2*pi":                                 2 * math.Pi,
		"x > 0 ? 1 : 2":                        1,
		"y > 0 ? 1 : z > 0 ? 5 : 6":            5,
		"x>0?.5:1":                             0.5,
		"x > 0 && y > 0 ? 1 : 0":               0,
		"x > 0 || y > 0 ? 1 : 0":               1,
		"not (x > 0) ? 1 : 0":                  0,
		"!(x > 0) and y < 0 or z == 3 ? 1 : 0": 1,
		"0 < x < 1 ? 7 : 8":                    7,
		"0 < x < 0.5 ? 7 : 8":                  8,
		"x != x ? 1 : x <= 0.75 ? 2 : 3":       2,
		"x >= 1 ? 1 : 0":                       0,
		"1e-3":                                 1e-3,
		".5":                                   0.5,
		"x^3 + x^5":                            x*x*x + math.Pow(x, 5),
		"1_000":                                1000,
		"0.5 - 4*((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2)": 0.5 - 4*((x-0.5)*(x-0.5)+(y-0.5)*(y-0.5)+(z-0.5)*(z-0.5)),
		"x\n + y":                 x + y,
		"x^4 + x^1 + x^0 + x^0.5": x*x*(x*x) + x + 1 + math.Pow(x, 0.5),
	} {
		f, err := parseFormula(text, scope{dimension: 3})
		require.NoError(t, err, text)
		require.InDelta(t, want, f.function(0)(at), 1e-15*max(1, math.Abs(want)), text)
		require.Equal(t, !strings.ContainsAny(strings.NewReplacer("max", "", "exp", "").Replace(text), "xyz"),
			f.constant, text)
	}
}

func TestConstantsAreFolded(t *testing.T) {
	f, err := parseFormula("2*sin(pi/6)^2 + max(1, 2)", scope{})
	require.NoError(t, err)
	require.True(t, f.coefficient(0).Constant())
	require.InDelta(t, 2.5, f.coefficient(0).Value, 1e-15)
}

// expression draws a formula that the machine of the expr language evaluates too. It contains no 0, because the
// two differ in the sign of -0.
func expression(depth int) *rapid.Generator[string] {
	leaf := rapid.OneOf(
		rapid.SampledFrom([]string{"x", "y", "z", "pi"}),
		rapid.Map(rapid.Float64Range(0.001, 9), func(v float64) string { return fmt.Sprintf("%.3f", v) }),
	)
	if depth == 0 {
		return leaf
	}
	sub := rapid.Deferred(func() *rapid.Generator[string] { return expression(depth - 1) })
	return rapid.OneOf(leaf, rapid.Custom(func(t *rapid.T) string {
		a, b, c := sub.Draw(t, "a"), sub.Draw(t, "b"), sub.Draw(t, "c")
		switch rapid.IntRange(0, 5).Draw(t, "shape") {
		case 0:
			return "-" + a
		case 1:
			return "sin(" + a + ")"
		case 2:
			return fmt.Sprintf("min(%s, abs(%s), %s)", a, b, c)
		case 3:
			return fmt.Sprintf("(%s < %s ? %s : %s)", a, b, c, a)
		}
		op := rapid.SampledFrom([]string{"+", "-", "*", "/", "^"}).Draw(t, "operator")
		if rapid.Bool().Draw(t, "brackets") {
			return "(" + a + " " + op + " " + b + ")"
		}
		return a + op + b
	}))
}

// The compiled closures have the values of another evaluator of the same grammar.
func TestFormulasAgreeWithTheLanguage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := expression(4).Draw(t, "formula")
		at := problem.Point{}
		for a := range at {
			at[a] = rapid.Float64Range(-3, 3).Draw(t, "coordinate")
		}
		env := map[string]any{
			"x": at[0], "y": at[1], "z": at[2], "pi": math.Pi,
			"sin": math.Sin, "abs": math.Abs,
			"min": func(a, b, c float64) float64 { return math.Min(math.Min(a, b), c) },
		}
		// The min of the expr language ignores NaN.
		program, err := expr.Compile(text, expr.Env(env), expr.DisableBuiltin("min"), expr.DisableBuiltin("abs"))
		require.NoError(t, err, text)
		other, err := expr.Run(program, env)
		require.NoError(t, err, text)
		f, err := parseFormula(text, scope{dimension: 3})
		want := other.(float64)
		if err != nil { // a constant that is not finite
			require.False(t, kernel.Finite(want), "%s: %v", text, err)
			return
		}
		got := f.function(0)(at)
		if math.IsNaN(want) || math.IsNaN(got) || math.Abs(want) > 1e12 {
			return // powers of negative numbers and repeated powers may differ in the last bits
		}
		require.InDelta(t, want, got, 1e-9*max(1, math.Abs(want)), text)
	})
}

// A compiled formula has no state.
func TestFormulasAreSafeForConcurrentUse(t *testing.T) {
	f, err := parseFormula("x > 0.5 ? sin(x)*y : min(x, y)^2", scope{dimension: 2})
	require.NoError(t, err)
	g := f.function(0)
	var done sync.WaitGroup
	for w := range 4 {
		done.Go(func() {
			for i := range 1000 {
				p := problem.Point{float64(i) / 1000, float64(w)}
				want := math.Pow(min(p[0], p[1]), 2)
				if p[0] > 0.5 {
					want = math.Sin(p[0]) * p[1]
				}
				if got := g(p); got != want {
					t.Errorf("%v: %g, not %g", p, got, want)
					return
				}
			}
		})
	}
	done.Wait()
}

func TestFormulasDoNotAllocate(t *testing.T) {
	f, err := parseFormula("x > 0.5 ? sin(x)*y : min(x, y)^2", scope{dimension: 2})
	require.NoError(t, err)
	g := f.function(0)
	require.Zero(t, testing.AllocsPerRun(100, func() { g(problem.Point{0.3, 0.4}) }))
}

func BenchmarkFormula(b *testing.B) {
	f, err := parseFormula("0.5 - 4*((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2)", scope{dimension: 3})
	require.NoError(b, err)
	g := f.function(0)
	for b.Loop() {
		g(problem.Point{0.1, 0.2, 0.3})
	}
}
