package doctest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/trace"
)

var numeral = regexp.MustCompile(`\d+(?:\.\d+)?(?:e[-+]?\d+)?`)

// compareNumbers requires that every number in the cells of a table is one that was printed, rounded to its digits. The
// first row and the first column are names.
func compareNumbers(t *testing.T, b *block, printed string) {
	var values []float64
	for _, n := range numeral.FindAllString(printed, -1) {
		v, err := strconv.ParseFloat(n, 64)
		require.NoError(t, err)
		values = append(values, v)
	}
	for _, row := range cells(b.text)[1:] {
		for _, cell := range row[1:] {
			for _, n := range numeral.FindAllString(cell, -1) {
				v, err := strconv.ParseFloat(n, 64)
				require.NoError(t, err)
				digits := len(strings.TrimLeft(strings.ReplaceAll(strings.Split(n, "e")[0], ".", ""), "0"))
				require.True(t, slices.ContainsFunc(values, func(p float64) bool { return rounds(p, v, digits) }),
					"%v: %s is not printed:\n%s", b, n, printed)
			}
		}
	}
}

// rounds reports whether a printed value, itself rounded, is v with some digits.
func rounds(printed, v float64, digits int) bool {
	if v == 0 {
		return printed == 0
	}
	unit := math.Pow10(int(math.Floor(math.Log10(v))) + 1 - digits)
	return math.Abs(printed-v) <= 0.501*unit
}

func TestRounds(t *testing.T) {
	require.True(t, rounds(3.7975e-3, 3.797e-3, 4))
	require.True(t, rounds(0.014588, 1.459e-2, 4))
	require.False(t, rounds(3.7985e-3, 3.797e-3, 4))
	require.True(t, rounds(0, 0, 0))
}

// cells returns the cells of a table, without the line of dashes.
func cells(text string) (out [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "|--") {
			continue
		}
		var row []string
		for _, c := range strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "|"), "|") {
			row = append(row, strings.ReplaceAll(strings.TrimSpace(c), "\x00", "|"))
		}
		out = append(out, row)
	}
	return out
}

// table returns the table of a page whose first line begins with head, without that line.
func table(t *testing.T, page, head string) [][]string {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	require.NoError(t, err)
	for _, m := range rows.FindAllString(string(text), -1) {
		if strings.HasPrefix(m, head) {
			return cells(m)[1:]
		}
	}
	require.Fail(t, page+": no table begins with "+head)
	return nil
}

// The eight columns of Table I, as docs/specification.md has them.
func TestTableOfTheSpecification(t *testing.T) {
	var want, got [][]string
	for _, name := range p2psap.TableRows() {
		row := []string{name}
		for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
			for _, intra := range []bool{true, false} {
				for _, ib := range []bool{true, false} {
					mark := ""
					if slices.Contains(p2psap.TableProtocols(p2psap.Column{Mode: mode, Intra: intra, InfiniBand: ib}), name) {
						mark = "x"
					}
					row = append(row, mark)
				}
			}
		}
		want = append(want, row)
	}
	for _, row := range table(t, "docs/specification.md", "| micro-protocol | sync intra IB") {
		row[0], _, _ = strings.Cut(row[0], ":")
		got = append(got, row)
	}
	require.Equal(t, want, got)
}

// The built-in problems, their dimensions and the defaults of their parameters.
func TestTableOfProblems(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range table(t, "docs/problems.md", "| name | dimension | parameters") {
		dimensions := strings.Split(row[1], ", ")
		for i, name := range strings.Split(row[0], ", ") {
			name = strings.Trim(name, "`")
			listed[name] = true
			b, err := problems.Lookup(name)
			require.NoError(t, err)
			require.Equal(t, dimensions[min(i, len(dimensions)-1)], fmt.Sprint(b.Dimension), name)
			for _, m := range regexp.MustCompile("`(\\w+)` ([0-9.]+)").FindAllStringSubmatch(row[2], -1) {
				v, err := strconv.ParseFloat(m[2], 64)
				require.NoError(t, err)
				at := slices.IndexFunc(b.Parameters, func(p problems.Parameter) bool { return p.Name == m[1] })
				if at < 0 && strings.Contains(row[2], "(2-D)") && b.Dimension == 1 {
					continue
				}
				require.GreaterOrEqual(t, at, 0, "%s: no parameter %s", name, m[1])
				require.Equal(t, v, b.Parameters[at].Value, "%s: %s", name, m[1])
			}
			if !strings.Contains(row[2], "those") {
				for _, p := range b.Parameters {
					require.Contains(t, row[2], "`"+p.Name+"`", name)
				}
			}
		}
	}
	for _, b := range problems.All() {
		require.True(t, listed[b.Name], "%s is not in the table of docs/problems.md", b.Name)
	}
}

// The bytes that each micro-protocol adds to the header of a segment.
func TestTableOfHeaders(t *testing.T) {
	want, got := map[string][]int{}, map[string][]int{}
	name := ""
	for _, row := range table(t, "docs/wire.md", "| micro-protocol | bytes | field |") {
		if row[1] == "" || strings.Contains(row[2], "over kernel TCP") {
			continue // none, or of another column
		}
		if row[0] != "" {
			name, _, _ = strings.Cut(row[0], " ")
		}
		for _, n := range strings.Split(row[1], ", ") {
			v, err := strconv.Atoi(n)
			require.NoError(t, err)
			got[name] = append(got[name], v)
		}
	}
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		names := p2psap.TableProtocols(p2psap.Column{Mode: mode})
		if mode == microproto.ModeSynchronous {
			names = append(names, "NegativeAck")
		}
		mps, err := ctp.Catalog().Build(names, nil)
		require.NoError(t, err)
		c, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: 1400}, mps...)
		require.NoError(t, err)
		bytes := map[string][]int{}
		for _, r := range c.Layout() {
			bytes[r.Protocol] = append(bytes[r.Protocol], r.Length)
		}
		for name, sizes := range bytes {
			want[name] = sizes
		}
	}
	require.Equal(t, want, got)
}

// The records of a trace.
func TestTableOfRecords(t *testing.T) {
	got := map[string]bool{}
	for _, row := range table(t, "docs/traces.md", "| record | |") {
		for _, name := range strings.Split(row[0], ", ") {
			got[strings.Trim(name, "`")] = true
		}
	}
	want := map[string]bool{}
	for k := trace.Send; k.String() != trace.Kind(255).String(); k++ {
		want[k.String()] = true
	}
	require.Equal(t, want, got)
}
