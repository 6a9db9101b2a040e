//go:build unix

package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// Limit is a bound that the system puts on a process.
type Limit struct {
	Name string `json:"name"`
	Soft int64  `json:"soft"` // -1: none
	Hard int64  `json:"hard"`
	What string `json:"what"`
}

// Limits lists the bounds that a run may meet.
func Limits() []Limit {
	var out []Limit
	for _, l := range limits() {
		var r unix.Rlimit
		if unix.Getrlimit(l.resource, &r) == nil {
			out = append(out, Limit{l.name, limit(r.Cur), limit(r.Max), l.what})
		}
	}
	return out
}

// limit is a bound as a number; the system's infinity is larger than any.
func limit[T int64 | uint64](v T) int64 {
	if v > 1<<62 || v < 0 {
		return -1
	}
	return int64(v)
}

// CPUTime is what this process has used of the processors.
func CPUTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Free is the room left in the file system at path, in bytes; -1: not known.
func Free(path string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize)
}
