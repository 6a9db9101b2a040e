//go:build unix

package cli

import (
	"os"
	"syscall"
)

// traceSignals returns the signal that has traces written.
func traceSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1} }

// writeSignals returns the signals that end a program after a failed write. If they are ignored, the write returns an
// error instead, and the other outputs are still written.
func writeSignals() []os.Signal { return []os.Signal{syscall.SIGPIPE, syscall.SIGXFSZ} }
