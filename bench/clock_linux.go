package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// coreTime is the processor time of the calling thread: what a core needs for
// the work, whoever else wants it meanwhile.
func coreTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}

// processorTime is what all threads of this process have used, seconds.
func processorTime() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return float64(time.Now().UnixNano()) / 1e9
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
