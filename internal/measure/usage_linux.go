package measure

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Whose processor time ProcessorTime returns.
const (
	ThisProcess = unix.RUSAGE_SELF
	ThisThread  = unix.RUSAGE_THREAD
	Children    = unix.RUSAGE_CHILDREN // that this process has waited for
)

// ProcessorTime returns the processor time used so far in user mode and in the kernel. Unlike the
// time of the clock, it does not grow while others use the core.
func ProcessorTime(who int) time.Duration {
	if who == ThisThread { // in nanoseconds; getrusage counts microseconds
		var t unix.Timespec
		if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) == nil {
			return time.Duration(t.Nano())
		}
	}
	var u unix.Rusage
	if unix.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxResident returns the peak resident memory of a process that has ended, in bytes; 0: not known.
func maxResident(p *os.ProcessState) float64 {
	use, known := p.SysUsage().(*syscall.Rusage)
	if !known {
		return 0
	}
	return float64(use.Maxrss) * 1024
}
