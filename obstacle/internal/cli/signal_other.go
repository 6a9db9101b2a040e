//go:build !unix

package cli

import "os"

// traceSignals returns nil: this system has no such signal.
func traceSignals() []os.Signal { return nil }

// writeSignals returns nil: this system has no such signals.
func writeSignals() []os.Signal { return nil }
