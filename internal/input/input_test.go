//go:build unix

package input

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// ReadFile reads regular files up to a length, and never waits for a pipe or reads a device.
func TestReadFile(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("four", []byte("abcd"), 0o600))
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	require.NoError(t, os.Symlink("pipe", "link"))
	text, err := ReadFile("four", 4)
	require.NoError(t, err)
	require.Equal(t, "abcd", string(text))
	for name, want := range map[string]string{
		"four": "its 4 bytes are more than the 3 allowed", "pipe": "it is not a regular file",
		"link": "it is not a regular file", ".": "it is not a regular file", "/dev/zero": "it is not a regular file",
		"none": "there is no such file", filepath.Join("four", "x"): "not a directory",
	} {
		_, err := ReadFile(name, 3)
		require.EqualError(t, err, want, name)
		require.Equal(t, name == "none", errors.Is(err, fs.ErrNotExist), name)
	}
	for name, want := range map[string]string{
		"four": "its 4 bytes are more than the 3 allowed", ".": "it is a directory", "none": "there is no such file",
		"/dev/zero": "it is a device, neither a file nor a pipe",
	} {
		_, err := OpenStream(name, 3)
		require.EqualError(t, err, want, name)
	}
	_, err = ReadFile("/proc/self/status", 10) // its size is 0
	require.EqualError(t, err, "it has more than the 10 bytes allowed")
}

// The memory for a file is allocated once.
func TestMemory(t *testing.T) {
	const size = 16 << 20
	name := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(name, make([]byte, size), 0o600))
	for what, read := range map[string]func(f *os.File) ([]byte, error){
		"All":    func(f *os.File) ([]byte, error) { return All(f, 1<<40) },
		"Headed": func(f *os.File) ([]byte, error) { return Headed(f, 1<<40, 100, func([]byte) error { return nil }) },
	} {
		f, _, err := Open(name, size)
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		all, err := read(f)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Len(t, all, size)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size+size/4), what)
		require.NoError(t, f.Close())
	}
}

// All and Line read no more than their bounds.
func TestBounds(t *testing.T) {
	text, err := All(strings.NewReader("abcd"), 4)
	require.NoError(t, err)
	require.Equal(t, "abcd", string(text))
	_, err = All(strings.NewReader("abcde"), 4)
	require.EqualError(t, err, "it has more than the 4 bytes allowed")
	for from, want := range map[string]string{"a\nb\n": "a\n", "ab": "ab", "": "", "\n": "\n"} {
		line, err := Line(strings.NewReader(from), 16)
		require.NoError(t, err)
		require.Equal(t, want, string(line))
	}
	_, err = Line(strings.NewReader(strings.Repeat("x", 1000)), 16)
	require.EqualError(t, err, "its first line has more than the 16 bytes allowed")
}

// Headed reads what never ends no further than its header, which check refuses.
func TestHeaded(t *testing.T) {
	zeros, err := os.Open("/dev/zero")
	require.NoError(t, err)
	defer zeros.Close()
	wrong := errors.New("wrong")
	_, err = Headed(zeros, 1<<62, 16, func(b []byte) error {
		require.Len(t, b, 16)
		return wrong
	})
	require.ErrorIs(t, err, wrong)
	accept := func([]byte) error { return nil }
	for _, n := range []int{0, 1, 3, 4} {
		text, err := Headed(strings.NewReader("abc"), 3, n, accept)
		require.NoError(t, err)
		require.Equal(t, "abc", string(text))
		_, err = Headed(strings.NewReader("abcd"), 3, n, accept)
		require.EqualError(t, err, "it has more than the 3 bytes allowed")
	}
}

// A read that never returns ends with the context.
func TestWithin(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	forever := make(chan struct{})
	defer close(forever)
	why := errors.New("enough")
	_, err := Within(ctx, func() (int, error) { cancel(why); <-forever; return 1, nil })
	require.ErrorIs(t, err, why)
	n, err := Within(t.Context(), func() (int, error) { return 1, nil })
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
