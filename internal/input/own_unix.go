//go:build unix

package input

import (
	"io/fs"
	"os"
	"syscall"
)

// Own reports whether a file belongs to the user of this process.
func Own(i fs.FileInfo) bool {
	s, is := i.Sys().(*syscall.Stat_t)
	return !is || int(s.Uid) == os.Geteuid()
}
