// Package file reads and writes descriptions of clusters as YAML, and contains the built-in ones.
// docs/simulation.md describes the keys.
//
// Errors are *Error with the file, the line, the key and the reason.
package file

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/internal/yamldoc"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// Error reports an invalid file: file, line, key and reason.
type Error = yamldoc.Error

// MaxTextBytes is the length of the longest description.
const MaxTextBytes = 256 << 10

//go:embed builtin/*.yaml
var builtins embed.FS

// Builtins returns the names of the built-in descriptions, in order.
func Builtins() []string {
	entries, err := builtins.ReadDir("builtin")
	if err != nil {
		panic(err) // the files are part of the program
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return out
}

// BuiltinText returns the text of a built-in description.
func BuiltinText(name string) ([]byte, bool) {
	text, err := builtins.ReadFile("builtin/" + name + ".yaml")
	return text, err == nil
}

// File is a description with the lines of its keys.
type File struct {
	cluster.Description
	Builtin bool

	name  string
	lines reader
}

// Open reads a built-in description by its name, or a file by its path. others are names that the
// caller knows besides; the error for an unknown name lists them.
func Open(ref string, others ...string) (*File, error) {
	if text, ok := BuiltinText(ref); ok {
		f, err := Parse(ref, text)
		if f != nil {
			f.Builtin = true
		}
		return f, err
	}
	ext := filepath.Ext(ref)
	if _, err := os.Stat(ref); err != nil && ext != ".yaml" && ext != ".yml" && !strings.ContainsRune(ref,
		filepath.Separator) {
		known := append(Builtins(), others...)
		return nil, fmt.Errorf("no model of a cluster is called %q%s; there are %s, or give a file", ref,
			spelling.Suggest(ref, known), strings.Join(known, ", "))
	}
	text, err := input.ReadFile(ref, MaxTextBytes)
	if err != nil {
		return nil, &Error{File: ref, Reason: err.Error()}
	}
	return Parse(ref, text)
}

// Parse reads the text of a description and checks it. Errors name the file, whose base is the name
// of the cluster if the text has none.
func Parse(file string, text []byte) (*File, error) {
	root, err := yamldoc.Parse(file, "cluster file", text, MaxTextBytes)
	if err != nil {
		return nil, err
	}
	f := &File{name: file, lines: reader{lines: map[string]int{}}}
	f.Description = *f.lines.parse(nameOf(file), yamldoc.Entry{Source: yamldoc.Source{File: file}, Value: root})
	if f.lines.err != nil {
		return nil, f.lines.err
	}
	if err := f.Check(); err != nil {
		return nil, f.lines.place(file, err)
	}
	return f, nil
}

// New checks a description and returns it as a File without lines.
func New(d *cluster.Description) (*File, error) {
	f := &File{Description: *d, name: d.Name, lines: reader{lines: map[string]int{}}}
	if err := f.Check(); err != nil {
		return nil, f.lines.place(f.name, err)
	}
	return f, nil
}

// WithoutEvents returns the same cluster without events.
func (f *File) WithoutEvents() *File {
	quiet := *f
	quiet.Events = nil
	return &quiet
}

// nameOf returns the base of a file's name without the extension of YAML, as spelling.Visible does.
func nameOf(file string) string {
	base := filepath.Base(file)
	if ext := filepath.Ext(base); ext == ".yaml" || ext == ".yml" {
		base = strings.TrimSuffix(base, ext)
	}
	return spelling.Visible(base)
}

// Model returns the cluster of so many machines; see cluster.Description.Model.
func (f *File) Model(machines int) (*cluster.Model, error) {
	m, err := f.Description.Model(machines)
	if err != nil {
		return nil, f.lines.place(f.name, err)
	}
	return m, nil
}

// Detect reports whether a file looks like a description of a cluster, valid or not, and not like
// another YAML file.
func Detect(path string) bool {
	text, err := input.ReadFile(path, MaxTextBytes)
	if err != nil {
		return false
	}
	root, err := yamldoc.Parse(path, "file", text, MaxTextBytes)
	m, ok := root.(*ast.MappingNode)
	if err != nil || !ok {
		return false
	}
	for _, v := range m.Values {
		switch yamldoc.KeyName(v.Key) {
		case "machines", "networks", "sites":
			return true
		}
	}
	return false
}
