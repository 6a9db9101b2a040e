package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// disk holds the operations that change files. Tests cut them off.
type disk interface {
	Create(name string) (output, error)
	Rename(from, to string) error
	Remove(name string) error
	Sync(directory string) error // makes renames permanent
}

// output is a file being written.
type output interface {
	io.WriteCloser
	Sync() error
}

// system is the file system.
type system struct{}

func (system) Create(name string) (output, error) { return os.Create(name) }
func (system) Rename(from, to string) error       { return os.Rename(from, to) }
func (system) Remove(name string) error           { return os.Remove(name) }

// Sync does nothing where directories cannot be synchronised.
func (system) Sync(directory string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(directory)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// reason removes the name from a file system error.
func reason(err error) error {
	if p, is := errors.AsType[*fs.PathError](err); is {
		return p.Err
	}
	if l, is := errors.AsType[*os.LinkError](err); is {
		return l.Err
	}
	return err
}
