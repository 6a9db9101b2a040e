package microproto

import (
	"fmt"
	"math/rand/v2"
)

// Exec is the composite as a handler sees it while one entry point runs. Do not keep it.
//
// Rules of handlers: a handler runs to completion, never blocks, and calls no entry point of
// its composite. It uses x.Now, x.Rand and RaiseAfter and no clock, random source or timer of
// its own. Every message that it takes out of circulation ends exactly once: by Done, Drop
// or Deliver.
type Exec struct {
	c        *Composite
	tracer   Tracer
	cur      *attachment // owner of the handler that runs; Composite.self at the outermost level
	depth    int
	maxDepth int
	stop     stopBits
}

type stopBits uint8

const (
	stopHalted stopBits = 1 << iota
	stopFailed
)

// Now returns the instant at which the entry point was called.
func (x *Exec) Now() Instant { return x.c.now }

// Rand returns the composite's random source, seeded with Config.Seed and Config.Name.
func (x *Exec) Rand() *rand.Rand {
	c := x.c
	if c.rand == nil {
		c.rand = rand.New(rand.NewPCG(c.config.Seed, uint64(hashName(c.config.Name))))
	}
	return c.rand
}

// HeaderBytes returns the size of the header in bytes.
func (x *Exec) HeaderBytes() int { return x.c.HeaderBytes() }

// MTU returns the largest frame of the layer below, in bytes.
func (x *Exec) MTU() int { return x.c.config.MTU }

// ReadOnly reports whether incoming payloads lie in memory that must not be written to; see Caps.ReadOnly and Rewrite.
func (x *Exec) ReadOnly() bool { return x.c.config.ReadOnly }

// MaxPayload returns the largest payload of a segment in bytes: the MTU less the header.
func (x *Exec) MaxPayload() int { return x.c.MaxPayload() }

// Halt stops the current chain after this handler.
func (x *Exec) Halt() {
	x.stop |= stopHalted
	x.trace(TraceRecord{Kind: TraceHalt})
}

// Cancel cancels a pending timer. It reports whether there was one.
func (x *Exec) Cancel(id TimerID) bool {
	ok := x.c.timers.cancel(id)
	if ok && x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceCancel})
	}
	return ok
}

// NewMessage takes a message from the pool. Its header is zero and it has no local
// attributes. ErrPool: Limits.Messages are live.
func (x *Exec) NewMessage(d Direction) (*Message, error) {
	m := x.c.pool.zeroed()
	if m == nil {
		return nil, ErrPool
	}
	m.dir = d
	x.c.counters.Created++
	return m, nil
}

// AsSegment turns m, which a user has sent and whose payload is one segment, into that segment. It
// spares a second message and has the effect of NewMessage, Share and Done of m; the chain that
// carries m stops. It returns false, and does nothing, if the pool is exhausted, if m is held, or if the
// composite is traced: a trace shows both messages.
func (x *Exec) AsSegment(m *Message) bool {
	c := x.c
	if x.tracer != nil || c.pool.live >= c.pool.limit || m.dir != Down || m.hold != 0 || m.stage != stageNone ||
		x.owned("send", m) != nil {
		return false
	}
	c.counters.Created++
	c.counters.Done++
	c.pool.lastID++
	m.id = c.pool.lastID
	m.localSet = 0
	clear(m.header)
	x.stop |= stopHalted
	return true
}

// Share sets dst's payload to a part of m's payload. dst holds a reference to m's frame, if
// m has one, until it ends; its former frame is released.
func (x *Exec) Share(dst, m *Message, payload []byte) {
	r := m.frame.retain()
	dst.frame.release()
	dst.frame, dst.Payload = r, payload
}

// Fail puts the composite into the failed state: chains stop, and every later entry point
// returns err. Further calls do not change the error.
func (x *Exec) Fail(err error) {
	x.stop |= stopFailed
	if x.c.err != nil {
		return
	}
	x.c.err = fmt.Errorf("composite %s: %w", x.c.config.Name, err)
	x.trace(TraceRecord{Kind: TraceFail, Detail: err.Error()})
}
