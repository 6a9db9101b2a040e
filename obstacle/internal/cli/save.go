package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// writable refuses, before a long run, a file that could not be written after it.
func writable(name string) error {
	switch folder := filepath.Dir(name); {
	case !isFolder(folder):
		return usage("%s cannot be written: no folder %s", name, folder)
	case isFolder(name):
		return usage("%s is a folder: give a file", name)
	case isDevice(name):
		return nil
	}
	return badInput(output.CheckFile(name))
}

// save writes a file, and replaces one of that name only when all is written.
func save(name string, write func(io.Writer) error) error {
	if !isDevice(name) {
		return output.Replace(name, write)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("output %s: %w", name, err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("output %s: %w", name, err)
	}
	return nil
}

// isDevice reports whether name is there and neither a regular file nor a folder: a pipe, say.
func isDevice(name string) bool {
	i, err := os.Stat(name)
	return err == nil && !i.Mode().IsRegular() && !i.IsDir()
}

// outcomeOf is the entry of the answer for an output that was written, or was not because of err.
func outcomeOf(name string, err error) report.Output {
	o := report.Output{File: name}
	if err != nil {
		o.Error = err.Error()
	}
	return o
}

// unwritten is the exit error of an answer that has been printed while some of its files are
// missing; nil: all were written.
func unwritten(all []report.Output) error {
	var lines []string
	for _, o := range all {
		if o.Error != "" {
			lines = append(lines, o.Error)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return failed(fmt.Errorf("%d of %d files were not written: %s", len(lines), len(all), strings.Join(lines, "; ")))
}
