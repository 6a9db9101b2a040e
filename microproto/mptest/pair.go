package mptest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Pair is two composites, ends 0 and 1, joined by a faulty link in virtual time.
type Pair struct {
	Clock *Clock
	Link  *Link
	// Received holds the payloads delivered at each end, in order, if OnMessage is nil. The
	// segments of a train are separate.
	Received [2][][]byte
	// OnMessage takes a delivered message and recycles it.
	OnMessage func(end int, m *microproto.Message)
	// OnFrame is called for every frame before it is sent; the link drops it if false.
	OnFrame func(end int, f microproto.Frame) bool

	ends  [2]*microproto.Composite
	out   []microproto.Output
	fault error
}

// NewPair joins two composites by a link whose random faults are determined by seed.
func NewPair(a, b *microproto.Composite, seed uint64, f Faults) *Pair {
	clock := NewClock()
	p := &Pair{Clock: clock, Link: NewLink(clock, seed, f), ends: [2]*microproto.Composite{a, b}}
	for end := range p.ends {
		p.Link.Receive(end, func(f microproto.Frame) { p.fail(p.ends[end].Input(clock.Now(), f)) })
	}
	return p
}

// Open opens both ends.
func (p *Pair) Open() error { return p.both((*microproto.Composite).Open) }

// Close closes both ends and handles their last outputs.
func (p *Pair) Close() error { return p.both((*microproto.Composite).Close) }

func (p *Pair) both(f func(*microproto.Composite, microproto.Instant) error) error {
	for _, e := range p.ends {
		p.fail(f(e, p.Clock.Now()))
	}
	return p.drained(nil)
}

// drained returns err if it is set. Otherwise it handles the outputs of both ends and returns the first error of one.
func (p *Pair) drained(err error) error {
	if err != nil {
		return err
	}
	p.drainEnds()
	return p.fault
}

// Send submits a payload at an end. The message refers to data.
func (p *Pair) Send(end int, data []byte) error {
	m, err := p.ends[end].Message()
	if err != nil {
		return err
	}
	m.Payload = data
	return p.drained(p.ends[end].Submit(p.Clock.Now(), m))
}

// SendFrame submits a frame at an end, as the composite above does. A Frame that holds several may
// become a train. The reference passes to the end.
func (p *Pair) SendFrame(end int, f microproto.Frame) error {
	return p.drained(p.ends[end].SubmitFrame(p.Clock.Now(), f))
}

// Do calls Composite.Do of an end, then handles its outputs.
func (p *Pair) Do(end int, f func(x *microproto.Exec)) error {
	return p.drained(p.ends[end].Do(p.Clock.Now(), f))
}

// Run lets virtual time pass until no frame is in flight and no timer is set (quiet), or until d has
// passed. It is an error if timers fire endlessly at one instant.
func (p *Pair) Run(d time.Duration) (quiet bool, err error) {
	const maxStepsAtOnce = 1 << 18
	until, steps := p.Clock.Now().Add(d), 0
	for p.fault == nil {
		p.drainEnds()
		next := p.next()
		switch {
		case next == microproto.Never:
			return true, p.fault
		case next > until:
			p.Clock.Advance(until)
			return false, p.fault
		case next > p.Clock.Now():
			steps = 0
		}
		if steps++; steps > maxStepsAtOnce {
			return false, fmt.Errorf("mptest: more than %d steps at %v: time does not pass", maxStepsAtOnce,
				time.Duration(p.Clock.Now()))
		}
		p.step(next)
	}
	return false, p.fault
}

// RunUntil runs until done returns true; it returns false if d has passed before.
func (p *Pair) RunUntil(d time.Duration, done func() bool) (bool, error) {
	until := p.Clock.Now().Add(d)
	for p.fault == nil {
		p.drainEnds()
		if done() {
			return true, p.fault
		}
		next := p.next()
		if next > until {
			return false, p.fault
		}
		p.step(next)
	}
	return false, p.fault
}

func (p *Pair) next() microproto.Instant {
	return min(p.Clock.Next(), p.ends[0].Deadline(), p.ends[1].Deadline())
}

// step handles one arrival at next, or the timers of the ends.
func (p *Pair) step(next microproto.Instant) {
	if p.Clock.Next() <= next {
		p.Clock.Step()
		return
	}
	p.Clock.Advance(next)
	for _, e := range p.ends {
		if e.Deadline() <= p.Clock.Now() {
			p.fail(e.Advance(p.Clock.Now()))
			p.drainEnds()
		}
	}
}

func (p *Pair) drainEnds() {
	for end, e := range p.ends {
		p.out = e.Drain(p.out[:0])
		for _, o := range p.out {
			p.move(end, o)
		}
		clear(p.out)
	}
}

func (p *Pair) move(end int, o microproto.Output) {
	switch o.Kind {
	case microproto.OutFrame:
		if p.OnFrame != nil && !p.OnFrame(end, o.Frame) {
			o.Frame.Release()
			return
		}
		p.Link.Send(end, o.Frame)
	case microproto.OutMessage:
		if p.OnMessage != nil {
			p.OnMessage(end, o.Message)
			return
		}
		for i := range o.Message.Segments() {
			p.Received[end] = append(p.Received[end], bytes.Clone(o.Message.Piece(i)))
		}
		p.ends[end].Recycle(o.Message)
	}
}

func (p *Pair) fail(err error) {
	if p.fault == nil {
		p.fault = err
	}
}
