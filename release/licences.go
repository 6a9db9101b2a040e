package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// licenceFile matches the names of files with the terms of a module.
var licenceFile = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|copyright)([-._].*)?$`)

// licences returns the licences of Go and of the modules in a program. Most of them must accompany a binary.
func licences(ctx context.Context, info *debug.BuildInfo) ([]byte, error) {
	root, err := output(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.WriteString("The program contains Go's standard library and the modules below, under the terms that follow.\n")
	if err := appendLicence(&text, "Go "+info.GoVersion, strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		directory, err := output(ctx, []string{"GOFLAGS="}, "go", "list", "-m", "-f", "{{.Dir}}", d.Path)
		if err != nil {
			return nil, err
		}
		if err := appendLicence(&text, d.Path+" "+d.Version, strings.TrimSpace(string(directory))); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// appendLicence appends the files with terms that a directory contains, under a title. There must be one.
func appendLicence(text *bytes.Buffer, title, directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(directory, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 80), title, e.Name(), bytes.TrimSpace(content))
		found = true
	}
	if !found {
		return fmt.Errorf("%s: there is no file with its licence in %s", title, directory)
	}
	return nil
}
