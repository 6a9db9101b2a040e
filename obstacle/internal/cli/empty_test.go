package cli

import (
	"os"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// A file or an address that is given as an empty text, as by a variable of the shell that is not set, is refused.
func TestEmptyTextsAreRefused(t *testing.T) {
	checked := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if slices.Contains(needsText, f.Name) && f.Value.Type() == "string" {
				code, out, errs := call(append(pathOf(c), "--"+f.Name+"=")...)
				require.Equal(t, ExitUsage, code, "%s --%s", c.CommandPath(), f.Name)
				require.Empty(t, out)
				require.Contains(t, errs, "--"+f.Name+" is empty", c.CommandPath())
				checked[f.Name] = true
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{catalog: catalog.New()}).root())
	for _, name := range needsText {
		require.True(t, checked[name], "no command has --%s", name)
	}
	for _, command := range []string{"solve", "explain", "check", "resume", "init", "secret", "simulate", "attach"} {
		code, _, errs := call(command, "")
		require.Equal(t, ExitUsage, code, command)
		require.Contains(t, errs, "an argument of obstacle "+command+" is empty")
	}
	code, out, _ := call("__complete", "solve", "")
	require.Zero(t, code)
	require.Contains(t, out, "membrane", "the shell completes an empty word")
}

// pathOf returns the arguments that make the program run a command.
func pathOf(c *cobra.Command) []string {
	args := []string{}
	for ; c.HasParent(); c = c.Parent() {
		args = append([]string{c.Name()}, args...)
	}
	return append(args, map[string][]string{
		"solve": {"membrane"}, "simulate": {"membrane"}, "compare": {"membrane"}, "convergence": {"membrane"}, "explain": {"membrane"},
		"resume": {"checkpoint"}, "attach": {"127.0.0.1:1"}, "iterate": {"example"},
	}[args[len(args)-1]]...)
}

// Addresses with a port that does not exist, and names that begin with a dash, are mistakes of the input.
func TestAddressesAndDashes(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("-x.yaml", nil, 0o600))
	require.NoError(t, os.WriteFile("secret", []byte("correct horse"), 0o600))
	require.NoError(t, os.Mkdir("dir", 0o700))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"there is no port 99999; want a number up to 65535", []string{"stack", "--live", "127.0.0.1:99999"}},
		{"there is no port abc", []string{"peer", "--rendezvous", "127.0.0.1:abc", "--secret-file", "secret"}},
		{"there is no port -1", []string{"attach", "127.0.0.1:-1", "--secret-file", "secret"}},
		{"there is no port 99999", []string{"doctor", "--peer", "127.0.0.1:99999"}},
		{"there is no port 65536", []string{"solve", "membrane", "--rendezvous", "127.0.0.1:65536", "--secret-file", "secret"}},
		{"want HOST:PORT", []string{"peer", "--rendezvous", "127.0.0.1:1 127.0.0.1:2", "--secret-file", "secret"}},
		{"the file of this name is ./-x.yaml", []string{"solve", "-x.yaml"}},
		{"--trace dir/ names a directory", []string{"solve", "ball2d", "--n", "7", "--trace", "dir/"}},
		{"there is no directory nowhere", []string{"secret", "nowhere/s"}},
	} {
		code, out, errs := call(c.args...)
		require.Equal(t, ExitUsage, code, "%q: %s", c.args, errs)
		require.Empty(t, out)
		require.Contains(t, errs, c.want, "%q", c.args)
	}
}
