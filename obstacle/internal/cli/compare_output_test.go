package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Real and simulated comparisons write their table in LaTeX, by --latex with any name and by --out with the extension.
func TestCompareWritesLatex(t *testing.T) {
	for name, flags := range map[string]string{
		"real":      "--n 8 --in-process --peers 1,2 --rounds 1 --scheme sync",
		"simulated": "--n 16 --model graphene-eth --machines 1,2 --scheme sync",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, second := filepath.Join(dir, "table"), filepath.Join(dir, "table.TEX")
			args := append([]string{"compare", "membrane", "--latex", first, "--out", second}, strings.Fields(flags)...)
			code, out, errs := call(args...)
			require.Zero(t, code, errs)
			require.Contains(t, out, second)
			text, err := os.ReadFile(first)
			require.NoError(t, err)
			require.Regexp(t, `(?s)^% membrane, .*\\begin\{tabular\}\{ll(r+)\}.*\\end\{tabular\}\n$`, string(text))
			require.Regexp(t, `(?m)^richardson & sync & 2 &( [^&\n]+ &){7} [^&\n]+ \\\\$`, string(text))
			again, err := os.ReadFile(second)
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
		})
	}
}

func TestFilesOfAComparisonAreChecked(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none", "table.tex")
	for _, c := range []struct{ flags, want string }{
		{"--out a.csv", "a table is .tex"},
		{"--model graphene-eth --out a.vti", "a table is .csv or .tex"},
		{"--latex a.tex --out a.tex", "a.tex is given twice"},
		{"--latex " + missing, "there is no directory"},
		{"--csv a.csv", "--csv is for simulated runs"},
	} {
		code, _, errs := call(append([]string{"compare", "membrane", "--n", "8"}, strings.Fields(c.flags)...)...)
		require.Equal(t, ExitUsage, code, c.flags)
		require.Contains(t, errs, c.want)
	}
}
