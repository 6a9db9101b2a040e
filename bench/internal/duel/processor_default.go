//go:build !unix

package duel

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
