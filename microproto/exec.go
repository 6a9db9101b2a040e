package microproto

import (
	"fmt"
	"math/rand/v2"
)

// Exec is a handler's view of its composite while one entry point runs. It must
// not be kept.
type Exec struct {
	c        *Composite
	tracer   Tracer
	cur      *attachment // whose handler runs; the kernel's own at the outermost level
	depth    int
	maxDepth int
	stop     stopBits
}

type stopBits uint8

const (
	stopHalted stopBits = 1 << iota
	stopFailed
)

// Now is the instant at which the entry point was called.
func (x *Exec) Now() Instant { return x.c.now }

// Rand is the composite's random source, seeded from Config.Seed and Config.Name.
func (x *Exec) Rand() *rand.Rand {
	c := x.c
	if c.rand == nil {
		c.rand = rand.New(rand.NewPCG(c.config.Seed, uint64(hashName(c.config.Name))))
	}
	return c.rand
}

// HeaderBytes is the size of the header, MTU the largest frame below, MaxPayload
// the difference: the largest payload of a segment.
func (x *Exec) HeaderBytes() int { return x.c.HeaderBytes() }

// MTU is the largest frame of the layer below, in bytes.
func (x *Exec) MTU() int { return x.c.config.MTU }

// MaxPayload is what the MTU leaves for a segment's payload, in bytes.
func (x *Exec) MaxPayload() int { return x.c.MaxPayload() }

// Halt stops the rest of the current chain.
func (x *Exec) Halt() {
	x.stop |= stopHalted
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceHalt, Protocol: x.cur.name()})
	}
}

// Cancel cancels a pending timer and tells whether there was one.
func (x *Exec) Cancel(id TimerID) bool {
	ok := x.c.timers.cancel(id)
	if ok && x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceCancel, Protocol: x.cur.name()})
	}
	return ok
}

// NewMessage takes a message from the pool: header zeroed, no attributes.
// ErrPool when the bound is reached.
func (x *Exec) NewMessage(d Direction) (*Message, error) {
	m := x.c.pool.get()
	if m == nil {
		return nil, ErrPool
	}
	m.dir = d
	x.c.counts.Created++
	return m, nil
}

// Share makes dst's payload the given part of m's payload and keeps m's frame, if
// it has one, alive until dst has ended. A frame that dst had is released.
func (x *Exec) Share(dst, m *Message, payload []byte) {
	f := m.frame.Retain()
	dst.frame.Release()
	dst.frame, dst.Payload = f, payload
}

// Notify appends a Notice to the outputs. Past their bound it is lost and counted.
func (x *Exec) Notify(n Notice) {
	c := x.c
	if len(c.outputs) >= c.limits.Outputs {
		c.counts.NoticesLost++
		return
	}
	c.counts.Notices++
	c.outputs = append(c.outputs, Output{Kind: OutNotice, Notice: n})
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceNotify, Protocol: x.cur.name(), Detail: n.Kind})
	}
}

// Fail puts the composite in a failed state: chains stop and every later entry
// point returns err. The first failure counts.
func (x *Exec) Fail(err error) {
	x.stop |= stopFailed
	if x.c.err != nil {
		return
	}
	x.c.err = fmt.Errorf("composite %s: %w", x.c.config.Name, err)
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceFail, Protocol: x.cur.name(), Detail: err.Error()})
	}
}
