//go:build linux

package obstacle_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	pythonBlock = regexp.MustCompile("(?s)```python\n(.*?)```")
	printed     = regexp.MustCompile(`(?m)^print\(.*\)  # (.*)$`)
)

// TestNotebooks runs the Python of docs/notebooks.md as one notebook. Blocks whose modules are missing are left out.
func TestNotebooks(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts Python")
	}
	page, err := os.ReadFile("../docs/notebooks.md")
	require.NoError(t, err)
	interpreter := cmp.Or(os.Getenv("PYTHON"), "/usr/bin/python3")
	has := func(module string) bool { return exec.Command(interpreter, "-c", "import "+module).Run() == nil }
	if !has("numpy") {
		t.Skipf("NOT CHECKED: %s has no numpy; install Debian's python3-numpy, or set PYTHON", interpreter)
	}
	blocks := pythonBlock.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 8)
	var script strings.Builder
	for _, b := range blocks {
		switch {
		case strings.Contains(b[1], "vtkmodules") && !has("vtkmodules.vtkIOXML"):
			t.Log("NOT CHECKED: a block that reads files by VTK; install Debian's python3-vtk9")
		case strings.Contains(b[1], "vtkRenderWindow") && os.Getenv("DISPLAY") == "":
			t.Log("NOT CHECKED: the block that draws in a window; DISPLAY is not set")
		case strings.Contains(b[1], "import matplotlib") && !has("matplotlib"):
			t.Log("NOT CHECKED: the block that draws; install Debian's python3-matplotlib")
		default:
			script.WriteString(b[1])
		}
	}
	var want strings.Builder
	for _, m := range printed.FindAllStringSubmatch(script.String(), -1) {
		want.WriteString(m[1] + "\n")
	}
	prints := strings.Count(script.String(), "\nprint(")
	require.Equal(t, prints, strings.Count(want.String(), "\n"), "prints without a comment")

	folder, binary := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(binary, "obstacle")))
	c := exec.Command(interpreter, "-")
	c.Dir, c.Stdin = folder, strings.NewReader(script.String())
	c.Env = append(os.Environ(), asProgram+"="+asItIs, "PATH="+binary+":"+os.Getenv("PATH"))
	var problems strings.Builder
	c.Stderr = &problems
	out, err := c.Output()
	require.NoError(t, err, "%s", problems.String())
	require.Equal(t, want.String(), string(out))
}
