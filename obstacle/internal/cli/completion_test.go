package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// completed returns what a shell offers for the last word, and the directive.
func completed(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	code, out, errs := call(append([]string{"__complete"}, args...)...)
	require.Zero(t, code, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, l := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(l, "\t")
		words = append(words, word)
	}
	return words, lines[len(lines)-1]
}

func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"mine.yaml", "other.txt", "odd[1].yaml", "u.npy"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	require.NoError(t, os.Mkdir("dir", 0o700))
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"solve", "mem"}, []string{"membrane"}},
		{[]string{"explain", "m"}, []string{"membrane", "mine.yaml"}},
		{[]string{"solve", "d"}, []string{"dam", "dam3d", "dir/"}},
		{[]string{"check", "od"}, []string{"odd[1].yaml"}},
		{[]string{"check", "odd["}, []string{"odd[1].yaml"}},
		{[]string{"check", ""}, []string{"dir/", "mine.yaml", "odd[1].yaml"}},
		{[]string{"check", "mine.yaml", ""}, nil},
		{[]string{"solve", "membrane", "--method", "s"}, []string{"sor", "schwarz"}},
		{[]string{"solve", "membrane", "--scheme", ""}, []string{"sync", "async", "delay:1", "hybrid"}},
		{[]string{"calibrate", "--scheme", ""}, []string{"sync", "async"}},
		{[]string{"compare", "membrane", "--methods", "sor,"}, []string{"sor,richardson", "sor,multigrid", "sor,schwarz", "sor,fas"}},
		{[]string{"compare", "membrane", "--scheme", "sync,a"}, []string{"sync,async"}},
		{[]string{"simulate", "membrane", "--model", "graphene"}, []string{"graphene-eth", "graphene-ib"}},
		{[]string{"solve", "membrane", "--network", "e"}, []string{"ether"}},
		{[]string{"solve", "membrane", "--partition", ""}, []string{"auto", "slabs", "boxes"}},
		{[]string{"solve", "membrane", "--initial", ""}, []string{"dir/", "u.npy"}},
		{[]string{"solve", "membrane", "--recover", "e"}, []string{"exact"}},
		{[]string{"solve", "membrane", "--rows", ""}, []string{"NegativeAck"}},
		{[]string{"solve", "membrane", "--congestion", ""}, []string{"newreno", "cubic"}},
		{[]string{"problems", "--format", ""}, []string{"text", "json"}},
		{[]string{"stack", "--locality", ""}, []string{"intra", "inter"}},
		{[]string{"init", "x.yaml", "--from", "tors"}, []string{"torsion", "torsion1d"}},
		{[]string{"doctor", ""}, nil},
		{[]string{"expl"}, []string{"explain"}},
	} {
		got, directive := completed(t, c.args...)
		require.Equal(t, c.want, got, c.args)
		if len(c.args) > 2 && c.args[len(c.args)-2] != "--initial" {
			require.Equal(t, ":4", directive, c.args) // no other files
		}
	}
}

// A problem that a program adds is completed, too.
func TestCompletionOfCatalog(t *testing.T) {
	c := catalog.New()
	require.NoError(t, c.Problems.Add(problems.Builtin{Name: "dome", Dimension: 2},
		func(*problem.Problem, []float64) error { return nil }))
	a := &app{catalog: c}
	words, _ := one(a.problemNames)(nil, nil, "dom")
	require.Equal(t, []string{"dome"}, words)
}

// Every flag with words has a completion in every command, and scripts exist for four shells.
func TestCompletionOfEveryWord(t *testing.T) {
	checked := 0
	for _, c := range commands(t) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			words := wordsOf(f.Name)
			if c.Name() == "export" && f.Name == "format" {
				words = formatNames()
			}
			if words != nil && c.HasParent() && f.Value.Type() != "bool" {
				got, _ := completed(t, append(strings.Fields(c.CommandPath())[1:], "--"+f.Name, "")...)
				require.Equal(t, words, got, "%s --%s", c.CommandPath(), f.Name)
				checked++
			}
		})
	}
	require.Greater(t, checked, 20)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, errs := call("completion", shell)
		require.Zero(t, code, errs)
		require.Contains(t, out, "__complete")
	}
}
