//go:build linux

package cli

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// Every integer flag of every command accepts its bound where it is read, and refuses the next number, 2⁶³ − 1 and −1 with a
// sentence that names it.
func TestBoundsOfEveryIntegerFlag(t *testing.T) {
	page, err := filepath.Abs(filepath.Join("..", "..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("secret", []byte("correct horse"), 0o600))
	say(t, ExitStopped, "solve", "membrane", "--n", "8", "--in-process", "--max-sweeps", "1", "--checkpoint", "checkpoint")
	checked := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			kind := f.Value.Type()
			if !slices.Contains([]string{"int", "int64", "intSlice", "uint64", "uint", "int32", "uint32", "count"}, kind) {
				return
			}
			wrong := []string{"-1", "9223372036854775808"}
			bound := strconv.FormatInt(mostOf(f.Name), 10)
			if kind == "uint64" {
				wrong, bound = []string{"-1", "18446744073709551616"}, "18446744073709551615"
			} else {
				wrong = append(wrong, "9223372036854775807", strconv.FormatInt(mostOf(f.Name)+1, 10))
			}
			was := f.Value.String()
			require.NoError(t, c.Flags().Set(f.Name, bound), "%s --%s", c.CommandPath(), f.Name)
			require.NoError(t, checkNumbers(c.Flags()), "%s --%s", c.CommandPath(), f.Name)
			if kind != "intSlice" { // which Set would append to
				require.NoError(t, f.Value.Set(was))
			}
			f.Changed = false
			for _, number := range wrong {
				if f.Name == "seat" && number == "-1" {
					continue // any
				}
				ending, known := endings[c.Name()]
				if more := map[string][]string{
					"attach": {"--secret-file", "secret"}, "peer": {"--secret-file", "secret"}, "init": {"new.yaml"},
					"simulate": {"--model", "graphene-eth"}, "resume": {"--checkpoint", "other" + f.Name + number},
				}[c.Name()]; more != nil {
					ending, known = append(slices.Clone(ending), more...), true
				}
				require.True(t, known, "%s --%s: say how to reach it", c.CommandPath(), f.Name)
				args := slices.Concat([]string{c.Name()}, ending, []string{"--" + f.Name + "=" + number})
				code, out, errs := call(args...)
				if code != ExitUsage {
					t.Errorf("%q: exit code %d: %s %.300s", args, code, errs, out)
					continue
				}

				if c.Name() != "iterate" { // this program has no iteration
					if !strings.Contains(out+errs, "--"+f.Name) {
						t.Errorf("%q: %s", args, errs)
					}
				}
				checked[f.Name] = true
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{catalog: catalog.New()}).root())
	require.Greater(t, len(checked), 25)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "at\n65,536, `--enclose-sweeps` at 10⁶, `--max-sweeps` and `--seed`, which are compared and copied only, at 2⁶⁴ − 1")
	for flag, most := range map[string]int64{"seat": 65536, "keepers": 65536, "enclose-sweeps": 1e6, "mtu": math.MaxInt32} {
		require.Equal(t, most, mostOf(flag), "docs/cli.md states it")
	}
}
