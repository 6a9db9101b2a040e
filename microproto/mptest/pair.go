package mptest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Layer is a *microproto.Composite or a *microproto.Stack.
type Layer interface {
	Open(now microproto.Instant) error
	Close(now microproto.Instant) error
	Message() (*microproto.Message, error)
	Submit(now microproto.Instant, m *microproto.Message) error
	Input(now microproto.Instant, f microproto.Frame) error
	Advance(now microproto.Instant) error
	Deadline() microproto.Instant
	Drain(dst []microproto.Output) []microproto.Output
	Recycle(m *microproto.Message)
	Do(now microproto.Instant, f func(x *microproto.Exec)) error
	Err() error
}

// Pair is two composites, ends 0 and 1, joined by a faulty link in virtual time.
type Pair struct {
	Clock *Clock
	Link  *Link
	// Received holds the payloads delivered at each end, in order, those of a train one
	// by one, when OnMessage is nil; Notices the notices.
	Received [2][][]byte
	Notices  [2][]microproto.Notice
	// OnMessage takes a delivered message and gives it back with Recycle.
	OnMessage func(end int, m *microproto.Message)
	// OnFrame sees every frame before the link does; false swallows it.
	OnFrame func(end int, f microproto.Frame) bool

	ends  [2]Layer
	out   []microproto.Output
	fault error
}

// NewPair joins two composites. The link's chances come from seed.
func NewPair(a, b Layer, seed uint64, f Faults) *Pair {
	clock := NewClock()
	p := &Pair{Clock: clock, Link: NewLink(clock, seed, f), ends: [2]Layer{a, b}}
	for end := range p.ends {
		p.Link.Receive(end, func(f microproto.Frame) { p.note(p.ends[end].Input(clock.Now(), f)) })
	}
	return p
}

// End returns an end's composite.
func (p *Pair) End(end int) Layer { return p.ends[end] }

// Open opens both ends.
func (p *Pair) Open() error {
	for _, e := range p.ends {
		p.note(e.Open(p.Clock.Now()))
	}
	p.pump()
	return p.fault
}

// Close closes both ends and releases what was still in their outputs.
func (p *Pair) Close() error {
	for _, e := range p.ends {
		p.note(e.Close(p.Clock.Now()))
	}
	p.pump()
	return p.fault
}

// Send submits a payload at an end. It aliases data.
func (p *Pair) Send(end int, data []byte) error {
	m, err := p.ends[end].Message()
	if err != nil {
		return err
	}
	m.Payload = data
	if err := p.ends[end].Submit(p.Clock.Now(), m); err != nil {
		return err
	}
	p.pump()
	return p.fault
}

// SendFrame submits a frame at an end, as the composite above one does: frames that
// come as one may be a train. The reference goes over to the end.
func (p *Pair) SendFrame(end int, f microproto.Frame) error {
	l, ok := p.ends[end].(interface {
		SubmitFrame(now microproto.Instant, f microproto.Frame) error
	})
	if !ok {
		f.Release()
		return fmt.Errorf("mptest: %T takes no frames from above", p.ends[end])
	}
	if err := l.SubmitFrame(p.Clock.Now(), f); err != nil {
		return err
	}
	p.pump()
	return p.fault
}

// Do calls into an end, then moves what came out of it.
func (p *Pair) Do(end int, f func(x *microproto.Exec)) error {
	if err := p.ends[end].Do(p.Clock.Now(), f); err != nil {
		return err
	}
	p.pump()
	return p.fault
}

// Err is the first error of an entry point that Run called.
func (p *Pair) Err() error { return p.fault }

// Run lets virtual time pass until nothing is left to happen (quiet) or d has
// passed. Ends that fire timers without end and without letting time pass are an
// error.
func (p *Pair) Run(d time.Duration) (quiet bool, err error) {
	const maxStepsAtOnce = 1 << 18
	until, steps := p.Clock.Now().Add(d), 0
	for p.fault == nil {
		p.pump()
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
			return false, fmt.Errorf("mptest: %d steps at %v and time does not pass", maxStepsAtOnce, time.Duration(p.Clock.Now()))
		}
		p.step(next)
	}
	return false, p.fault
}

// RunUntil runs until done is true, or d has passed: then it returns false.
func (p *Pair) RunUntil(d time.Duration, done func() bool) (bool, error) {
	until := p.Clock.Now().Add(d)
	for p.fault == nil {
		p.pump()
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

// step does what is due at next: one arrival, or the ends' timers.
func (p *Pair) step(next microproto.Instant) {
	if p.Clock.Next() <= next {
		p.Clock.Step()
		return
	}
	p.Clock.Advance(next)
	for _, e := range p.ends {
		if e.Deadline() <= p.Clock.Now() {
			p.note(e.Advance(p.Clock.Now()))
			p.pump()
		}
	}
}

// pump moves the outputs of both ends.
func (p *Pair) pump() {
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
	case microproto.OutNotice:
		p.Notices[end] = append(p.Notices[end], o.Notice)
	}
}

func (p *Pair) note(err error) {
	if p.fault == nil {
		p.fault = err
	}
}
