//go:build !unix

package host

import "time"

// Limit is a bound that the system puts on a process.
type Limit struct {
	Name string `json:"name"`
	Soft int64  `json:"soft"` // -1: none
	Hard int64  `json:"hard"`
	What string `json:"what"`
}

// Limits lists the bounds that a run may meet: none are known here.
func Limits() []Limit { return nil }

// CPUTime is what this process has used of the processors: not known here.
func CPUTime() time.Duration { return 0 }

// Free is the room left in the file system at path: not known here.
func Free(string) int64 { return -1 }
