//go:build unix

package twonode

import (
	"syscall"
	"time"
)

// usage returns the processor time of this process, in user mode and in the kernel, and how often its threads have
// slept: the voluntary context switches of getrusage(2).
func usage() (processor time.Duration, sleeps int64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), int64(u.Nvcsw)
}
