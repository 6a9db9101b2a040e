package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// call runs the program in this process.
func call(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(context.Background(), args, catalog.New(), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// commands returns the whole tree of commands.
func commands(t *testing.T) []*cobra.Command {
	t.Helper()
	root := (&app{catalog: catalog.New()}).root()
	helpArgs(root, nil)
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	require.Greater(t, len(all), 15)
	return all
}

// --help shows the help of a command in every position: after a flag that expects a value, after all flags, after
// arguments and after errors. Its example is valid.
func TestHelpAfterAnything(t *testing.T) {
	for _, c := range commands(t) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			path := strings.Fields(c.CommandPath())[1:]
			_, help, _ := call(append(slices.Clone(path), "--help")...)
			if c.Name() != "help" { // it shows the help of its argument
				require.Contains(t, help, "Usage:\n  "+c.CommandPath())
				require.Contains(t, help, c.Example)
			}
			shows := func(args ...string) {
				t.Helper()
				code, out, errs := call(append(slices.Clone(path), args...)...)
				require.Zero(t, code, "%q: %s", args, errs)
				require.Equal(t, help, out, "%q", args)
				require.Empty(t, errs, "%q", args)
			}
			shows("-h")
			var all []string
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Name == helpAll {
					return
				}
				all = append(all, "--"+f.Name)
				if testing.Short() && len(all)%4 != 0 {
					return
				}
				shows("--"+f.Name, "--help")
				shows("--"+f.Name, "value", "-h")
				shows("--"+f.Name+"=value", "--help")
				shows("--help", "--"+f.Name)
			})
			shows(append(all, "--help")...)
			shows("--no-such-flag", "--help")
			if c.HasParent() && !c.HasSubCommands() && c.Name() != "help" {
				shows("argument", "another", "--help")
			}
			if c.HasParent() {
				code, out, _ := call(append([]string{"help"}, path...)...)
				require.Zero(t, code)
				require.Contains(t, out, "Usage:\n  obstacle")
			}
			examples(t, c)
		})
	}
}

// examples requires that the example of a command calls it with valid flags and arguments.
func examples(t *testing.T, c *cobra.Command) {
	t.Helper()
	require.NotEmpty(t, c.Example)
	named := false
	for line := range strings.Lines(c.Example) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "obstacle" {
			continue
		}
		root := (&app{catalog: catalog.New()}).root()
		helpArgs(root, nil)
		found, rest, err := root.Find(words[1:])
		require.NoError(t, err, line)
		require.NoError(t, found.ParseFlags(rest), line)
		require.NoError(t, found.ValidateArgs(found.Flags().Args()), line)
		named = named || strings.HasPrefix(found.CommandPath(), c.CommandPath())
	}
	require.True(t, named, "no example of %s:\n%s", c.CommandPath(), c.Example)
}

// A command that does not exist has no help, and --help after -- is an argument.
func TestNoHelp(t *testing.T) {
	for _, args := range [][]string{{"slove", "--help"}, {"--log-level", "info", "slove", "-h"}, {"help", "slove"}} {
		code, out, errs := call(args...)
		require.Equal(t, ExitUsage, code, args)
		require.Empty(t, out, args)
		require.Contains(t, errs, `no command "slove" (did you mean "solve"?)`, args)
	}
	code, _, errs := call("check", "--", "--help")
	require.Equal(t, ExitUsage, code)
	require.NotContains(t, errs, "Usage")
}
