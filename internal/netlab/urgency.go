//go:build linux

package netlab

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Urgency is how the system chooses between threads that could run.
type Urgency uint32

// An Ordinary thread waits its turn. The others go before every ordinary one, and a
// higher one before a lower: what a lab measures must not depend on what else the
// machine does. They leave it a twentieth of each processor at least.
const (
	Ordinary Urgency = iota
	UrgentEnd
	UrgentLink
)

// Set makes the calling thread that urgent and returns how urgent it was. The goroutine
// must be locked to it. Threads and processes that it starts have it from there. Where it
// is not allowed nothing changes: measurements then need a machine to themselves.
func (u Urgency) Set() (before Urgency) {
	if a, err := unix.SchedGetAttr(0, 0); err == nil && a.Policy == unix.SCHED_RR {
		before = Urgency(a.Priority)
	}
	u.of(0)
	return before
}

func (u Urgency) of(thread int) {
	a := unix.SchedAttr{Policy: unix.SCHED_NORMAL}
	if u > Ordinary {
		a.Policy, a.Priority = unix.SCHED_RR, uint32(u)
	}
	_ = unix.SchedSetAttr(thread, &a, 0)
}

// SetAll is Set for every thread of this process, for a program that does nothing but
// measure: a link's thread must not wait for one that waits its turn.
func (u Urgency) SetAll() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("netlab: %w", err)
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			u.of(id)
		}
	}
	return nil
}
