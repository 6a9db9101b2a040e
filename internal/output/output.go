// Package output writes solutions to files and reads initial iterates: .vti, .vtu, .vtp, .xdmf and .pvd for ParaView,
// .npy for NumPy, .csv for spreadsheets, .png for viewing.
//
// Every format contains the closed grid, interior points and boundary. An .npy file can be read back as an
// initial iterate. A file is written under a temporary name and renamed when it is complete, so that no
// reader gets an incomplete file.
package output

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Solution is a problem with the interior values of u, [z][y][x], x fastest. Writers only read it.
type Solution struct {
	Problem *problem.Problem
	U       []float64
	Force   []float64 // contact force at interior points (verify.ContactForce), or nil
	Extra   []Extra   // additional arrays of .vti and columns of .csv
}

// Extra is a named function of position.
type Extra struct {
	Name string
	Of   problem.Function
}

type writer func(w io.Writer, g *grid) error

// extensions select a format; the first one that matches applies.
var extensions = []string{".vti", ".vtu", ".vtp", ".npy", ".png", ContourExtension, ".csv"}

// writers write the formats, in the order of extensions.
var writers = []writer{writeVTI, writeVTU, writeVTP, writeNPY, writePNG, writeContour, writeCSV}

// HoldsForce reports whether the format of the file contains the contact force.
func HoldsForce(path string) bool {
	return slices.Contains([]string{".vti", ".vtu", XDMFExtension}, strings.ToLower(filepath.Ext(path)))
}

// CheckProblem returns an error if the format of the file cannot represent a solution of the problem.
func CheckProblem(path string, p *problem.Problem) error {
	name := strings.ToLower(path)
	if IsSeries(path) {
		_, name = splitSeries(path)
	}
	switch {
	case p.FixedPoint != nil && !slices.ContainsFunc([]string{".npy", ".csv", ".png"}, func(end string) bool { return strings.HasSuffix(name, end) }):
		return fmt.Errorf("output %s: the values of an iteration have no place in space; give .npy, .csv or .png", path)
	case strings.HasSuffix(name, ContourExtension) && p.Dimension != 2:
		return fmt.Errorf("output %s: a contour is that of a problem in 2 dimensions, this one has %d; give .vtp",
			path, p.Dimension)
	case strings.HasSuffix(name, ContourExtension), strings.HasSuffix(name, ".vtp"):
		if p.Obstacle == nil && p.Upper == nil {
			return fmt.Errorf("output %s: the problem has no obstacle, so no free boundary", path)
		}
	}
	return nil
}

// CheckPath returns the error that Write would return for path: an unknown extension, or an error of
// CheckFile. It serves to fail before a long run.
func CheckPath(path string) error {
	if !IsSeries(path) && !IsExercise(path) {
		if _, err := check(path); err != nil {
			return err
		}
	}
	return CheckFile(path)
}

// CheckFile returns an error if no file can be written to path: the directory does not exist, path exists and
// is not a regular file, or no file can be created in the directory. It leaves no file behind.
func CheckFile(path string) error {
	if err := writable(path); err != nil {
		return err
	}
	f, err := createTemporary(path)
	if err != nil {
		return fmt.Errorf("output %s: no file can be created in its directory: %w", path, reason(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// check returns the writer of a format of one file; nil for .xdmf.
func check(path string) (writer, error) {
	if isXDMF(path) {
		return nil, writable(path)
	}
	name := strings.ToLower(path)
	i := slices.IndexFunc(extensions, func(e string) bool { return strings.HasSuffix(name, e) })
	if i < 0 {
		return nil, fmt.Errorf("output %s: no format for %q; the extensions known are %s, %s",
			path, filepath.Ext(name), strings.Join(extensions, ", "), XDMFExtension+", "+SeriesExtension)
	}
	return writers[i], writable(path)
}

// writable returns an error if path cannot be a new or existing regular file.
func writable(path string) error {
	directory := filepath.Dir(path)
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return fmt.Errorf("output %s: there is no directory %s", path, directory)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("output %s: it is not a regular file", path)
	}
	return nil
}

// Write writes the solution to path in the format of its extension. An existing file is replaced
// atomically after everything was written; of .xdmf, each array by itself and the description last.
func Write(path string, s Solution) error {
	write, err := check(path)
	if err != nil {
		return err
	}
	if err := CheckProblem(path, s.Problem); err != nil {
		return err
	}
	g, err := newGrid(s)
	if err != nil {
		return fmt.Errorf("output %s: %w", path, err)
	}
	if isXDMF(path) {
		return writeXDMF(path, g)
	}
	return Replace(path, func(w io.Writer) error { return write(w, g) })
}

// Replace writes a temporary file and renames it to path when it is complete. After an error an existing file
// is unchanged. It replaces neither a folder nor a pipe.
func Replace(path string, write func(io.Writer) error) (err error) {
	if err := writable(path); err != nil {
		return err
	}
	var f *os.File
	defer func() {
		if err == nil {
			return
		}
		if f != nil {
			_ = os.Remove(f.Name()) // err is the error to report
		}
		err = fmt.Errorf("output %s: %w", path, err)
	}()
	if f, err = createTemporary(path); err != nil {
		return reason(err)
	}
	b := bufio.NewWriterSize(f, 1<<16)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	err = errors.Join(reason(err), reason(f.Close()))
	if err != nil {
		return err
	}
	return reason(os.Rename(f.Name(), path))
}

// createTemporary creates a file with a unique name in the directory of path.
func createTemporary(path string) (*os.File, error) {
	var unique [8]byte
	rand.Read(unique[:])
	directory, name := filepath.Split(path)
	temporary := filepath.Join(directory, "."+name+"."+hex.EncodeToString(unique[:]))
	return os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // subject to the umask
}

// reason removes the temporary name from a file system error.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
