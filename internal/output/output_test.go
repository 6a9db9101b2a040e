package output

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/npy"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// sample returns a problem on an uneven grid with a distinct value at every point.
func sample(dimension int) Solution {
	p := &problem.Problem{
		Name: "sample", Dimension: dimension, N: [3]int{1, 1, 1},
		Obstacle: func(q problem.Point) float64 { return q[0] },
		Boundary: func(q problem.Point) float64 { return 10 + q[0] + 2*q[1] + 3*q[2] },
	}
	for a := range dimension {
		p.N[a], p.Lo[a], p.Hi[a] = 3+a, -1, float64(1+a)
	}
	u := make([]float64, p.Points())
	for i := range u {
		u[i] = 20 + float64(i)
	}
	return Solution{Problem: p, U: u}
}

// closed returns the values and positions on the closed grid, computed independently.
func closed(s Solution) (values []float64, at []problem.Point) {
	p := s.Problem
	lo, hi := [3]int{1, 1, 1}, [3]int{1, 1, 1}
	for a := range p.Dimension {
		lo[a], hi[a] = 0, p.N[a]+1
	}
	next := 0
	for k := lo[2]; k <= hi[2]; k++ {
		for j := lo[1]; j <= hi[1]; j++ {
			for i := lo[0]; i <= hi[0]; i++ {
				q := p.At(i, j, k)
				at = append(at, q)
				inside := i >= 1 && i <= p.N[0] && j >= 1 && j <= p.N[1] && k >= 1 && k <= p.N[2]
				if inside {
					values = append(values, s.U[next])
					next++
				} else {
					values = append(values, p.Boundary(q))
				}
			}
		}
	}
	return values, at
}

func write(t *testing.T, name string, s Solution) (path string, content []byte) {
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, Write(path, s))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file is left")
	return path, content
}

func TestNPY(t *testing.T) {
	for d := 1; d <= 3; d++ {
		s := sample(d)
		path, content := write(t, "u.NPY", s)
		a, err := npy.Decode(content)
		require.NoError(t, err)
		require.Equal(t, []int{7, 6, 5}[3-d:], a.Shape)
		want, _ := closed(s)
		for i, v := range want {
			require.Equal(t, v, a.At(i))
		}
		u, err := ReadInitial(path, s.Problem)
		require.NoError(t, err)
		require.Equal(t, s.U, u)
	}
}

type vtkFile struct {
	Type   string `xml:"type,attr"`
	Header string `xml:"header_type,attr"`
	Image  struct {
		Whole   string `xml:"WholeExtent,attr"`
		Origin  string `xml:"Origin,attr"`
		Spacing string `xml:"Spacing,attr"`
		Piece   struct {
			Extent string `xml:"Extent,attr"`
			Arrays []struct {
				Type   string `xml:"type,attr"`
				Name   string `xml:"Name,attr"`
				Format string `xml:"format,attr"`
				Offset int    `xml:"offset,attr"`
			} `xml:"PointData>DataArray"`
		}
	} `xml:"ImageData"`
}

func TestVTI(t *testing.T) {
	s := sample(3)
	s.U[7] = -1e9 // below φ: in contact
	s.U[8] = 1e9
	s.Problem.Upper = func(problem.Point) float64 { return 1e8 }
	for i := range s.U {
		s.Force = append(s.Force, 0.5+float64(i))
	}
	zero := *s.Problem
	zero.Boundary = func(problem.Point) float64 { return 0 }
	force, _ := closed(Solution{Problem: &zero, U: s.Force})
	_, content := write(t, "u.vti", s)
	mark := bytes.Index(content, []byte("\n_")) + 1 // of the appended data
	head := string(content[:mark])
	var f vtkFile
	require.NoError(t, xml.Unmarshal([]byte(head+"</AppendedData></VTKFile>"), &f))
	require.Equal(t, "ImageData", f.Type)
	require.Equal(t, "UInt64", f.Header)
	require.Equal(t, "0 4 0 5 0 6", f.Image.Whole)
	require.Equal(t, f.Image.Whole, f.Image.Piece.Extent)
	require.Equal(t, "-1 -1 -1", f.Image.Origin)
	require.Equal(t, fmt.Sprint(2/4., 3/5., 4/6.), f.Image.Spacing)
	want, at := closed(s)
	data := content[mark+1:]
	names := []string{}
	end := 0
	for _, a := range f.Image.Piece.Arrays {
		names = append(names, a.Name+" "+a.Type)
		require.Equal(t, "appended", a.Format)
		require.Equal(t, end, a.Offset)
		size := map[string]int{"Float64": 8, "UInt8": 1}[a.Type]
		require.EqualValues(t, size*len(want), binary.LittleEndian.Uint64(data[a.Offset:]))
		values := data[a.Offset+8:]
		for i := range want {
			switch a.Name {
			case "u":
				require.Equal(t, want[i], float(values, i))
			case "obstacle":
				require.Equal(t, at[i][0], float(values, i))
			case "force":
				require.Equal(t, force[i], float(values, i))
			case "upper":
				require.Equal(t, 1e8, float(values, i))
			case "contact":
				require.Equal(t, map[float64]byte{-1e9: onObstacle, 1e9: onUpper}[want[i]], values[i])
			}
		}
		end = a.Offset + 8 + size*len(want)
	}
	require.Equal(t, []string{"u Float64", "contact UInt8", "obstacle Float64", "upper Float64", "force Float64"},
		names)
	require.Equal(t, "\n  </AppendedData>\n</VTKFile>\n", string(data[end:]))
}

func float(b []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
}

func TestVTIOfAPlane(t *testing.T) {
	s := sample(2)
	s.Force = make([]float64, 3)
	require.ErrorContains(t, Write(filepath.Join(t.TempDir(), "u.vti"), s),
		"3 values of the contact force for a grid of 12 points")
	s.Force = nil
	s.Problem.Obstacle = nil
	_, content := write(t, "u.vti", s)
	require.Contains(t, string(content), `WholeExtent="0 4 0 5 0 0" Origin="-1 -1 0" Spacing="0.5 0.6 1"`)
	require.NotContains(t, string(content), `Name="obstacle"`)
}

func TestCSV(t *testing.T) {
	s := sample(2)
	_, content := write(t, "u.csv", s)
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y", "z", "u", "phi"}, rows[0])
	want, at := closed(s)
	require.Len(t, rows, 1+len(want))
	for i, row := range rows[1:] {
		for column, v := range []float64{at[i][0], at[i][1], 0, want[i], at[i][0]} {
			got, err := strconv.ParseFloat(row[column], 64)
			require.NoError(t, err)
			require.Equal(t, v, got)
		}
	}
	s.Problem.Obstacle = nil
	_, content = write(t, "u.csv", s)
	require.Contains(t, string(content), ",\n")
}

func decode(t *testing.T, content []byte) image.Image {
	picture, err := png.Decode(bytes.NewReader(content))
	require.NoError(t, err)
	require.Equal(t, image.Pt(900, 750), picture.Bounds().Size())
	return picture
}

// The picture of a step is dark below and light above, with a red outline around the contact set.
func TestPNG(t *testing.T) {
	p := &problem.Problem{
		Name: "step", Dimension: 2, Hi: problem.Point{1, 1}, N: [3]int{40, 40, 1},
		Obstacle: func(q problem.Point) float64 { return map[bool]float64{true: 0, false: -1}[q[1] < 0.5] },
		Boundary: func(problem.Point) float64 { return 0 },
	}
	u := make([]float64, p.Points())
	for i := range u {
		if i >= len(u)/2 {
			u[i] = 1
		}
	}
	_, content := write(t, "u.png", Solution{Problem: p, U: u})
	picture := decode(t, content)
	light := func(x, y int) uint32 { r, g, b, _ := picture.At(x, y).RGBA(); return r + g + b }
	const white = 3 * 0xffff
	require.Less(t, light(400, 520), uint32(white/4), "u = 0 below")
	require.Greater(t, light(400, 240), uint32(white/2), "u = 1 above")
	require.EqualValues(t, white, light(2, 2), "a margin")
	outline := 0
	for y := 300; y < 420; y++ {
		if r, g, _, _ := picture.At(400, y).RGBA(); r > 0xc000 && g < 0x4000 {
			outline++
		}
	}
	require.Positive(t, outline, "the border of the contact set")
	require.Less(t, outline, 12)
	bar := false
	for x := 780; x < 890; x++ {
		bar = bar || light(x, 600) < white/4
	}
	require.True(t, bar, "a colour bar at the right")
}

func TestPicturesOfEveryDimension(t *testing.T) {
	for d := 1; d <= 3; d++ {
		_, content := write(t, "u.png", sample(d))
		decode(t, content)
	}
	flat := sample(2)
	flat.Problem.Boundary = func(problem.Point) float64 { return 20 }
	for i := range flat.U {
		flat.U[i] = 20
	}
	_, content := write(t, "flat.png", flat)
	decode(t, content)
	flat.U[0] = math.NaN()
	require.ErrorContains(t, Write(filepath.Join(t.TempDir(), "u.png"), flat), "cannot be drawn")
}

// In 3-D the picture shows the middle plane.
func TestSliceIsTheMiddlePlane(t *testing.T) {
	s := sample(3)
	g, err := newGrid(s)
	require.NoError(t, err)
	middle := newSlice(g)
	values, _ := closed(s)
	columns, rows := middle.Dims()
	require.Equal(t, values[3*columns*rows:4*columns*rows], middle.u)
}

func TestRefusedPaths(t *testing.T) {
	const known = "the extensions known are .vti, .vtu, .vtp, .npy, .png, .contour.csv, .csv, .xdmf, .pvd"
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d.csv"), 0o700))
	for name, want := range map[string]string{
		"u.txt":      `no format for ".txt"; ` + known,
		"u":          `no format for ""; ` + known,
		"none/u.npy": "there is no directory " + filepath.Join(dir, "none"),
		"d.csv":      "it is not a regular file",
	} {
		path := filepath.Join(dir, name)
		require.EqualError(t, CheckPath(path), "output "+path+": "+want)
		require.EqualError(t, Write(path, sample(1)), "output "+path+": "+want)
	}
	s := sample(2)
	s.U = s.U[1:]
	path := filepath.Join(dir, "u.npy")
	require.NoError(t, CheckPath(path))
	require.EqualError(t, Write(path, s), "output "+path+": 11 values for a grid of 12 points")
}

// After a failed write the old file is unchanged and no other file is left.
func TestReplaceIsAllOrNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "u.csv")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	broken := errors.New("disk full")
	err := Replace(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		return broken
	})
	require.ErrorIs(t, err, broken)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(content))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// A file beside the one that is named, such as an array of .xdmf, replaces neither a folder nor a device.
func TestReplaceKeepsWhatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.xdmf")
	array := strings.TrimSuffix(path, XDMFExtension) + ".contact.npy"
	require.NoError(t, os.Symlink(os.DevNull, array))
	require.ErrorContains(t, Write(path, sample(2)), array+": it is not a regular file")
	require.NoFileExists(t, path)
	kept, err := os.Readlink(array)
	require.NoError(t, err)
	require.Equal(t, os.DevNull, kept)
}

func TestReadInitialRefusals(t *testing.T) {
	p := sample(2).Problem
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	array := func(shape ...int) []byte {
		n := 1
		for _, s := range shape {
			n *= s
		}
		v := make([]float64, n)
		v[n-1] = math.Inf(1)
		b, err := binary.Append(npy.Header(shape), binary.LittleEndian, v)
		require.NoError(t, err)
		return b
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.npy"): "there is no such file",
		dir:                            "it is not a regular file",
		put("shape.npy", array(3,
			4)): "the array has the shape 3 × 4; the grid is 4 × 3, or 6 × 5 with its boundary",
		put("nan.npy", array(4, 3)):          "the value +Inf at grid point [3 4] is not finite",
		put("text.npy", []byte("1 2 3")):     `this is not a .npy file: it does not start with \x93NUMPY`,
		put("cut.npy", array(4, 3)[:150]):    "the file is cut short: 4 × 3 of float64 needs 96 bytes of data and there are 22",
		put("huge.npy", make([]byte, 2<<20)): "its 2097152 bytes are far more than a grid of 12 points needs",
	} {
		_, err := ReadInitial(path, p)
		require.EqualError(t, err, "initial iterate "+path+": "+want)
	}
}

// An array that was written is read back for any grid.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := sample(rapid.IntRange(1, 3).Draw(t, "dimension"))
		for a := range s.Problem.Dimension {
			s.Problem.N[a] = rapid.IntRange(1, 4).Draw(t, "n")
		}
		n := s.Problem.Points()
		s.U = rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "u")
		path := filepath.Join(dir, "u.npy")
		require.NoError(t, Write(path, s))
		u, err := ReadInitial(path, s.Problem)
		require.NoError(t, err)
		require.Equal(t, s.U, u)
		shape := []int{s.Problem.N[2], s.Problem.N[1], s.Problem.N[0]}[3-s.Problem.Dimension:]
		inside, err := binary.Append(npy.Header(shape), binary.LittleEndian, s.U)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, inside, 0o600))
		u, err = ReadInitial(path, s.Problem)
		require.NoError(t, err)
		require.Equal(t, s.U, u)
	})
}

// A file is replaced after a complete write. After an error it is unchanged, and no temporary file is left.
func TestReplace(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "u.npy")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	full := errors.New("the disk is full")
	half := func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<17))
		require.NoError(t, err)
		return full
	}
	require.ErrorIs(t, Replace(path, half), full)
	require.NoError(t, CheckFile(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	require.NoError(t, Replace(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(text))
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.ErrorContains(t, CheckFile(filepath.Join(path, "x")), "there is no directory")
}
