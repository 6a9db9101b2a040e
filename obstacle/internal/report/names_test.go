package report

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawName draws the name of a file, a method or a scheme, with what LaTeX, CSV and spreadsheets treat in a way of their own.
func drawName(t *rapid.T, label string) string {
	special := rapid.SampledFrom([]string{
		"%", "&", "_", "#", `\`, "{", "}", "[", "]", "*", "$", "^", "~", "<", ">", "|", `"`, "'", ",", ";", "\n", "\r\n", "\t", "\x1b",
		"=", "+", "-", "--", "@", "–", "a", "é", "\xff", `\\`, `\end{tabular}`, "%%", "^^M",
	})
	return strings.Join(rapid.SliceOfN(special, 0, 6).Draw(t, label), "")
}

func drawTable(t *rapid.T) *SimulatedComparison {
	c := &SimulatedComparison{Subject: Subject{Problem: drawName(t, "problem"), N: []int{3}, Model: drawName(t, "model")}}
	for range rapid.IntRange(1, 3).Draw(t, "rows") {
		c.Rows = append(c.Rows, SimulatedRow{Method: drawName(t, "method"), Simulated: Simulated{
			Scheme: drawName(t, "scheme"), Machines: 2, Failure: drawName(t, "failure"),
		}})
	}
	return c
}

// texCells reads a row of a tabular up to \\ as TeX does, and returns the number of its cells. It fails on what TeX refuses or
// drops in text: an unbalanced brace, an active character outside formulas, a comment.
func texCells(t *rapid.T, row string) (cells int) {
	depth, formula := 0, false
	row, ended := strings.CutSuffix(row, ` \\`)
	require.True(t, ended, row)
	require.False(t, strings.HasPrefix(row, "[") || strings.HasPrefix(row, "*"), `it would belong to the \\ before: %s`, row)
	cells = 1
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			name := 1
			for i+name < len(row) && (row[i+name] >= 'a' && row[i+name] <= 'z') {
				name++
			}
			if name > 1 {
				require.Contains(t, []string{
					`\textbackslash`, `\textasciitilde`, `\textasciicircum`, `\textless`, `\textgreater`, `\textbar`, `\cdot`,
				}, row[i:i+name])
				i += name - 1
				continue
			}
			i++
			require.Less(t, i, len(row), row)
			require.Contains(t, `&%#$_{}`, string(row[i]), row)
		case '{':
			depth++
		case '}':
			depth--
			require.GreaterOrEqual(t, depth, 0, row)
		case '$':
			formula = !formula
		case '&':
			require.False(t, formula || depth > 0, row)
			cells++
		case '^':
			require.True(t, formula, row)
		case '%', '#', '_', '~', '<', '>', '|', '\n', '\r', '\t', 0x1b, 0xff:
			require.Fail(t, "a character that LaTeX does not typeset", "%q", row)
		}
	}
	require.False(t, formula || depth != 0, row)
	return cells
}

// A table with any names is one that LaTeX typesets, without TeX as a witness.
func TestLatexOfAnyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawTable(t)
		var out strings.Builder
		require.NoError(t, c.Latex(&out))
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		require.Len(t, lines, 7+len(c.Rows))
		require.True(t, strings.HasPrefix(lines[0], "% "))
		require.NotContains(t, lines[0], "\x1b")
		for _, row := range lines[5 : 5+len(c.Rows)] {
			require.Equal(t, 11, texCells(t, row))
		}
	})
}

// A table with any names is read back as it was, and a spreadsheet computes none of its cells.
func TestCSVOfAnyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawTable(t)
		if rapid.Bool().Draw(t, "refused") {
			c.Rows[0].Reason = ReasonRefused
		}
		var out strings.Builder
		require.NoError(t, c.CSV(&out))
		lines, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		require.NoError(t, err)
		require.Len(t, lines, 1+len(c.Rows))
		for i, line := range lines[1:] {
			for column, want := range map[int]string{
				0: c.Model, 1: c.Problem, 4: c.Rows[i].Method, 5: c.Rows[i].Scheme, 13: c.Rows[i].Failure,
			} {
				cell := line[column]
				if want == "" {
					continue // the reason stands for a failure
				}
				require.False(t, strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "+") || strings.HasPrefix(cell, "-") ||
					strings.HasPrefix(cell, "@") || strings.HasPrefix(cell, "\t"), "%q", cell)
				if strings.HasPrefix(cell, "'") && !strings.HasPrefix(want, "'") {
					cell = cell[1:]
				}
				require.Equal(t, strings.ReplaceAll(want, "\r\n", "\n"), strings.ReplaceAll(cell, "\r\n", "\n"))
			}
		}
	})
}
