//go:build !unix

package host

import "time"

// Limits returns nil: the limits are unknown on this system.
func Limits() []Limit { return nil }

// CPUTime returns 0: the processor time is unknown on this system.
func CPUTime() time.Duration { return 0 }

// Free returns −1: the free space is unknown on this system.
func Free(string) int64 { return -1 }
