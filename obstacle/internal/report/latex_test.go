package report

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

func TestLatexOfASimulatedComparison(t *testing.T) {
	c := SimulatedComparison{Subject: Subject{
		Problem: "my_problem\n50 %", N: []int{24, 24, 24}, Order: "jacobi", Tolerance: 1e-6, Model: "rack & co", Seed: 1,
	}}
	nan := nullable.NaN()
	c.Rows = []SimulatedRow{
		{Method: "richardson", Simulated: Simulated{
			Scheme: "delay:2", Machines: 16, Seconds: 12.3456789, Met: 12.25, Comparable: 12.125, Efficiency: 0.4567,
			Equivalent: 321.04, Residual: 9.87e-7, Bytes: 12_345_678, MeanAge: 0.126,
		}},
		{Method: "my_method", Simulated: Simulated{
			Scheme: "sync", Machines: 64, Seconds: 3e10, Met: nan, Comparable: nan, Efficiency: nan, MeanAge: nan,
			Residual: nullable.Number(math.Inf(1)),
		}},
		{Method: "$or", Simulated: Refused("async", 4, errors.New("refused"))},
	}
	var b strings.Builder
	require.NoError(t, c.Latex(&b))
	require.Equal(t, `% my_problem 50 %, 24 × 24 × 24 points, order jacobi, tolerance 1e-06, on model rack & co, seed 1
\begin{tabular}{llrrrrrrrrr}
\hline
method & scheme & machines & seconds & met & comparable & efficiency & sweeps & residual & MB & age \\
\hline
richardson & delay:2 & 16 & 12.346 & 12.25 & 12.125 & 45.7 \% & 321.0 & $9.87 \cdot 10^{-7}$ & 12.3 & 0.13 \\
my\_method & sync & 64 & $3 \cdot 10^{10}$ & -- & -- & -- & 0.0 & -- & 0.0 & -- \\
\$or & async & 4 & -- & -- & -- & -- & -- & -- & -- & -- \\
\hline
\end{tabular}
`, b.String())
}

func TestLatexEscapesText(t *testing.T) {
	for text, want := range map[string]string{
		`a_b&c%d#e`: `a\_b\&c\%d\#e`,
		`{x}\y`:     `\{x\}\textbackslash{}y`,
		"~^":        `\textasciitilde{}\textasciicircum{}`,
		"a\n b\tc":  "a b c",
		"$5":        `\$5`,
		"–":         "--",
		"κ":         "κ",
	} {
		require.Equal(t, want, escapeLatex(text))
	}
}

func TestLatexNumbers(t *testing.T) {
	for want, v := range map[string]float64{
		"$1.00 \\cdot 10^{-6}$": 1e-6, "$1.50 \\cdot 10^{0}$": 1.5, "$-2.00 \\cdot 10^{100}$": -2e100, "–": math.NaN(),
	} {
		require.Equal(t, want, LatexNumber(nullable.Number(v), "%.2e"))
	}
}
