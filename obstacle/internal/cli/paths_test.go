//go:build linux

package cli

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// What flags with a text name.
var (
	readFlags   = []string{"hosts", "http-token-file", "initial", "model", "of", "secret-file", "topology"}
	folderFlags = []string{"checkpoint", "dir", "meet"}
	writeFlags  = []string{"csv", "latex", "out", "report", "trace"}
	otherFlags  = []string{
		"balance", "coarse", "color", "congestion", "cycle", "engine", "format", "from", "http", "http-token", "ib-completion", "ib-device", "ib-gid",
		"ib-mode", "inner-cycles", "join", "kill", "kind", "leave", "lose", "cut", "listen", "live", "local", "locality", "log-format", "log-level", "method", "methods", "metrics", "n",
		"network", "order", "param", "partition", "peer", "pin", "port-range", "probe", "problem", "protect", "recover",
		"remote-program", "rendezvous", "rows", "run", "scheme", "slowdown", "ssh", "status", "step", "step-mode", "weights",
	}
)

// endings are the arguments that make a command reach a flag.
var endings = map[string][]string{
	"solve": {"membrane", "--n", "8"}, "simulate": {"membrane", "--n", "8"},
	"compare":     {"membrane", "--n", "8", "--in-process", "--peers", "2", "--rounds", "1"},
	"convergence": {"membrane"}, "explain": {"membrane", "--n", "8"}, "resume": {"checkpoint"}, "doctor": {}, "stack": {},
	"peer": {"--rendezvous", "127.0.0.1:1"}, "attach": {"127.0.0.1:1"}, "calibrate": {}, "iterate": {"example"},
}

// Every file that a flag, an argument or a variable names may be a device or a pipe that never ends, a folder, or
// missing: the program ends with exit code 2 and a sentence.
func TestEveryFileThatIsRead(t *testing.T) {
	t.Chdir(t.TempDir())
	badPaths(t)
	say(t, 3, "solve", "membrane", "--n", "8", "--in-process", "--max-sweeps", "1", "--checkpoint", "checkpoint")
	reached := map[string]bool{}
	everyTextFlag(t, func(c *cobra.Command, f *pflag.Flag) {
		secret := f.Name == "secret-file" || f.Name == "http-token-file"
		if !slices.Contains(readFlags, f.Name) || secret && c.Name() == "explain" || // which needs neither
			f.Name == "initial" && c.Name() == "resume" { // which refuses it
			return
		}
		ending, known := endings[c.Name()]
		require.True(t, known, "%s --%s: say how to reach it", c.CommandPath(), f.Name)
		if c.Name() == "compare" && f.Name == "model" {
			ending = endings["simulate"]
		}
		args := append([]string{c.Name()}, ending...)
		switch {
		case f.Name == "secret-file" && c.Flags().Lookup("rendezvous") != nil && c.Name() != "peer":
			args = append(args, "--rendezvous", "127.0.0.1:0", "--peers", "2")
		case f.Name == "http-token-file" && c.Name() != "stack" && c.Name() != "attach":
			args = append(args, "--http", "0")
		case f.Name == "http-token-file" && c.Name() == "stack":
			args = append(args, "--live", "127.0.0.1:1")
		case f.Name == "http-token-file":
			args = append(args, "--http", "0", "--secret-file", "secret")
		case f.Name == "topology" && c.Flags().Lookup("clusters") != nil:
			args = append(args, "--clusters", "0")
		}
		for _, name := range []string{"/dev/zero", "pipe", "folder", "missing"} {
			all := append(slices.Clone(args), "--"+f.Name, name)
			if c.Name() == "resume" {
				all = append(all, "--checkpoint", t.TempDir()) // each process locks one
			}
			refused(t, name, all...)
			reached[f.Name] = true
		}
	})
	require.Len(t, reached, len(readFlags))
	for _, name := range []string{"/dev/zero", "pipe", "folder", "missing"} {
		for _, args := range [][]string{
			{"solve", name}, {"explain", name}, {"compare", name}, {"simulate", name, "--model", "graphene-eth"}, {"convergence", name}, {"check", name},
			{"clusters", name}, {"trace", "stats", name}, {"trace", "export", name}, {"resume", name},
			{"solve", "membrane", "--checkpoint", strings.ReplaceAll(name, "missing", "pipe/missing")},
		} {
			if name == "folder" && args[1] == "membrane" {
				continue // as it should be
			}
			refused(t, name, args...)
		}
		for _, variable := range []string{"OAR_NODEFILE", "PBS_NODEFILE", "PE_HOSTFILE"} {
			t.Setenv(variable, name)
			refused(t, name, "solve", "membrane", "--hosts", "auto")
			require.NoError(t, os.Unsetenv(variable))
		}
	}
}

// badPaths makes a folder and a pipe that another process fills for ever.
func badPaths(t *testing.T) {
	t.Helper()
	require.NoError(t, os.Mkdir("folder", 0o700))
	require.NoError(t, os.WriteFile("secret", []byte("correct horse"), 0o600))
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	endless, err := os.OpenFile("pipe", os.O_RDWR, 0)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for err := error(nil); err == nil; {
			_, err = endless.Write(make([]byte, 1<<16))
		}
	}()
	t.Cleanup(func() { endless.Close(); <-ended })
}

// everyTextFlag calls do for every flag with a text of every command. It fails for a flag that the lists above lack.
func everyTextFlag(t *testing.T, do func(*cobra.Command, *pflag.Flag)) {
	t.Helper()
	known := slices.Concat(readFlags, folderFlags, writeFlags, otherFlags)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if slices.Contains([]string{"string", "stringArray", "stringSlice"}, f.Value.Type()) {
				require.Contains(t, known, f.Name, "%s --%s: say what it names", c.CommandPath(), f.Name)
				do(c, f)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{catalog: catalog.New()}).root())
}

// refused runs the program, which must end with exit code 2 and a sentence that names the file.
func refused(t *testing.T, name string, args ...string) {
	t.Helper()
	out, errs := say(t, ExitUsage, args...)
	require.Contains(t, out+errs, name, "%q", args)
	require.Less(t, len(errs), 1500, "%q", args)
}

// say runs the program, which must end with this code, and returns what it says.
func say(t *testing.T, code int, args ...string) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	require.Equal(t, code, Main(t.Context(), args, catalog.New(), strings.NewReader(""), &o, &e), "%q: %s", args, &e)
	return o.String(), e.String()
}
