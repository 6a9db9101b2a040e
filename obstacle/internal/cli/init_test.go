package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/problems/file"
)

// Every file that init writes solves as it is.
func TestInitWritesFilesThatSolve(t *testing.T) {
	var all [][]string
	for _, kind := range file.Kinds() {
		for _, d := range []string{"1", "2", "3"} {
			all = append(all, []string{"--kind", kind, "--dimension", d})
		}
	}
	for _, name := range file.Written() {
		all = append(all, []string{"--from", name})
	}
	all = append(all, []string{}, []string{"--from", "torsion", "--param", "c=8"})
	for _, args := range all {
		name := filepath.Join(t.TempDir(), "mine.yaml")
		code, out, errs := call(append([]string{"init", name}, args...)...)
		require.Zero(t, code, errs)
		require.Contains(t, out, "obstacle solve "+name)
		n := "9"
		if testing.Short() {
			n = "5"
		}
		code, out, errs = call("solve", name, "--n", n, "--in-process", "--method", "multigrid", "--format", "json")
		require.Equal(t, ExitSolved, code, "%v: %s", args, errs)
		require.Contains(t, out, `"converged":true`)
	}
}

// A file that exists is not changed without --force.
func TestInitKeepsFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(name, []byte("precious"), 0o600))
	code, _, errs := call("init", name)
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "exists already: give another name, or --force to replace it")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))
	code, out, errs := call("init", name, "--force", "--kind", "option", "--format", "json")
	require.Zero(t, code, errs)
	var v struct{ Dimension int }
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	require.Equal(t, 1, v.Dimension)
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Contains(t, string(text), "kind: american-option")
}

func TestInitRefuses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "mine.yaml")
	nowhere := filepath.Join(filepath.Dir(name), "nodir")
	for want, args := range map[string][]string{
		`--kind "membrain" (did you mean "membrane"?)`:                {name, "--kind", "membrain"},
		`--dimension 4: want 1, 2 or 3`:                               {name, "--dimension", "4"},
		`no built-in problem "torsoin" (did you mean "torsion"?)`:     {name, "--from", "torsoin"},
		`problem dam cannot be written as a file: it has no formulas`: {name, "--from", "dam"},
		`problem torsion has no parameter "k"`:                        {name, "--from", "torsion", "--param", "k=1"},
		`--from and --kind: give one of them`:                         {name, "--from", "torsion", "--kind", "option"},
		`--param is for --from`:                                       {name, "--param", "c=1"},
		`problem files end in .yaml; give for example mine.yaml`:      {"mine.txt"},
		`there is no directory ` + nowhere:                            {filepath.Join(nowhere, "x.yaml")},
	} {
		code, out, errs := call(append([]string{"init"}, args...)...)
		require.Equal(t, ExitUsage, code, args)
		require.Empty(t, out)
		require.Contains(t, errs, want)
	}
	require.NoFileExists(t, name)
}

// obstacle alone shows commands, each of which has flags and arguments that exist.
func TestFirstScreen(t *testing.T) {
	code, out, errs := call()
	require.Zero(t, code, errs)
	require.Empty(t, errs)
	at := -1
	for _, c := range firstCommands() {
		next := strings.Index(out, c.Command+"\n      "+c.Shows+"\n")
		require.Greater(t, next, at, c.Command)
		at = next
		root := commands(t)[0]
		found, rest, err := root.Find(strings.Fields(c.Command)[1:])
		require.NoError(t, err)
		require.NoError(t, found.ParseFlags(rest), c.Command)
		require.NoError(t, found.ValidateArgs(found.Flags().Args()), c.Command)
	}
	code, help, _ := call("--help")
	require.Zero(t, code)
	for _, c := range commands(t)[0].Commands() {
		require.Contains(t, help, "\n  "+c.Name()+" ")
	}
}
