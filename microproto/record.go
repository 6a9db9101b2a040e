package microproto

import (
	"encoding/binary"
	"time"

	"github.com/p2pdc/p2pdc/trace"
)

// FlowState is what a composite has on its way to the other end. It is for records; see package trace. Window and
// InFlight are in bytes, or in packets where the window is one of packets.
type FlowState struct {
	Window   int // what may be in flight; 0: no bound
	InFlight int
	Waiting  int // what the session was given and the micro-protocols have not sent
}

// Flow declares a function that adds what the micro-protocol knows to f. It is called for records, if the composite is
// recorded, and changes nothing else.
func (b *Binder) Flow(report func(f *FlowState)) {
	if b.c.config.Trace.Ring != nil {
		b.c.flow = append(b.c.flow, report)
	}
}

// Numbers declares that a wire attribute numbers the segments of the composite, for records.
func Numbers(b *Binder, a Attr[uint32]) {
	if a.at > 0 {
		b.c.numberAt = a.at
	}
}

// Flow returns what the composite has on its way. It is zero unless Config.Trace is set.
func (c *Composite) Flow() (f FlowState) {
	if len(c.flow) > 0 {
		c.state = FlowState{}
		for _, report := range c.flow {
			report(&c.state)
		}
		f = c.state
	}
	return f
}

// Number returns the number of a segment from its header, 0 if segments have none; see Numbers.
func (c *Composite) Number(header []byte) uint32 {
	if at := int(c.numberAt); at > 0 && len(header) >= at+3 {
		return binary.BigEndian.Uint32(header[at-1:])
	}
	return 0
}

// Record adds a record to the trace of the node and returns it, nil if there is no trace. The caller sets its fields
// before it does anything else.
func (x *Exec) Record(k trace.Kind) *trace.Record {
	if x.c.config.Trace.Ring == nil {
		return nil
	}
	return x.c.config.Trace.Add(int64(x.c.now), k)
}

// RecordFlow is Record with the present FlowState.
func (x *Exec) RecordFlow(k trace.Kind) *trace.Record {
	if x.c.config.Trace.Ring == nil {
		return nil
	}
	return x.recordFlow(k)
}

func (x *Exec) recordFlow(k trace.Kind) *trace.Record {
	f, r := x.c.Flow(), x.Record(k)
	f.Put(r)
	return r
}

// Put sets the fields of a record.
func (f FlowState) Put(r *trace.Record) {
	r.Window, r.InFlight, r.Waiting = trace.Clamp(f.Window), trace.Clamp(f.InFlight), trace.Clamp(f.Waiting)
}

// recordDrop records a dropped message.
func (x *Exec) recordDrop(m *Message, reason string) {
	if x.c.config.Trace.Ring != nil {
		x.addDrop(m, reason)
	}
}

//go:noinline
func (x *Exec) addDrop(m *Message, reason string) {
	r := x.Record(trace.Dropped)
	r.Count, r.Bytes, r.Value = uint16(m.Segments()), trace.Clamp(m.Length()), x.c.config.Trace.Ring.Text(reason)
}

// StepTracer returns a Tracer that records the steps of a composite.
func StepTracer(to trace.Source) Tracer { return stepTracer{to} }

type stepTracer struct{ to trace.Source }

// Trace implements Tracer.
func (t stepTracer) Trace(now Instant, s TraceRecord) {
	ring := t.to.Ring
	r := t.to.Add(int64(now), trace.Step)
	r.Cause, r.Number, r.Count, r.Bytes = trace.Cause(s.Kind), s.Message, uint16(s.Depth), trace.Clamp(s.Length)
	r.Window, r.InFlight, r.Waiting = ring.Text(s.Event), ring.Text(s.Protocol), ring.Text(s.Detail)
	r.Value, r.Tag = uint32(s.Delay), uint32(s.Delay>>32)
}

// StepOf returns the step that a record of the kind trace.Step describes.
func StepOf(n *trace.Node, r *trace.Record) TraceRecord {
	return TraceRecord{
		Kind: TraceKind(r.Cause), Message: r.Number, Depth: int(r.Count), Length: int(r.Bytes),
		Event: n.Text(r.Window), Protocol: n.Text(r.InFlight), Detail: n.Text(r.Waiting),
		Delay: time.Duration(uint64(r.Tag)<<32 | uint64(r.Value)),
	}
}
