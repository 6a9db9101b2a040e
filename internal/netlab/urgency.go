//go:build linux

package netlab

import "golang.org/x/sys/unix"

// Urgency is how the system chooses between threads that could run.
type Urgency uint32

// An Ordinary thread waits its turn. The others go before every ordinary one, and a
// higher one before a lower: what a lab measures must not depend on what else the
// machine does. They leave it a twentieth of each processor at least.
const (
	Ordinary Urgency = iota
	UrgentEnd
	urgentLink
)

// Set makes the calling thread that urgent; the goroutine must be locked to it. Threads
// and processes that it starts have it from there. Where it is not allowed, or not
// real time, nothing changes: measurements then need a machine to themselves.
func (u Urgency) Set() {
	a := unix.SchedAttr{Policy: unix.SCHED_NORMAL}
	if u > Ordinary {
		a.Policy, a.Priority = unix.SCHED_RR, uint32(u)
	}
	_ = unix.SchedSetAttr(0, &a, 0)
}
