package output

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// python returns an interpreter that has the modules, and skips the test if there is none. Debian's modules belong to
// Debian's interpreter. PYTHON names another one.
func python(t *testing.T, modules string) string {
	for _, name := range []string{cmp.Or(os.Getenv("PYTHON"), "/usr/bin/python3"), "python3"} {
		if exec.Command(name, "-c", "import "+modules).Run() == nil {
			return name
		}
	}
	t.Skipf("NOT CHECKED: no python3 with %s; install Debian's python3-numpy and python3-vtk9, or set PYTHON", modules)
	return ""
}

// pressed returns a sample with points on both obstacles and a contact force.
func pressed(dimension int) Solution {
	s := sample(dimension)
	s.Problem.Upper = func(q problem.Point) float64 { return 1e8 + q[1] }
	for i := range s.U {
		if i%5 == 1 || i > len(s.U)/2 {
			s.U[i] = -1e9
		} else if i%7 == 3 {
			s.U[i] = 1e9
		}
		s.Force = append(s.Force, 1/float64(i+3))
	}
	return s
}

// NumPy and VTK read the same bits from every format.
func TestPythonReadsTheFormats(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts Python")
	}
	interpreter := python(t, "numpy, vtkmodules.vtkIOXML")
	for d := 1; d <= 3; d++ {
		s, folder := pressed(d), t.TempDir()
		for _, e := range []string{".npy", ".vti", ".vtu", ".vtp", XDMFExtension} {
			require.NoError(t, Write(filepath.Join(folder, "u"+e), s))
		}
		writeExpected(t, folder, s)
		out, err := exec.Command(interpreter, "testdata/formats.py", folder).CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("dimension %d\n%s", d, out)
	}
}

// writeExpected writes the arrays of a solution, computed without the code under test.
func writeExpected(t *testing.T, folder string, s Solution) {
	u, at := closed(s)
	zero := *s.Problem
	zero.Boundary = func(problem.Point) float64 { return 0 }
	force, _ := closed(Solution{Problem: &zero, U: s.Force})
	var lower, upper []float64
	var contact []byte
	for i, q := range at {
		lower, upper = append(lower, s.Problem.Obstacle(q)), append(upper, s.Problem.Upper(q))
		contact = append(contact, map[float64]byte{-1e9: 1, 1e9: 2}[u[i]])
	}
	for name, v := range map[string]any{"u": u, "contact": contact, "obstacle": lower, "upper": upper, "force": force,
		"positions": at} {
		raw, err := binary.Append(nil, binary.LittleEndian, v)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint(name, ".expected")), raw, 0o600))
	}
}
