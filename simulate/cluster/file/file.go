// Package file reads and writes descriptions of clusters as YAML, and has the built-in
// ones. The keys are described in docs/simulation.md.
//
// Every refusal is an *Error that names the file, the line, the key and the reason.
package file

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/internal/yamldoc"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// Error is a refusal: file, line, key and reason.
type Error = yamldoc.Error

// MaxTextBytes is the length of the longest description.
const MaxTextBytes = 256 << 10

//go:embed builtin/*.yaml
var builtins embed.FS

// Names of the built-in descriptions, in order.
func Builtins() []string {
	entries, err := builtins.ReadDir("builtin")
	if err != nil {
		panic(err) // it is part of the program
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return out
}

// Text of a built-in description.
func BuiltinText(name string) ([]byte, bool) {
	text, err := builtins.ReadFile("builtin/" + name + ".yaml")
	return text, err == nil
}

// File is a description with the places of its keys.
type File struct {
	cluster.Description
	Builtin bool

	name  string
	lines reader
}

// Open reads what a user names on a command line: a built-in description, or the path of a
// file. others are names that the caller knows besides, for the message about a wrong one.
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
	text, err := yamldoc.ReadFile(ref, MaxTextBytes)
	if err != nil {
		return nil, &Error{File: ref, Reason: err.Error()}
	}
	return Parse(ref, text)
}

// Parse reads the text of a description and checks it; file stands for it in messages, and
// names the cluster if the text does not.
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

// Of makes a description that no file has into one that can be modelled.
func New(d *cluster.Description) (*File, error) {
	f := &File{Description: *d, name: d.Name, lines: reader{lines: map[string]int{}}}
	if err := f.Check(); err != nil {
		return nil, f.lines.place(f.name, err)
	}
	return f, nil
}

// WithoutEvents is the same cluster when nothing happens to it.
func (f *File) WithoutEvents() *File {
	quiet := *f
	quiet.Events = nil
	return &quiet
}

// nameOf a file is its base without the extension of YAML.
func nameOf(file string) string {
	base := filepath.Base(file)
	if ext := filepath.Ext(base); ext == ".yaml" || ext == ".yml" {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}

// Model is the cluster of so many machines; see cluster.Description.Model.
func (f *File) Model(machines int) (*cluster.Model, error) {
	m, err := f.Description.Model(machines)
	if err != nil {
		return nil, f.lines.place(f.name, err)
	}
	return m, nil
}

// Is tells whether a file looks like the description of a cluster, right or wrong, rather
// than like something else that is written in YAML.
func Detect(path string) bool {
	text, err := yamldoc.ReadFile(path, MaxTextBytes)
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
