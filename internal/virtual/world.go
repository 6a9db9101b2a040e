package virtual

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// World is the environment of a Host: time, networks, and the cost of its work. Of the host's
// methods a World's may call only SetBusy.
type World interface {
	Now() microproto.Instant
	// Wake schedules a call of Host.Turn, Alarm one of Host.Due.
	Wake(h *Host, at microproto.Instant)
	Alarm(h *Host, at microproto.Instant)
	// Carry takes a frame or a train that leaves by a rail; rail 0 is the base link. It returns
	// false if the rail is full; then Host.Settle is called when there is room.
	Carry(h *Host, rail int, f microproto.Frame) bool
	// Control carries out an OutControl, OutDial or OutDisconnect. o is valid only during the call.
	Control(h *Host, o *p2psap.Output)
	// Relax starts a relaxation and returns how long it takes, at least a nanosecond, so that
	// time passes. It must be complete when Relaxed is called.
	Relax(h *Host, op iterate.Op) time.Duration
	Relaxed(h *Host)
	// Sends returns the relaxing thread's time for sending a message, Receives that for receiving
	// one. waits reports that the thread was waiting for a message.
	Sends(h *Host) time.Duration
	Receives(h *Host, waits bool) time.Duration
	// Opened is called when the run begins, Stepped when a time step is complete, Finished when
	// there is a verdict.
	Opened(h *Host)
	Stepped(h *Host, r *iterate.StepResult)
	Finished(h *Host)
	// Keep carries out an OpKeep or OpKept. It returns false if that takes time. Then Host.Stored must be called when it
	// is done.
	Keep(h *Host, op *iterate.Op) bool
	// Fail ends the run, and Failed reports whether it has.
	Fail(h *Host, err error)
	Failed() bool
}

// Place puts the values of a box, [z][y][x], into a grid of n points.
func Place(u []float64, n [3]int, b problem.Box, v []float64) {
	method.CopyBox(u, method.DenseLayout(n), b, v, method.DenseLayout(b.Size()), [3]int{})
}
