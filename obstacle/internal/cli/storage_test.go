package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// otherTexts are the flags with a text that names no file.
var otherTexts = strings.Fields(`balance coarse color congestion cut cycle engine format from http http-token ib-completion
	ib-device ib-gid ib-mode inner-cycles join kill kind leave listen live local locality log-format log-level lose method methods
	metrics n network order param partition peer pin port-range probe protect recover remote-program rendezvous rows scheme slowdown
	ssh status step-mode`)

// Every flag and every argument that names a file is known as one.
func TestFilesOfTheCommandLineAreKnown(t *testing.T) {
	flags, arguments := fileFlags(), fileArguments()
	seen := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			seen[f.Name] = true
			if text := strings.HasPrefix(f.Value.Type(), "string"); text && !slices.Contains(otherTexts, f.Name) {
				require.NotZero(t, flags[f.Name], "--%s of %s", f.Name, c.Name())
			}
		})
		for _, what := range []string{"FILE", "DIR", "PROBLEM"} {
			if strings.Contains(c.Use, what) {
				require.NotZero(t, arguments[c.Name()], c.Use)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{catalog: catalog.New()}).root())
	for name := range flags {
		require.True(t, seen[name], name)
	}
}

// An output is never called -, in any command.
func TestNoOutputIsCalledDash(t *testing.T) {
	for _, line := range []string{
		"compare membrane --latex -", "compare membrane --model graphene-eth --csv -", "solve membrane --out u.vti --out -", "secret -",
		"init -", "solve membrane --report -", "solve membrane --checkpoint -", "solve membrane --trace -", "calibrate --out -",
		"trace export t.0 --out -", "man --dir -", "resume -", "explain membrane --out -",
	} {
		var out, errs bytes.Buffer
		require.Equal(t, ExitUsage, Main(t.Context(), strings.Fields(line), catalog.New(), &out, &out, &errs), line)
		require.Contains(t, errs.String(), "outputs do not go to standard output by name", line)
		require.NoFileExists(t, "-")
	}
}

// The program says what it waits for, and waits no longer than the limit or until a signal.
func TestStorageThatDoesNotAnswer(t *testing.T) {
	const limit = 10 * time.Second
	for name, c := range map[string]struct {
		after, stop time.Duration // until storage answers, until the signal
		ends        time.Duration
		code        int
		err         string
	}{
		"at once":     {0, time.Hour, 0, 0, ""},
		"slow":        {9 * time.Second, time.Hour, 9 * time.Second, 0, ""},
		"for ever":    {time.Hour, 2 * time.Hour, limit, ExitFailed, "--out f: its file system has not answered for 10s: check that it is not frozen"},
		"interrupted": {time.Hour, 3 * time.Second, 3 * time.Second, ExitStopped, "interrupted while it waited for the file system of --out f; nothing was run"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			a := &app{above: &above{w: &said}, log: zerolog.Nop().Level(zerolog.WarnLevel)}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(c.stop, cancel)
			begin := time.Now()
			err := a.answers(ctx, "--out f", limit, "", func() error { time.Sleep(c.after); return nil })
			require.Equal(t, c.ends, time.Since(begin), name)
			require.Equal(t, c.ends > 2*quietTime, strings.Contains(said.String(), "waiting for --out f: its file system does not answer"), name)
			if c.err == "" {
				require.NoError(t, err, name)
			} else {
				require.ErrorContains(t, err, c.err, name)
				require.Equal(t, c.code, exitCode(err), name)
			}
			time.Sleep(3 * time.Hour) // no goroutine is left
		})
	}
}

// The host list of a batch system is a file like one that the command line names.
func TestHostListOfTheBatchSystemIsNamed(t *testing.T) {
	for _, v := range []string{"OAR_NODEFILE", "PE_HOSTFILE", "SLURM_JOB_NODELIST", "PBS_NODEFILE"} {
		t.Setenv(v, "")
	}
	named := func(line string) []namedFile {
		c, args, err := (&app{catalog: catalog.New()}).root().Find(strings.Fields(line))
		require.NoError(t, err)
		require.NoError(t, c.ParseFlags(args))
		return namedFiles(c, nil)
	}
	require.Empty(t, named("solve --hosts auto"))
	t.Setenv("PBS_NODEFILE", "/spool/nodes")
	require.Equal(t, []namedFile{{"hosts", "/spool/nodes", reads}}, named("solve --hosts auto"))
	require.Equal(t, []namedFile{{"hosts", "mine", reads}}, named("solve --hosts mine"))
}
