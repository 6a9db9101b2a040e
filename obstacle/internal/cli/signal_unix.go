//go:build unix

package cli

import (
	"os"
	"syscall"
)

// survivable are signals that end a program for a write that failed. Without them the write
// returns its error, and the rest of the answer is not lost.
func survivable() []os.Signal { return []os.Signal{syscall.SIGPIPE, syscall.SIGXFSZ} }
