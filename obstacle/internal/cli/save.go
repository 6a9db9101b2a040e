package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
)

// checkWritable returns an error, before a long run, if a file could not be written after it.
func checkWritable(name string) error {
	switch dir := filepath.Dir(name); {
	case !isDirectory(dir):
		return usage("%s cannot be written: there is no directory %s", name, dir)
	case isDirectory(name):
		return usage("%s is a directory: give a file", name)
	case isDevice(name):
		return nil
	}
	return badInput(output.CheckFile(name))
}

// save writes a file. It replaces an existing one only after everything is written.
func save(name string, write func(io.Writer) error) error {
	if !isDevice(name) {
		return output.Replace(name, write)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0) // a pipe may have no reader
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("output %s: it is a pipe that no process reads", name)
	}
	if err != nil {
		return fmt.Errorf("output %s: %w", name, err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("output %s: %w", name, err)
	}
	return nil
}

// isDevice reports whether name is neither a regular file nor a directory, such as a pipe, or stands for an open file, as
// /dev/stdout does: it cannot be replaced.
func isDevice(name string) bool {
	i, err := os.Stat(name)
	if err != nil || i.IsDir() {
		return false
	}
	path, _ := filepath.Abs(name)
	folder := filepath.Dir(path)
	return !i.Mode().IsRegular() || folder == "/dev" || folder == "/dev/fd" || strings.HasPrefix(folder, "/proc/")
}

// outcomeOf returns the entry of an output, whose error is err.
func outcomeOf(name string, err error) report.Output {
	o := report.Output{File: name}
	if err != nil {
		o.Error = err.Error()
	}
	return o
}

// unwritten returns the exit error of an answer some of whose files were not written, else nil.
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
