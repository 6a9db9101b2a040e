package doctest

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var commented = regexp.MustCompile(`(?m)^print\(.*\)  # (.*)$`)

// runPython runs the Python of a page as one notebook. A block whose modules are missing is not run.
func runPython(t *testing.T, page []*block) {
	interpreter := cmp.Or(os.Getenv("PYTHON"), "/usr/bin/python3")
	has := func(module string) bool { return exec.Command(interpreter, "-c", "import "+module).Run() == nil }
	var script, want strings.Builder
	for _, b := range page {
		if b.language != "python" || b.left() != "" {
			continue
		}
		switch {
		case !has("numpy"):
			b.notes["not run"] = interpreter + " has no numpy; install Debian's python3-numpy, or set PYTHON"
		case strings.Contains(b.text, "vtkmodules") && !has("vtkmodules.vtkIOXML"):
			b.notes["not run"] = "it reads files by VTK; install Debian's python3-vtk9"
		case strings.Contains(b.text, "vtkRenderWindow") && os.Getenv("DISPLAY") == "":
			b.notes["not run"] = "it draws in a window; DISPLAY is not set"
		case strings.Contains(b.text, "import matplotlib") && !has("matplotlib"):
			b.notes["not run"] = "it draws; install Debian's python3-matplotlib"
		default:
			script.WriteString(b.text)
		}
	}
	if script.Len() == 0 {
		return
	}
	for _, m := range commented.FindAllStringSubmatch(script.String(), -1) {
		want.WriteString(m[1] + "\n")
	}
	prints := strings.Count(script.String(), "\nprint(")
	require.Equal(t, prints, strings.Count(want.String(), "\n"), "prints without a comment")

	folder := t.TempDir()
	c := exec.CommandContext(t.Context(), interpreter, "-")
	c.Dir, c.Stdin, c.Env = folder, strings.NewReader(script.String()), environment(t, folder)
	var problems strings.Builder
	c.Stderr = &problems
	out, err := c.Output()
	require.NoError(t, err, "%s", problems.String())
	require.Equal(t, want.String(), string(out))
}
