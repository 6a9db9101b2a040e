// Package file reads problems by name: the name of a built-in problem or the path of a YAML problem file. It builds a
// problem.Problem from them, and marshals them for peers on other machines. docs/problems.md describes problem files.
//
// Errors in problem files are of type *Error, with the file, the line, the key and the reason.
package file

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/npy"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/internal/yamldoc"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// MaxTextBytes and MaxArrayBytes bound the sizes of problem files and arrays.
const (
	MaxTextBytes  = 64 << 10
	MaxArrayBytes = 16 << 30
)

// Error is an error in a problem file, with file, line, key and reason.
type Error = yamldoc.Error

// Spec is a problem without its grid. It contains the text of a problem file and the arrays named there, so the
// problem can be built on any machine from its marshalled bytes. It is immutable and safe for concurrent use.
type Spec struct {
	builtin  *problems.Builtin // nil for a problem file
	settings []string

	name     string // file name for error messages
	text     []byte
	arrays   []attachment
	document *document
}

// attachment is an array named in a problem file.
type attachment struct {
	name string // as in the problem file
	data []byte // bytes of the .npy file
}

// find returns the bytes of the array of that name.
func find(arrays []attachment, name string) (data []byte, found bool) {
	for _, a := range arrays {
		if a.name == name {
			return a.data, true
		}
	}
	return nil, false
}

// Open returns the problem of that name: a problem of the catalog or the path of a problem file. settings of the
// form "name=value" change parameters of a problem of the catalog. A nil catalog contains the built-in problems.
func Open(c *problems.Catalog, ref string, settings []string) (*Spec, error) {
	b, unknown := lookup(c, ref)
	if unknown == nil {
		return configured(b, settings)
	}
	ext := filepath.Ext(ref)
	_, err := os.Stat(ref)
	if err != nil && ext != ".yaml" && ext != ".yml" && !strings.ContainsRune(ref, filepath.Separator) {
		return nil, fmt.Errorf("%w; and no problem file of that name", unknown)
	}
	if len(settings) > 0 {
		return nil, fmt.Errorf("%s: parameters belong to built-in problems; edit the problem file instead", ref)
	}
	return Read(ref)
}

func lookup(c *problems.Catalog, name string) (problems.Builtin, error) {
	if c == nil {
		c = problems.Builtins()
	}
	return c.Lookup(name)
}

// configured returns the Spec of a catalog's problem with parameters changed.
func configured(b problems.Builtin, settings []string) (*Spec, error) {
	b, err := b.With(settings)
	if err != nil {
		return nil, err
	}
	if _, err := b.Make(smallest(b.Dimension)); err != nil { // parameters out of range
		return nil, err
	}
	s := &Spec{builtin: &b}
	for _, p := range b.Parameters { // all of them, so that equal problems have equal fingerprints
		s.settings = append(s.settings, p.Name+"="+b.Text(p))
	}
	return s, nil
}

func smallest(dimension int) [3]int {
	n, _ := problems.Grid(dimension, []int{1})
	return n
}

// Read reads a problem file and the arrays named there, relative to its directory.
func Read(path string) (*Spec, error) {
	text, err := input.ReadFile(path, MaxTextBytes)
	if err != nil {
		return nil, &Error{File: path, Reason: err.Error()}
	}
	return newSpec(path, text, func(name string, check headCheck) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
		}
		f, info, err := input.Open(name, MaxArrayBytes)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return input.Headed(f, MaxArrayBytes, npy.HeaderBytes, func(head []byte) error { return check(head, info.Size()) })
	})
}

// Parse parses the text of a problem file. name is the file name for error messages. open returns the bytes of
// an array named in the text.
func Parse(name string, text []byte, open func(array string) ([]byte, error)) (*Spec, error) {
	return newSpec(name, text, func(array string, _ headCheck) ([]byte, error) { return open(array) })
}

func newSpec(name string, text []byte, open attach) (*Spec, error) {
	s := &Spec{name: name, text: bytes.Clone(text)}
	var err error
	s.document, err = parseDocument(name, s.text, func(array string, check headCheck) ([]byte, error) {
		if data, found := find(s.arrays, array); found {
			return data, nil
		}
		data, err := open(array, check)
		if err == nil {
			s.arrays = append(s.arrays, attachment{array, data})
		}
		return data, err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Name returns the name of the built-in, or of the problem file without directory and extension, as spelling.Visible does.
func (s *Spec) Name() string {
	if s.builtin != nil {
		return s.builtin.Name
	}
	base := filepath.Base(s.name)
	return spelling.Visible(strings.TrimSuffix(base, filepath.Ext(base)))
}

// Dimension returns the dimension of the problem: 1, 2 or 3.
func (s *Spec) Dimension() int {
	if s.builtin != nil {
		return s.builtin.Dimension
	}
	return s.document.dimension
}

// Iteration reports whether the problem is an iteration, whose grid is that of its unknowns.
func (s *Spec) Iteration() bool { return s.builtin != nil && s.builtin.Iteration }

// Option returns the contract of an American option, and nil for other problems.
func (s *Spec) Option() *option.Option {
	if s.builtin != nil {
		return s.builtin.Option()
	}
	return s.document.option
}

// Fingerprint returns a hash that is equal for two problems if and only if the built-in and its parameters, or
// the text and the arrays of the problem files, are equal. It does not depend on the file's name or the grid.
func (s *Spec) Fingerprint() [sha256.Size]byte {
	nameless := *s
	nameless.name = ""
	return sha256.Sum256(nameless.body())
}

// Build returns the problem on a grid of n interior points per axis, with 1 on unused axes (see problems.Grid).
// It does not check the values at the points of the grid (see Validate).
func (s *Spec) Build(n [3]int) (*problem.Problem, error) {
	if s.builtin != nil {
		return s.builtin.Make(n)
	}
	return s.document.build(s.Name(), n)
}

// Load opens a built-in or a problem file, builds it on a grid (one number for all axes, or one per axis) and
// validates it.
func Load(ref string, n []int) (*problem.Problem, Description, error) {
	s, err := Open(nil, ref, nil)
	if err != nil {
		return nil, Description{}, err
	}
	p, err := s.BuildValid(n)
	return p, s.Describe(), err
}

// BuildValid combines problems.Grid, Build and Validate.
func (s *Spec) BuildValid(n []int) (*problem.Problem, error) {
	grid, err := problems.Grid(s.Dimension(), n)
	if err != nil {
		return nil, fmt.Errorf("problem %s: %w", s.Name(), err)
	}
	p, err := s.Build(grid)
	if err == nil {
		err = s.Validate(p)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
