package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Save writes a file. It replaces an existing one only after everything is written, and writes into a pipe or
// device.
func Save(name string, write func(io.Writer) error) error {
	if !IsDevice(name) {
		return Replace(name, write)
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

// IsDevice reports whether name is neither a regular file nor a directory, such as a pipe, or stands for an open file, as
// /dev/stdout does: it cannot be replaced.
func IsDevice(name string) bool {
	i, err := os.Stat(name)
	if err != nil || i.IsDir() {
		return false
	}
	path, _ := filepath.Abs(name)
	folder := filepath.Dir(path)
	return !i.Mode().IsRegular() || folder == "/dev" || folder == "/dev/fd" || strings.HasPrefix(folder, "/proc/")
}
