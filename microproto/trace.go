package microproto

import (
	"fmt"
	"strings"
	"time"
)

// Tracer sees every step of a composite, in order. It must not call the composite.
type Tracer interface {
	Trace(now Instant, r TraceRecord)
}

// TraceKind is what a record tells of.
type TraceKind uint8

// The steps a tracer sees.
const (
	TraceRaise    TraceKind = iota + 1 // an event is raised synchronously
	TraceEnqueue                       // an event is enqueued
	TraceSchedule                      // an event is raised with a delay: the timer starts
	TraceRun                           // an enqueued event's turn comes
	TraceFire                          // a delayed event's turn comes
	TraceCancel                        // a timer is cancelled
	TraceHandle                        // a handler starts
	TraceReturn                        // a handler has returned
	TraceHalt                          // a handler stops the rest of its chain
	TraceHold                          // a message is held
	TraceRelease                       // a hold bit is cleared
	TraceForward                       // a message is forwarded
	TraceTransmit                      // a frame leaves
	TraceDeliver                       // a message goes to the user
	TraceNotify                        // a notice goes to the user
	TraceDone                          // a message ends
	TraceDrop                          // a message, or a frame that came, is dropped
	TraceUnbind                        // a handler is unbound at run time
	TraceAttach                        // a micro-protocol is attached
	TraceFail                          // the composite fails
)

var traceWords = [...]string{
	"", "raise", "enqueue", "schedule", "run", "fire", "cancel", "handle", "return", "halt", "hold", "release",
	"forward", "transmit", "deliver", "notify", "done", "drop", "unbind", "attach", "fail",
}

func (k TraceKind) String() string {
	if int(k) < len(traceWords) {
		return traceWords[k]
	}
	return "trace?"
}

// TraceRecord is one step. Fields that do not apply are zero.
type TraceRecord struct {
	Kind     TraceKind
	Event    string
	Protocol string        // who raises or handles or acts; "" is the kernel or the layer above
	Message  uint64        // Message.ID
	Depth    int           // nested raises around the step
	Detail   string        // hold bit, drop reason, kind of notice, error
	Delay    time.Duration // of a delayed raise
	Length   int           // bytes of a frame or payload
	Header   []byte        // of the message, valid during the call only
}

// String renders a record for transcripts: depth as indentation, no header.
func (r TraceRecord) String() string {
	var b strings.Builder
	b.WriteString(strings.Repeat("  ", r.Depth))
	b.WriteString(r.Kind.String())
	if r.Event != "" {
		b.WriteString(" " + r.Event)
	}
	if r.Protocol != "" {
		b.WriteString(" by " + r.Protocol)
	}
	if r.Message != 0 {
		fmt.Fprintf(&b, " #%d", r.Message)
	}
	if r.Kind == TraceSchedule {
		fmt.Fprintf(&b, " in %v", r.Delay)
	}
	if r.Length != 0 {
		fmt.Fprintf(&b, " %d B", r.Length)
	}
	if r.Detail != "" {
		b.WriteString(" (" + r.Detail + ")")
	}
	return b.String()
}

func (x *Exec) trace(r TraceRecord) {
	r.Depth = x.depth
	x.tracer.Trace(x.c.now, r)
}
