//go:build unix

package meet

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// own reports whether a file belongs to the user of this process.
func own(i fs.FileInfo) bool {
	s, is := i.Sys().(*syscall.Stat_t)
	return !is || int(s.Uid) == os.Geteuid()
}
