package virtual

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// World is what a Host lives in: time, networks, and what its work costs. No method may
// call the host but SetBusy.
type World interface {
	Now() microproto.Instant
	// Wake has Turn called at an instant, Alarm Due.
	Wake(h *Host, at microproto.Instant)
	Alarm(h *Host, at microproto.Instant)
	// Carry takes a frame, or several as one, that leaves by a rail: 0 the base link. False:
	// the rail is full, and Settle will be called when it has room.
	Carry(h *Host, rail int, f microproto.Frame) bool
	// Control carries out an OutControl, OutDial or OutDisconnect; o is only lent.
	Control(h *Host, o *p2psap.Output)
	// Relax relaxes, by the time that Relaxed is called, and tells how long it takes: at
	// least a nanosecond, so that time goes on.
	Relax(h *Host, op iterate.Op) time.Duration
	Relaxed(h *Host)
	// Sends is the relaxing thread's time for handing a message over, before it is;
	// Receives for taking one; waits tells that the thread waits for it.
	Sends(h *Host, bytes int) time.Duration
	Receives(h *Host, label uint64, waits bool) time.Duration
	// Opened tells that the run begins, Stepped that a time step is complete, Changed
	// that a session has changed its mode, Finished that there is a verdict.
	Opened(h *Host)
	Stepped(h *Host, r *iterate.StepResult)
	Changed(h *Host)
	Finished(h *Host)
	// Fail ends everything.
	Fail(h *Host, err error)
	Failed() bool
}
