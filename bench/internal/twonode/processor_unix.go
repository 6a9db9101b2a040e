//go:build unix

package twonode

import (
	"syscall"
	"time"
)

// processorTime returns the processor time of this process, in user mode and in the kernel.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
