// Package meet lets the processes of a parallel command find each other through a directory that all of their hosts
// share: the first one writes its address and the key of the run to a file that only its user can read.
package meet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/internal/input"
)

// Place is where a run can be joined.
type Place struct {
	Addresses []string `json:"addresses,omitempty"` // HOST:PORT, the most likely one first
	Key       []byte   `json:"key,omitempty"`       // of the run
	Host      string   `json:"host"`                // of the process that wrote it
	Pid       int      `json:"pid"`
	Refused   string   `json:"refused,omitempty"` // why there is no run; then there are no addresses
}

// maxBytes bounds the size of a file.
const maxBytes = 1 << 16

// Name returns the path of the file of a job.
func Name(directory, job string) string { return filepath.Join(directory, "meet-"+job+".json") }

// Default returns the directory that is used if the user names none.
func Default() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no directory to meet in (%w): give --meet DIR, on a file system that all hosts share", err)
	}
	return filepath.Join(cache, "obstacle", "meet"), nil
}

// Check returns an error for a directory in which other users could put a file. It makes a missing directory.
func Check(directory string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("--meet: %w", err)
	}
	i, err := os.Stat(directory)
	switch {
	case err != nil:
		return fmt.Errorf("--meet: %w", err)
	case !i.IsDir():
		return fmt.Errorf("--meet %s: not a directory", directory)
	case !input.Own(i):
		return fmt.Errorf("--meet %s: it belongs to another user, who could read the run's key; name a directory of yours",
			directory)
	case runtime.GOOS != "windows" && i.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("--meet %s: other users can write to it (mode %04o): chmod go-w, or make one with mkdir -m 700",
			directory, i.Mode().Perm())
	}
	return nil
}

// ErrInUse is wrapped by the error of Publish if another process that is alive has published a place for the job.
var ErrInUse = errors.New("another run meets there")

// Publish writes the place of a job. A file of the same job that a dead run left is replaced; alive reports whether the
// run of a place goes on. The returned function removes the file.
func Publish(directory, job string, p Place, alive func(Place) bool) (remove func(), err error) {
	if err := Check(directory); err != nil {
		return nil, err
	}
	name := Name(directory, job)
	temporary, err := write(directory, p)
	if err != nil {
		return nil, fmt.Errorf("--meet %s: %w", directory, err)
	}
	defer func() { _ = os.Remove(temporary) }()
	for range 3 {
		err = os.Link(temporary, name) // atomic, and it never replaces a file
		if !errors.Is(err, fs.ErrExist) {
			break
		}
		old, unreadable := read(name)
		if unreadable == nil && old.Refused == "" && alive(old) {
			return nil, fmt.Errorf("%s: %w, of process %d on %s: give each run a --meet directory of its own", name, ErrInUse,
				old.Pid, old.Host)
		}
		if gone := os.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			return nil, fmt.Errorf("--meet: a file is left over from a dead run: %w", gone)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--meet: %w", err)
	}
	return func() { _ = os.Remove(name) }, nil
}

// write writes a place to a new file that only this user can read.
func write(directory string, p Place) (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(directory, ".meet-*") // O_EXCL, mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(text, '\n'))
	return f.Name(), errors.Join(err, f.Sync(), f.Close())
}

// pollEvery is the interval at which Find looks for the file. A directory of a network file system may show a new file
// some seconds late.
const pollEvery = 50 * time.Millisecond

// Find waits for the place of a job. It returns an error if ctx ends, or if the file or the directory may have been
// written by another user.
func Find(ctx context.Context, directory, job string) (Place, error) {
	name := Name(directory, job)
	for {
		p, err := read(name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return Place{}, fmt.Errorf("the first process of the job has not written %s: %w (is the directory on a file "+
				"system that all hosts share? --meet DIR names another one)", name, context.Cause(ctx))
		}
	}
}

func read(name string) (p Place, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return p, fmt.Errorf("--meet: %w", err)
	}
	defer f.Close()
	i, err := f.Stat()
	switch {
	case err != nil:
		return p, fmt.Errorf("--meet: %w", err)
	case !i.Mode().IsRegular() || !input.Own(i) || runtime.GOOS != "windows" && i.Mode().Perm()&0o077 != 0:
		return p, fmt.Errorf("--meet: %s is not a file that only you can read and write (it has mode %04o): delete it",
			name, i.Mode().Perm())
	}
	if err = Check(filepath.Dir(name)); err != nil {
		return p, err
	}
	text, err := input.All(f, maxBytes)
	if err != nil {
		return p, fmt.Errorf("--meet %s: %w", name, err)
	}
	return decode(name, text)
}

// decode decodes a file.
func decode(name string, text []byte) (p Place, err error) {
	if err = json.Unmarshal(text, &p); err == nil && p.Refused == "" && (len(p.Addresses) == 0 || len(p.Key) == 0) {
		err = errors.New("no address or no key")
	}
	if err != nil {
		return Place{}, fmt.Errorf("--meet: %s was not written by this program (%w): delete it", name, err)
	}
	return p, nil
}
