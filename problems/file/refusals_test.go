package file

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/npy"
	"github.com/p2pdc/p2pdc/problems"
)

// arrays returns the arrays named in the problem files of the tests.
func arrays(name string) ([]byte, error) {
	encode := func(v []float64, shape ...int) []byte {
		b, err := binary.Append(npy.Header(shape), binary.LittleEndian, v)
		if err != nil {
			panic(err)
		}
		return b
	}
	switch name {
	case "row.npy":
		return encode([]float64{0, 1, 4, 9, 16}, 5), nil
	case "square.npy":
		return square(), nil
	case "broken.npy":
		b := square()
		return b[:len(b)-1], nil
	case "holes.npy":
		return encode([]float64{0, 1, 2, 3, 4, 5, math.NaN(), 7}, 2, 4), nil
	case "thin.npy":
		return encode([]float64{0, 1, 2, 3}, 1, 4), nil
	case "cube.npy":
		return encode([]float64{0, 1, 2, 3, 4, 5, 6, 7}, 2, 2, 2), nil
	}
	return nil, errors.New("there is no such file")
}

// square returns 3 rows of 4 int16 with the values 10·row + column.
func square() []byte {
	const header = "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 4), }\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	b = append(b, header...)
	for row := range 3 {
		for column := range 4 {
			b = binary.LittleEndian.AppendUint16(b, uint16(10*row+column))
		}
	}
	return b
}

// Each error contains the file, the line, the key and the reason.
func TestRefusals(t *testing.T) {
	golden, err := txtar.ParseFile(filepath.Join("testdata", "refusals.txtar"))
	require.NoError(t, err)
	require.Zero(t, len(golden.Files)%2)
	for i := 0; i < len(golden.Files); i += 2 {
		problem, message := golden.Files[i], golden.Files[i+1]
		t.Run(problem.Name, func(t *testing.T) {
			require.Equal(t, strings.TrimSuffix(problem.Name, ".yaml")+".err", message.Name)
			s, err := Parse(problem.Name, problem.Data, arrays)
			if err == nil {
				_, err = s.BuildValid([]int{3})
			}
			require.EqualError(t, err, strings.TrimSpace(string(message.Data)))
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, problem.Name, e.File)
		})
	}
}

func TestRefusedGrids(t *testing.T) {
	s, err := Parse("line.yaml", []byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: -1\n"), arrays)
	require.NoError(t, err)
	for _, c := range []struct {
		n    []int
		want string
	}{
		{[]int{0}, "problem line: 0 grid points along x: there must be at least 1"},
		{[]int{1 << 30}, "problem line: 1073741824 grid points along x: there may be at most 16777216"},
		{[]int{3, 3}, "problem line: 2 numbers of grid points for a 1-D problem: give one for all axes, or 1"},
	} {
		_, err := s.BuildValid(c.n)
		require.EqualError(t, err, c.want)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	var names []string
	for _, b := range problems.All() {
		names = append(names, b.Name)
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	long := path("long.yaml")
	require.NoError(t, os.WriteFile(long, make([]byte, MaxTextBytes+1), 0o600))
	for ref, want := range map[string]string{
		path("none.yaml"): path("none.yaml") + ": there is no such file",
		dir:               dir + ": it is not a regular file",
		"/dev/zero":       "/dev/zero: it is not a regular file",
		long:              long + ": its 65537 bytes are more than the 65536 allowed",
		"membrain": `no built-in problem "membrain" (did you mean "membrane"?); there are ` + strings.Join(names,
			", ") +
			"; and no problem file of that name",
	} {
		_, err := Open(nil, ref, nil)
		require.EqualError(t, err, want)
	}
	_, err := Open(nil, long, []string{"k=4"})
	require.EqualError(t, err, long+": parameters belong to built-in problems; edit the problem file instead")
	_, err = Open(nil, "membrane", []string{"k=-4"})
	require.ErrorContains(t, err, "problem membrane: c0 = 0.5, k = -4")
}

// An array that is wrong by its header or by the size of its file is refused by the first bytes, and the rest is not read.
func TestHeadersOfArraysComeFirst(t *testing.T) {
	dir := t.TempDir()
	problem := filepath.Join(dir, "p.yaml")
	require.NoError(t, os.WriteFile(problem,
		[]byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: {npy: a.npy}\n"), 0o600))
	const size = 64 << 20
	for want, head := range map[string][]byte{
		"this is not a .npy file":                    nil,
		"bytes follow the":                           npy.Header([]int{9}),
		"the file is cut short":                      npy.Header([]int{size}),
		"but the problem is 1-D":                     npy.Header([]int{2, (size - 128) / 16}),
		"version 255.255 of the .npy":                []byte("\x93NUMPY\xff\xff"),
		"the shape 9223372036854775807 is too large": npy.Header([]int{math.MaxInt}),
	} {
		name := filepath.Join(dir, "a.npy")
		require.NoError(t, os.WriteFile(name, head, 0o600))
		require.NoError(t, os.Truncate(name, size))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(problem)
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, want)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/8))
	}
}

// Nesting that would exhaust the stack of a recursive parser is an error.
func TestDeepNesting(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", MaxTextBytes), strings.Repeat("{a: ", MaxTextBytes/4),
		strings.Repeat("- ", MaxTextBytes/2), strings.Repeat("? ", MaxTextBytes/2),
	} {
		_, err := Parse("deep.yaml", []byte(text), arrays)
		require.Error(t, err)
	}
	_, err := parseFormula(strings.Repeat("(", maxFormulaBytes), scope{dimension: 1})
	require.Error(t, err)
	_, err = parseFormula(strings.Repeat("-", maxFormulaBytes), scope{dimension: 1})
	require.Error(t, err)
	_, err = parseFormula("x"+strings.Repeat("+x", 2*maxFormulaNodes), scope{dimension: 1})
	require.ErrorContains(t, err, "exceeds maximum allowed nodes")
	_, err = parseFormula("x"+strings.Repeat("+x", maxFormulaBytes), scope{dimension: 1})
	require.ErrorContains(t, err, "the formula has 16385 characters, more than the 8192 allowed")
}

func TestOnlyText(t *testing.T) {
	line := "dimension: 1\ndomain: [[0, 1]]\nobstacle: -1\n"
	for _, text := range []string{
		line + "f: |\n" + strings.Repeat("\r", 60000), // quadratic in the YAML parser
		line + "\xff", line + "f: \"\x00\"",
	} {
		_, err := Parse("p.yaml", []byte(text), arrays)
		require.ErrorContains(t, err, "a problem file is UTF-8 text without control characters")
	}
	for _, text := range []string{line, strings.ReplaceAll(line, "\n", "\r\n"), "\ufeff" + line} {
		s, err := Parse("p.yaml", []byte(text), arrays)
		require.NoError(t, err, "%q", text)
		_, err = s.BuildValid([]int{3})
		require.NoError(t, err)
	}
}
