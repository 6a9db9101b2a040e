// Package file turns what a user names, a built-in problem or a YAML problem
// file, into a problem.Problem, and into bytes that carry the problem to a peer
// on another machine. Problem files are described in docs/problems.md.
//
// Every refusal is an *Error that names the file, the line, the key and the
// reason.
package file

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/p2pdc/p2pdc/internal/yamldoc"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Limits on what is read. A problem file is written by hand; an array is not.
const (
	MaxTextBytes  = 64 << 10
	MaxArrayBytes = 16 << 30
)

// Error is a refusal: file, line, key and reason.
type Error = yamldoc.Error

// Spec is a problem before its grid is chosen. It is self-contained: it holds
// the text of a problem file and the arrays that the text names, so it can be
// built again wherever its bytes arrive. It is immutable and safe for concurrent
// use.
type Spec struct {
	builtin  *problems.Builtin // nil: a problem file
	settings []string

	name     string // file name for messages
	text     []byte
	arrays   []attachment
	document *document
}

// attachment is an array that a problem file names.
type attachment struct {
	name string // as the problem file has it
	data []byte // the bytes of the .npy file
}

// Open reads what a user names on a command line: the name of a problem of the catalog, or the path of a problem
// file. settings ("name=value") change parameters of the catalog's problem. A nil catalog holds the built-in problems.
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

// Builtin returns the Spec of a built-in problem.
func Builtin(name string, settings []string) (*Spec, error) {
	b, err := problems.Lookup(name)
	if err != nil {
		return nil, err
	}
	return configured(b, settings)
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
	return &Spec{builtin: &b, settings: canonicalSettings(b)}, nil
}

// canonicalSettings writes every parameter, so that two ways to say the same
// problem have the same fingerprint.
func canonicalSettings(b problems.Builtin) []string {
	var s []string
	for _, p := range b.Parameters {
		s = append(s, p.Name+"="+b.Text(p))
	}
	return s
}

func smallest(dimension int) [3]int {
	n, _ := problems.Grid(dimension, []int{1})
	return n
}

// Read reads a problem file and the arrays that it names, relative to its
// directory.
func Read(path string) (*Spec, error) {
	text, err := yamldoc.ReadFile(path, MaxTextBytes)
	if err != nil {
		return nil, &Error{File: path, Reason: err.Error()}
	}
	return Parse(path, text, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
		}
		return yamldoc.ReadFile(name, MaxArrayBytes)
	})
}

// Parse reads the text of a problem file; name stands for it in messages. open
// returns the bytes of an array that the text names.
func Parse(name string, text []byte, open func(array string) ([]byte, error)) (*Spec, error) {
	s := &Spec{name: name, text: bytes.Clone(text)}
	attach := func(array string) ([]byte, error) {
		for _, a := range s.arrays {
			if a.name == array {
				return a.data, nil
			}
		}
		data, err := open(array)
		if err == nil {
			s.arrays = append(s.arrays, attachment{array, data})
		}
		return data, err
	}
	var err error
	s.document, err = parseDocument(name, s.text, attach)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Name is the built-in's name, or the problem file's without directory and
// extension.
func (s *Spec) Name() string {
	if s.builtin != nil {
		return s.builtin.Name
	}
	base := filepath.Base(s.name)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Dimension is 1, 2 or 3.
func (s *Spec) Dimension() int {
	if s.builtin != nil {
		return s.builtin.Dimension
	}
	return s.document.dimension
}

// Option is the contract of an American option, nil for every other problem.
func (s *Spec) Option() *option.Option {
	if s.builtin != nil {
		return s.builtin.Option()
	}
	return s.document.option
}

// Fingerprint tells problems apart: equal if and only if the built-in and its
// parameters, or the text and the arrays of the problem files, are equal. The
// file's name and the grid are no part of it.
func (s *Spec) Fingerprint() [sha256.Size]byte {
	nameless := *s
	nameless.name = ""
	return sha256.Sum256(nameless.body())
}

// Build makes the problem on a grid of n interior points per axis (1 on unused
// axes; see problems.Grid). It does not look at the grid's points: see Validate.
func (s *Spec) Build(n [3]int) (*problem.Problem, error) {
	if s.builtin != nil {
		return s.builtin.Make(n)
	}
	return s.document.build(s.Name(), n)
}

// Load reads a built-in's name or a problem file, builds it on a grid (one
// number for all axes, or one per axis) and validates it there.
func Load(ref string, n []int) (*problem.Problem, Description, error) {
	s, err := Open(nil, ref, nil)
	if err != nil {
		return nil, Description{}, err
	}
	p, err := s.BuildValid(n)
	return p, s.Describe(), err
}

// BuildValid is problems.Grid, Build and Validate in one.
func (s *Spec) BuildValid(n []int) (*problem.Problem, error) {
	grid, err := problems.Grid(s.Dimension(), n)
	if err != nil {
		return nil, fmt.Errorf("problem %s: %w", s.Name(), err)
	}
	p, err := s.Build(grid)
	if err != nil {
		return nil, err
	}
	if err := s.Validate(p); err != nil {
		return nil, err
	}
	return p, nil
}
