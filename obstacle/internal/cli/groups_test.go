package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// --help of solve explains about ten flags of its own and names all others; --help-all explains every flag.
func TestFewFlagsAreExplained(t *testing.T) {
	_, help, _ := call("solve", "--help")
	_, all, _ := call("solve", "--help-all")
	own, _, _ := strings.Cut(help, "\nGlobal flags:")
	require.Equal(t, 12, strings.Count(own, "\n      --")+strings.Count(own, "\n  -h, --help"), "with --help and --help-all:\n%s", own)
	solve, _, err := (&app{catalog: catalog.New()}).root().Find([]string{"solve"})
	require.NoError(t, err)
	solve.LocalFlags().VisitAll(func(f *pflag.Flag) {
		require.Contains(t, help, "--"+f.Name)
		require.Regexp(t, `\n  (    |-h, )--`+f.Name+" ", all)
	})
	for line := range strings.Lines(help + all) {
		require.LessOrEqual(t, len([]rune(line)), helpWidth+10, line)
	}
}

// Every flag of a group is a flag of some command.
func TestGroupsNameFlags(t *testing.T) {
	for _, g := range groups() {
		for _, name := range g.flags {
			known := false
			for _, c := range commands(t) {
				known = known || c.Flags().Lookup(name) != nil
			}
			require.True(t, known, "%s: %s", g.title, name)
		}
	}
}

// The former names of flags work and are not listed.
func TestFormerNames(t *testing.T) {
	_, all, _ := call("compare", "--help-all")
	for old, name := range map[string]string{
		"together": "sweeps-per-pass", "late": "no-overlap", "work": "inner-cycles", "slow": "slowdown", "reconfigure": "step-mode",
	} {
		c, _, err := (&app{catalog: catalog.New()}).root().Find([]string{"compare"})
		require.NoError(t, err)
		if old == "late" {
			require.NoError(t, c.ParseFlags([]string{"--late"}))
		} else {
			require.NoError(t, c.ParseFlags([]string{"--" + old, "1"}))
		}
		require.True(t, c.Flags().Changed(name), old)
		require.NotContains(t, all, "--"+old+" ")
	}
	code, _, errs := call("solve", "membrane", "--n", "8", "--method", "richardson", "--in-process", "--slow", "0:1", "--together", "1", "--reconfigure", "never")
	require.Equal(t, ExitSolved, code, errs)
	code, _, errs = call("solve", "membrane", "--n", "8", "--peers", "1", "--slow", "1:2")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, `--slowdown "1:2": the peers of this run are 0 to 0`)
}
