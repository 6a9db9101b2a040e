package mptest

import (
	"bytes"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// Isolation is a Tracer that checks that a micro-protocol's handlers change only
// the header bytes that it declared. It compares a message's header between one
// step and the next: what changed meanwhile was changed by the handler running.
type Isolation struct {
	// Layout is the composite's, and must be set before messages flow.
	Layout []microproto.Region
	// Breaches describes what was seen, at most 16.
	Breaches []string

	running []seen
}

type seen struct {
	protocol string
	message  uint64
	header   []byte
}

// Trace checks the handlers that the record begins, interrupts or ends.
func (s *Isolation) Trace(_ microproto.Instant, r microproto.TraceRecord) {
	switch r.Kind {
	case microproto.TraceHandle:
		// The handler that raised this one answers for what it did so far.
		s.check(r)
		s.running = append(s.running, seen{r.Protocol, r.Message, bytes.Clone(r.Header)})
	case microproto.TraceReturn:
		s.check(r)
		if n := len(s.running); n > 0 {
			s.running = s.running[:n-1]
		}
		// What the nested handler did is not its caller's doing.
		for i := range s.running {
			if s.running[i].message == r.Message {
				s.running[i].header = bytes.Clone(r.Header)
			}
		}
	}
}

func (s *Isolation) check(r microproto.TraceRecord) {
	if len(s.running) == 0 || r.Message == 0 {
		return
	}
	at := &s.running[len(s.running)-1]
	if at.message != r.Message || len(at.header) != len(r.Header) {
		return
	}
	for i := range r.Header {
		if r.Header[i] != at.header[i] && s.owner(i) != at.protocol && len(s.Breaches) < 16 {
			s.Breaches = append(s.Breaches, fmt.Sprintf("%s, handling %s of message %d, changed header byte %d, which is %s's",
				at.protocol, r.Event, r.Message, i, s.owner(i)))
		}
	}
	at.header = bytes.Clone(r.Header)
}

func (s *Isolation) owner(offset int) string {
	for _, r := range s.Layout {
		if offset >= r.Offset && offset < r.Offset+r.Length {
			return r.Protocol
		}
	}
	return "nobody"
}
