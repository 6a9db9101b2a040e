package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
)

// Latex writes a table as a LaTeX tabular, which needs no package. The first two columns hold names, the others numbers.
// about describes the table in a comment. All text is escaped, but for
// numbers that LatexNumber returned.
func Latex(w io.Writer, about string, header []string, rows [][]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%% %s\n", spelling.Visible(strings.Join(strings.Fields(about), " ")))
	fmt.Fprintf(&b, "\\begin{tabular}{ll%s}\n\\hline\n", strings.Repeat("r", len(header)-2))
	for i, row := range append([][]string{header}, rows...) {
		for column, cell := range row {
			if column > 0 {
				b.WriteString(" & ")
			}
			if column < 2 || !strings.HasPrefix(cell, "$") {
				cell = escapeLatex(cell)
			}
			b.WriteString(cell)
		}
		b.WriteString(" \\\\\n")
		if i == 0 {
			b.WriteString("\\hline\n")
		}
	}
	b.WriteString("\\hline\n\\end{tabular}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// escapeLatex returns text that LaTeX typesets as it stands. At the begin of a row, [ and * would belong to the \\ before.
func escapeLatex(text string) string {
	return strings.NewReplacer(`\`, `\textbackslash{}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`,
		"&", `\&`, "%", `\%`, "#", `\#`, "$", `\$`, "_", `\_`, "{", `\{`, "}", `\}`, "[", "{[}", "*", "{*}",
		"<", `\textless{}`, ">", `\textgreater{}`, "|", `\textbar{}`, "--", "-{}-", "–", "--",
	).Replace(spelling.Visible(strings.Join(strings.Fields(text), " ")))
}

// LatexNumber returns a number with its power of ten as a formula; "–" if it is unknown.
func LatexNumber(v nullable.Number, format string) string {
	mantissa, exponent, ok := strings.Cut(v.Text(format, "–"), "e")
	if !ok {
		return mantissa
	}
	power, err := strconv.Atoi(exponent)
	if err != nil {
		return mantissa
	}
	return fmt.Sprintf("$%s \\cdot 10^{%d}$", mantissa, power)
}

// Latex writes the rows as a LaTeX table, on a stand-in with the bounds of the comparable time.
func (c *SimulatedComparison) Latex(w io.Writer) error {
	header := []string{"method", "scheme", "machines", "seconds", "met", "comparable", "efficiency", "sweeps", "residual", "MB",
		"age"}
	const comparable = 5
	if c.StandIn > 1 {
		header = slices.Insert(header, comparable+1, "at least", "at most")
	}
	var rows [][]string
	for i := range c.Rows {
		r := &c.Rows[i]
		row := []string{r.Method, r.Scheme, fmt.Sprint(r.Machines)}
		if r.Reason == ReasonRefused {
			row = append(row, slices.Repeat([]string{"–"}, len(header)-len(row))...)
		} else {
			row = append(row,
				LatexNumber(nullable.Number(r.Seconds), "%.5g"), LatexNumber(r.Met, "%.5g"), LatexNumber(r.Comparable, "%.5g"),
				LatexNumber(100*r.Efficiency, "%.1f %%"), fmt.Sprintf("%.1f", r.Equivalent), LatexNumber(r.Residual, "%.2e"),
				fmt.Sprintf("%.1f", float64(r.Bytes)/1e6), LatexNumber(r.MeanAge, "%.2f"))
			if c.StandIn > 1 {
				row = slices.Insert(row, comparable+1, LatexNumber(r.ComparableLow, "%.4g"), LatexNumber(r.ComparableHigh, "%.4g"))
			}
		}
		rows = append(rows, row)
	}
	return Latex(w, fmt.Sprintf("%s, %s points%s, order %s, tolerance %g, on model %s, seed %d", c.Problem, grid(c.N),
		c.standIn(), c.Order, c.Tolerance, c.Model, c.Seed),
		header, rows)
}
