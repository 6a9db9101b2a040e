package microproto

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Tracer receives every step of a composite, in order. It must not call the composite.
type Tracer interface {
	Trace(now Instant, r TraceRecord)
}

// TraceKind is the kind of step that a record describes.
type TraceKind uint8

// The kinds of steps.
const (
	TraceRaise    TraceKind = iota + 1 // an event is raised synchronously
	TraceEnqueue                       // an event is enqueued
	TraceSchedule                      // a timer is set to raise an event
	TraceRun                           // an enqueued event is raised
	TraceFire                          // a timer fires
	TraceCancel                        // a timer is cancelled
	TraceHandle                        // a handler starts
	TraceReturn                        // a handler has returned
	TraceHalt                          // a handler halts its chain
	TraceHold                          // a message is held
	TraceRelease                       // a hold bit is cleared
	TraceForward                       // a message is forwarded
	TraceTransmit                      // a frame is output
	TraceDeliver                       // a message is delivered
	TraceDone                          // a message ends
	TraceDrop                          // a message or an incoming frame is dropped
	TraceUnbind                        // a handler is unbound at run time
	TraceAttach                        // a micro-protocol is attached
	TraceFail                          // the composite fails
)

var traceWords = [...]string{
	"", "raise", "enqueue", "schedule", "run", "fire", "cancel", "handle", "return", "halt", "hold", "release",
	"forward", "transmit", "deliver", "done", "drop", "unbind", "attach", "fail",
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
	Protocol string        // the micro-protocol that acts; "" for the kernel or the layer above
	Message  uint64        // Message.ID
	Depth    int           // number of nested raises
	Detail   string        // hold bit, drop reason or error
	Delay    time.Duration // of a timer
	Length   int           // bytes of a frame or payload
	Header   []byte        // of the message; valid during the call only
}

// String returns a line for transcripts, indented by the depth, without the header.
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

// trace passes a step to the tracer, if there is one. r.Protocol is that of the running handler
// unless it is set.
func (x *Exec) trace(r TraceRecord) {
	if x.tracer != nil {
		r.Depth, r.Protocol = x.depth, cmp.Or(r.Protocol, x.cur.name)
		x.tracer.Trace(x.c.now, r)
	}
}

// traceMessage traces a step of a message. It is inlined: hot paths only test for a tracer.
func (x *Exec) traceMessage(kind TraceKind, m *Message, length int, detail string) {
	if x.tracer != nil {
		x.traceStep(kind, m, length, detail)
	}
}

//go:noinline
func (x *Exec) traceStep(kind TraceKind, m *Message, length int, detail string) {
	x.trace(TraceRecord{Kind: kind, Message: m.id, Length: length, Detail: detail, Header: m.header})
}
