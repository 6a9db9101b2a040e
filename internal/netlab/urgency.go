//go:build linux

package netlab

import (
	"fmt"
	"os"
	"runtime"
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

// Set sets the priority of the calling thread. The goroutine must be locked to the thread. New threads and
// processes inherit the priority. Without permission nothing changes; measurements then need an otherwise
// idle machine.
func (u Urgency) Set() { u.setThread(0) }

func (u Urgency) setThread(thread int) {
	a := unix.SchedAttr{Policy: unix.SCHED_NORMAL}
	if u > Ordinary {
		a.Policy, a.Priority = unix.SCHED_RR, uint32(u)
	}
	_ = unix.SchedSetAttr(thread, &a, 0)
}

// IsUrgent reports whether the calling thread has a real-time priority.
func IsUrgent() bool {
	a, err := unix.SchedGetAttr(0, 0)
	return err == nil && a.Policy == unix.SCHED_RR
}

// SetAll sets the priority of all threads of this process. It is meant for programs that only measure, not for tests:
// when real-time threads of all processors wait for their child processes at once, Linux 6.18 can spin for ever in
// shrink_dcache_parent, because the ordinary thread that holds the entry in /proc gets no time. No two
// threads of a process may keep different real-time priorities: the garbage collector spins until another
// thread reaches a safe point, and that thread, for example one that starts a process, may never run beside
// spinning threads of a higher priority.
func (u Urgency) SetAll() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("netlab: %w", err)
	}
	self := unix.Gettid()
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil && id != self {
			u.setThread(id)
		}
	}
	u.setThread(self) // last, so that lowering the others cannot be interrupted by them
	return nil
}
