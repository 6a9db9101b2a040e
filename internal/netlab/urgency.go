//go:build linux

package netlab

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Urgency is the scheduling priority of a thread.
type Urgency uint32

// Ordinary threads are scheduled fairly. UrgentEnd and UrgentLink are real-time priorities (SCHED_RR), so that
// measurements do not depend on other load of the machine: their threads run before all ordinary threads, and
// UrgentLink before UrgentEnd. The kernel reserves a twentieth of each processor for ordinary threads.
const (
	Ordinary Urgency = iota
	UrgentEnd
	UrgentLink
)

// Set sets the priority of the calling thread and returns the previous one. The goroutine must be locked to
// the thread. New threads and processes inherit the priority. Without permission nothing changes;
// measurements then need an otherwise idle machine.
func (u Urgency) Set() (before Urgency) {
	if a, err := unix.SchedGetAttr(0, 0); err == nil && a.Policy == unix.SCHED_RR {
		before = Urgency(a.Priority)
	}
	u.setThread(0)
	return before
}

func (u Urgency) setThread(thread int) {
	a := unix.SchedAttr{Policy: unix.SCHED_NORMAL}
	if u > Ordinary {
		a.Policy, a.Priority = unix.SCHED_RR, uint32(u)
	}
	_ = unix.SchedSetAttr(thread, &a, 0)
}

// SetAll sets the priority of all threads of this process. It is meant for programs that only measure: a
// link's thread may have to wait for any other thread of its process.
func (u Urgency) SetAll() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("netlab: %w", err)
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			u.setThread(id)
		}
	}
	return nil
}
