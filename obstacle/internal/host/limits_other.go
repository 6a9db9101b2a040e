//go:build !unix

package host

import "time"

// Limit is a resource limit of this process.
type Limit struct {
	Name string `json:"name"`
	Soft int64  `json:"soft"` // −1 if there is none
	Hard int64  `json:"hard"`
	What string `json:"what"`
}

// Limits returns nil: the limits are unknown on this system.
func Limits() []Limit { return nil }

// CPUTime returns 0: the processor time is unknown on this system.
func CPUTime() time.Duration { return 0 }

// Free returns −1: the free space is unknown on this system.
func Free(string) int64 { return -1 }
