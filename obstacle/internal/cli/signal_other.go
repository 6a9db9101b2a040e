//go:build !unix

package cli

import "os"

// writeSignals returns nil: this system has no such signals.
func writeSignals() []os.Signal { return nil }
