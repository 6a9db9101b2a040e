package host

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Batch sets the scheduling policy of all threads of this process, and of those they start, to SCHED_BATCH
// (sched(7)): a thread that wakes up does not preempt one that computes. It needs no privilege.
func Batch() error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("SCHED_BATCH: %w", err)
	}
	for _, t := range tasks {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		err = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0)
		if err != nil && err != unix.ESRCH { // the thread has ended
			return fmt.Errorf("SCHED_BATCH: %w", err)
		}
	}
	return nil
}
