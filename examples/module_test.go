// Package examples tests the use of this module from other modules: an example is copied into a module
// of its own. Internal packages cannot be imported there, so the examples use public packages only.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository returns the root of the module under test.
func repository(t *testing.T) string {
	_, file, _, ok := runtime.Caller(0)
	require.True(t, ok)
	return filepath.Dir(filepath.Dir(file))
}

// outside returns an environment for a module that uses the local module cache only, so that nothing is
// downloaded.
func outside(t *testing.T) []string {
	env := []string{"GOFLAGS=", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local", "GO111MODULE=on"}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "GOFLAGS", "GOPROXY", "GOWORK", "GOTOOLCHAIN", "GO111MODULE", "P2PDC":
		default:
			env = append(env, v)
		}
	}
	return append(env, "P2PDC="+repository(t))
}

func shell(t *testing.T, dir, script string) string {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	c := exec.CommandContext(t.Context(), "sh", "-e")
	c.Dir, c.Env, c.Stdin = dir, outside(t), strings.NewReader(script)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	require.NoError(t, err, "%s\n%s", out, errs.String())
	return string(out)
}

// Examples that are meant to be copied build, pass their tests and run in an empty module.
func TestExamplesOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	for name, want := range map[string]string{
		"fec": "with FEC", "congestion": "Vegas", "own-obstacle": "Try, in this order",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files, err := filepath.Glob(filepath.Join(repository(t), "examples", name, "*.go"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			for _, f := range files {
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f)), text, 0o644))
			}
			out := shell(t, dir, `
go mod init example.com/stranger
go mod edit -require github.com/p2pdc/p2pdc@v0.0.0 -replace github.com/p2pdc/p2pdc=$P2PDC
sed -n '/^require (/,/^)/p' $P2PDC/go.mod >> go.mod
cp $P2PDC/go.sum .
go test -run TestRun .
go run .
`)
			require.Contains(t, out, "ok")
			require.Contains(t, out, want)
		})
	}
}
