//go:build unix

package host

import (
	"time"

	"golang.org/x/sys/unix"
)

type resource struct {
	name     string
	resource int
	what     string
}

// Limits returns the limits that a run may reach.
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

// limit converts a limit; the system encodes infinity as a huge or negative number.
func limit[T int64 | uint64](v T) int64 {
	if v > 1<<62 || v < 0 {
		return -1
	}
	return int64(v)
}

// CPUTime returns the processor time that this process has used.
func CPUTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Free returns the free space of the file system at path in bytes, −1 if it is unknown.
func Free(path string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize)
}
