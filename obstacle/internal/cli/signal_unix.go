//go:build unix

package cli

import (
	"os"
	"syscall"
)

// writeSignals returns the signals that end a program after a failed write. If they are ignored, the write returns an
// error instead, and the other outputs are still written.
func writeSignals() []os.Signal { return []os.Signal{syscall.SIGPIPE, syscall.SIGXFSZ} }
