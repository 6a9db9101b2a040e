package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// newest returns the step and the name of the newest whole set, of a directory whose newest set is whole.
func newest(t *testing.T, directory string) (step int, name string) {
	t.Helper()
	f, err := Open(directory, nil)
	require.NoError(t, err)
	require.Empty(t, f.Skipped)
	return f.Step, filepath.Base(f.Name)
}

// continued returns a writer of a greater term, in place of one that only seems lost.
func continued(t *testing.T, directory string, w *Writer, term uint64) *Writer {
	t.Helper()
	next, err := Continue(directory, "v1", w.Run(), term)
	require.NoError(t, err)
	next.disk = unlimited()
	return next
}

// The process that leads after a loss goes on in the same directory, also while the one before still has the lock. That
// one writes no more once the new one has written. Two sets are kept, whoever wrote them.
func TestContinue(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "c")
	first, err := Create(directory, "v1")
	require.NoError(t, err)
	first.disk = unlimited()
	for step := range 2 {
		require.NoError(t, first.Write(small(t, step)))
	}
	second := continued(t, directory, first, 3)
	require.False(t, second.holds)
	require.NoError(t, first.Write(small(t, 2)), "nothing newer is there yet")
	require.NoError(t, second.Write(small(t, 1)))
	step, name := newest(t, directory)
	require.Equal(t, 1, step)
	require.Equal(t, "manifest-3.1.json", name)
	require.NoFileExists(t, filepath.Join(directory, "manifest-1.json"))
	require.FileExists(t, filepath.Join(directory, "manifest-2.json"), "the newest of the first process when it was lost")

	before := names(t, directory)
	require.ErrorIs(t, first.Write(small(t, 3)), ErrSuperseded)
	require.Equal(t, before, names(t, directory))
	first.Close()
	require.NoError(t, second.Write(small(t, 2)))
	require.True(t, second.holds)
	_, all, err := generations(directory)
	require.NoError(t, err)
	require.Equal(t, []generation{{3, 2}, {3, 1}}, all)
	third := continued(t, directory, first, 7)
	require.NoError(t, third.Write(small(t, 3)))
	_, name = newest(t, directory)
	require.Equal(t, "manifest-7.1.json", name)
	require.ErrorIs(t, second.Write(small(t, 3)), ErrSuperseded)
}

// interrupting is a disk that calls a function before one of its operations.
type interrupting struct {
	disk
	left int
	do   func()
}

func (d *interrupting) next() {
	if d.left--; d.left == 0 {
		d.do()
	}
}

func (d *interrupting) Create(name string) (output, error) { d.next(); return d.disk.Create(name) }
func (d *interrupting) Rename(from, to string) error       { d.next(); return d.disk.Rename(from, to) }
func (d *interrupting) Remove(name string) error           { d.next(); return d.disk.Remove(name) }
func (d *interrupting) Sync(directory string) error        { d.next(); return d.disk.Sync(directory) }

// A process is stopped in the midst of a write, at every operation, and goes on after another one has led the run and
// written one or several sets. The newest set is whole, and that of the process that leads.
func TestLateWriter(t *testing.T) {
	for _, sets := range []int{1, 3} {
		for cut, done := 1, false; !done; cut++ {
			what := fmt.Sprintf("%d sets, operation %d", sets, cut)
			directory := filepath.Join(t.TempDir(), "c")
			first, err := Create(directory, "v1")
			require.NoError(t, err)
			first.disk = unlimited()
			for step := range 2 {
				require.NoError(t, first.Write(small(t, step)))
			}
			d := &interrupting{unlimited(), cut, func() {
				second := continued(t, directory, first, 2)
				for range sets {
					require.NoError(t, second.Write(small(t, 3)), what)
				}
				second.Close()
			}}
			first.disk = d
			err = first.Write(small(t, 2))
			if done = d.left > 0; done {
				require.NoError(t, err)
				break
			}
			f, err := Open(directory, nil)
			require.NoError(t, err, what)
			require.Empty(t, f.Skipped, what)
			require.Equal(t, 3, f.Step, what)
			require.Equal(t, fmt.Sprintf("manifest-2.%d.json", sets), filepath.Base(f.Name), what)
		}
	}
}

// A directory of another run is left alone, and so is one that another run has taken over.
func TestContinueRefuses(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "c")
	_, err := Continue(directory, "v1", "run", 1)
	require.ErrorContains(t, err, "checkpoint "+directory+": the directory cannot be read: no such file or directory")
	require.NoDirExists(t, directory)

	first, err := Create(directory, "v1")
	require.NoError(t, err)
	_, err = Continue(directory, "v1", "run", 1)
	require.ErrorContains(t, err, "the directory belongs to another run")
	require.NoError(t, first.Write(small(t, 1)))
	second := continued(t, directory, first, 2)
	require.NoError(t, second.Write(small(t, 2)))
	first.Close()
	second.locked.Close() // as by a file system without locks

	f, err := Open(directory, nil)
	require.NoError(t, err)
	resumed, err := f.Writer("v1")
	require.NoError(t, err)
	_, err = Continue(directory, "v1", first.Run(), 3)
	require.ErrorContains(t, err, "the directory belongs to another run")
	second.locked, err = os.Open(filepath.Join(directory, lockName))
	require.NoError(t, err)
	require.ErrorIs(t, second.Write(small(t, 3)), ErrSuperseded)
	require.NoError(t, resumed.Write(small(t, 4)))
	step, name := newest(t, directory)
	require.Equal(t, 4, step)
	require.Equal(t, "manifest-3.2.json", name, "a name that no process of the run before uses")

	// A directory that no run has used, on another host, is used.
	empty := t.TempDir()
	w, err := Continue(empty, "v1", "run", 2)
	require.NoError(t, err)
	require.NoError(t, w.Write(small(t, 1)))
	_, name = newest(t, empty)
	require.Equal(t, "manifest-2.1.json", name)
}

// Names of files are read back, and no other name is taken for one.
func TestNamesOfGenerations(t *testing.T) {
	for _, g := range []generation{{0, 1}, {3, 12}, {1 << 40, 1 << 41}} {
		for _, name := range []string{manifestName(g), boxName(g, 7), boxName(g, 0) + temporary} {
			got, is := generationOf(name)
			require.True(t, is, name)
			require.Equal(t, g, got, name)
		}
	}
	for _, name := range []string{
		"manifest-0.json", "manifest-0.1.json", "manifest-1.0.json", "manifest-1.2.3.json", "manifest-01.json",
		"manifest-.1.json", "manifest-1..json", "manifest-+1.json", "box-1.npy", "box-1.1.npy", "box-1--1.npy", lockName,
	} {
		_, is := generationOf(name)
		require.False(t, is, name)
	}
}

// A symbolic link in place of the lock is refused, and the file that it names stays as it is.
func TestTheLockIsNoLink(t *testing.T) {
	directory := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(other, filepath.Join(directory, lockName)))
	_, err := Create(directory, "test")
	require.ErrorContains(t, err, "not a regular file")
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}
