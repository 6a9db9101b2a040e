package ether

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A process that may not open another file gets an error, wherever Open meets the limit, and no file stays open.
func TestOpenWithoutFiles(t *testing.T) {
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	open := func() (*Link, error) { return Open(Config{Listen: "127.0.0.1:0"}) }
	l, err := open() // the network poller of the runtime has its files from here on
	require.NoError(t, err)
	require.NoError(t, l.Close())
	next := func() int { // the number of the next file
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer f.Close()
		return int(f.Fd()) //nolint:gosec // small
	}
	first := next()
	for more := 0; ; more++ {
		low := unix.Rlimit{Cur: uint64(first + more), Max: old.Max} //nolint:gosec // small
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
		l, err := open()
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
		if err == nil {
			require.NoError(t, l.Close())
			require.Positive(t, more)
			break
		}
		require.ErrorContains(t, err, "too many open files")
		require.Less(t, more, 20)
		require.Equal(t, first, next(), "a file stays open")
	}
}
