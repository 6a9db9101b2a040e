// Package output writes a solution to files and reads a starting iterate back:
// .vti for ParaView, .npy for NumPy, .csv for spreadsheets, .png for people.
//
// Every format holds the closed grid, interior points and boundary, so that a
// picture has its rim and an array can be fed back as a starting iterate. A file
// is written beside its final name and renamed when it is complete: nobody sees
// half a file.
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

// Solution is a problem with interior values of u, [z][y][x], x fastest. Writers
// only read it.
type Solution struct {
	Problem *problem.Problem
	U       []float64
	Force   []float64 // contact force at interior points (solver.ContactForce); nil: not asked for
	Extra   []Extra   // what else is known of a point: arrays of .vti, columns of .csv
}

// Extra is a named function of place.
type Extra struct {
	Name string
	Of   problem.Function
}

type writer func(w io.Writer, g *grid) error

// format is a way to write a solution, chosen by the file's extension.
type format struct {
	extension string
	write     writer
}

func formats() []format {
	return []format{{".vti", writeVTI}, {".vtp", writeVTP}, {".npy", writeNPY}, {".png", writePNG}, {ContourExtension, writeContour}, {".csv", writeCSV}}
}

// HoldsForce tells whether a file of that name shows the contact force.
func HoldsForce(path string) bool { return strings.ToLower(filepath.Ext(path)) == ".vti" }

// CheckProblem tells whether a file of that name can show a problem's solution.
func CheckProblem(path string, p *problem.Problem) error {
	name := strings.ToLower(path)
	switch {
	case strings.HasSuffix(name, ContourExtension) && p.Dimension != 2:
		return fmt.Errorf("output %s: a contour is that of a problem in 2 dimensions, this one has %d; give .vtp", path, p.Dimension)
	case strings.HasSuffix(name, ContourExtension), strings.HasSuffix(name, ".vtp"):
		if p.Obstacle == nil && p.Upper == nil {
			return fmt.Errorf("output %s: the problem has no obstacle, so no free boundary", path)
		}
	}
	return nil
}

// Extensions lists the formats, in the order in which they are shown.
func Extensions() []string {
	var all []string
	for _, f := range formats() {
		all = append(all, f.extension)
	}
	return all
}

// CheckPath reports, before a long run, why Write could not write to path: an unknown
// extension, or what CheckFile finds.
func CheckPath(path string) error {
	if !IsSeries(path) && !IsExercise(path) {
		if _, err := check(path); err != nil {
			return err
		}
	}
	return CheckFile(path)
}

// CheckFile reports why no file can be put at path: there is no such directory, something
// that is no regular file has that name, or a file beside it cannot be created. It leaves
// nothing behind.
func CheckFile(path string) error {
	if err := writable(path); err != nil {
		return err
	}
	f, err := beside(path)
	if err != nil {
		return fmt.Errorf("output %s: no file can be created in its directory: %w", path, reason(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func check(path string) (writer, error) {
	extension := strings.ToLower(filepath.Ext(path))
	known := formats()
	i := slices.IndexFunc(known, func(f format) bool { return strings.HasSuffix(strings.ToLower(path), f.extension) })
	if i < 0 {
		return nil, fmt.Errorf("output %s: no format for %q; the extensions known are %s", path, extension, strings.Join(append(Extensions(), SeriesExtension), ", "))
	}
	return known[i].write, writable(path)
}

// writable tells whether a file may be put at path.
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

// Write writes the solution to path in the format of its extension. A file of
// that name is replaced, at once and only when all is written.
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
	return Replace(path, func(w io.Writer) error { return write(w, g) })
}

// Replace writes a file under a name of its own and renames it to path once it is complete:
// on an error the file of that name is what it was.
func Replace(path string, write func(io.Writer) error) error {
	if err := replace(path, write); err != nil {
		return fmt.Errorf("output %s: %w", path, err)
	}
	return nil
}

// beside creates a file in path's directory under a name that no other file has.
func beside(path string) (*os.File, error) {
	var unique [8]byte
	rand.Read(unique[:])
	directory, name := filepath.Split(path)
	temporary := filepath.Join(directory, "."+name+"."+hex.EncodeToString(unique[:]))
	return os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // the umask decides, as for any file
}

func replace(path string, write func(io.Writer) error) (err error) {
	f, err := beside(path)
	if err != nil {
		return reason(err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error that led here is the one to report
		}
	}()
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

// reason drops the temporary name from an error of the file system.
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
