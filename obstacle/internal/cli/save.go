package cli

import (
	"fmt"
	"path/filepath"
	"strings"

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
	case output.IsDevice(name):
		return nil
	}
	return badInput(output.CheckFile(name))
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
