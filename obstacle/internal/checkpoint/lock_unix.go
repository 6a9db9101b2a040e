//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package checkpoint

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock locks a file that is open for writing until it is closed or the process ends, and reports whether another
// process has locked it. A file system without locks locks nothing.
func lock(f *os.File) (taken bool) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK)
}
