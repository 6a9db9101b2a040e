package microproto

import (
	"errors"
	"fmt"
	"slices"
)

// Stack joins composites, the first on top: the frames of one are the messages of
// the next. It has the entry points of a Composite and its rules: not safe for
// concurrent use, not reentrant.
type Stack struct {
	layers []*Composite // from top to bottom
	moves  []Output     // scratch of pump
	out    []Output
}

// NewStack checks that every composite's frames fit as payloads of the one below.
func NewStack(top *Composite, below ...*Composite) (*Stack, error) {
	layers := append([]*Composite{top}, below...)
	for i, c := range layers[:len(layers)-1] {
		under := layers[i+1]
		if c == under {
			return nil, fmt.Errorf("microproto: composite %s stands twice in a stack", c.Name())
		}
		if c.config.MTU > under.MaxPayload() {
			return nil, fmt.Errorf("microproto: the MTU of composite %s is %d; composite %s below takes payloads of %d bytes", c.Name(), c.config.MTU, under.Name(), under.MaxPayload())
		}
	}
	return &Stack{layers: layers}, nil
}

// Layers returns the composites from top to bottom.
func (s *Stack) Layers() []*Composite { return slices.Clone(s.layers) }

// Open opens the composites from bottom to top.
func (s *Stack) Open(now Instant) error {
	for _, c := range slices.Backward(s.layers) {
		if err := c.Open(now); err != nil {
			return err
		}
		if err := s.pump(now); err != nil {
			return err
		}
	}
	return nil
}

// Close closes them from top to bottom, so that last words still go out.
func (s *Stack) Close(now Instant) error {
	var errs []error
	for _, c := range s.layers {
		errs = append(errs, c.Close(now), s.pump(now))
	}
	return errors.Join(errs...)
}

// Message is Composite.Message of the top.
func (s *Stack) Message() (*Message, error) { return s.layers[0].Message() }

// Recycle is Composite.Recycle of the top.
func (s *Stack) Recycle(m *Message) { s.layers[0].Recycle(m) }

// Submit is Composite.Submit of the top.
func (s *Stack) Submit(now Instant, m *Message) error {
	err := s.layers[0].Submit(now, m)
	return errors.Join(err, s.pump(now))
}

// Input is Composite.Input of the bottom.
func (s *Stack) Input(now Instant, f Frame) error {
	err := s.layers[len(s.layers)-1].Input(now, f)
	return errors.Join(err, s.pump(now))
}

// Do is Composite.Do of the top.
func (s *Stack) Do(now Instant, f func(x *Exec)) error {
	err := s.layers[0].Do(now, f)
	return errors.Join(err, s.pump(now))
}

// Advance fires the due timers of every composite, from top to bottom.
func (s *Stack) Advance(now Instant) error {
	for _, c := range s.layers {
		if err := c.Advance(now); err != nil {
			return err
		}
		if err := s.pump(now); err != nil {
			return err
		}
	}
	return nil
}

// Deadline is the earliest deadline of the composites.
func (s *Stack) Deadline() Instant {
	d := Never
	for _, c := range s.layers {
		d = min(d, c.Deadline())
	}
	return d
}

// Drain appends what left the stack: messages of the top, frames of the bottom,
// notices of all.
func (s *Stack) Drain(dst []Output) []Output {
	dst = append(dst, s.out...)
	clear(s.out)
	s.out = s.out[:0]
	return dst
}

// Err is the first failure, from top to bottom.
func (s *Stack) Err() error {
	for _, c := range s.layers {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// pump moves outputs between neighbours until nothing moves. Every move uses up a
// message or a frame and micro-protocols answer within their bounds, so a bound
// on the rounds can only be passed by layers that answer each other without end.
func (s *Stack) pump(now Instant) error {
	const maxRounds = 1 << 16
	for range maxRounds {
		moved := false
		for i := range s.layers {
			n, err := s.pumpLayer(now, i)
			if err != nil {
				return err
			}
			moved = moved || n
		}
		if !moved {
			return nil
		}
	}
	return fmt.Errorf("%w: the composites of a stack answer each other without end", ErrLimit)
}

func (s *Stack) pumpLayer(now Instant, i int) (moved bool, err error) {
	c := s.layers[i]
	s.moves = c.Drain(s.moves[:0])
	for k := range s.moves {
		o := &s.moves[k]
		switch {
		case o.Kind == OutFrame && i+1 < len(s.layers):
			err = errors.Join(err, s.layers[i+1].SubmitFrame(now, o.Frame))
			moved = true
		case o.Kind == OutMessage && i > 0:
			err = errors.Join(err, s.layers[i-1].Input(now, c.RecycleFrame(o.Message)))
			moved = true
		default:
			s.out = append(s.out, *o)
		}
	}
	clear(s.moves)
	return moved, err
}

// SubmitFrame makes a frame of the composite above a message of this one, whose
// payload it becomes, and submits it; it takes the frame. Without a message for it, it
// is dropped and counted, as on any full network.
func (c *Composite) SubmitFrame(now Instant, f Frame) (err error) {
	if f.Count() > 1 && !c.trains {
		f.Pieces(func(p Frame) { err = errors.Join(err, c.SubmitFrame(now, p)) })
		return err
	}
	m, err := c.Message()
	if err != nil {
		c.counts.FramesIn++
		c.refuseFrame(&f, "pool")
		return nil
	}
	m.frame, m.Payload = f, f.Data
	if n := f.Count(); n > 1 {
		c.trainsLive++
		m.segments, m.unit, m.gap = int32(n), int32(f.Segment), 0
	}
	return c.Submit(now, m)
}

// RecycleFrame gives a delivered message back, as Recycle does, and returns its
// payload as a frame for the composite above, who releases it.
func (c *Composite) RecycleFrame(m *Message) Frame {
	f := m.frame.Retain()
	f.Data, f.Segment = m.Payload, 0
	if m.segments > 1 {
		f.Segment = m.Unit()
		if m.gap > 0 { // what lies between the segments has to go
			f.Release()
			f.buf, f.Data = nil, make([]byte, m.Length())
			m.CopyTo(f.Data)
		}
	}
	f.off = -1 // it may lie anywhere in the buffer
	c.Recycle(m)
	return f
}
