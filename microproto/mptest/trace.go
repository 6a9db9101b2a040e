package mptest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Transcript is a Tracer that writes a line for each step. Skip lists kinds to omit.
type Transcript struct {
	Name string // at the beginning of every line
	Skip []microproto.TraceKind
	// Headers adds the header, in hexadecimal, to the lines of transmitted frames.
	Headers bool
	text    *bytes.Buffer
}

// NewTranscript returns a transcript that omits the returns of handlers.
func NewTranscript(name string) *Transcript {
	return &Transcript{Name: name, Skip: []microproto.TraceKind{microproto.TraceReturn}, text: new(bytes.Buffer)}
}

// Join returns another tracer that writes to the same text.
func (t *Transcript) Join(name string) *Transcript {
	u := *t
	u.Name = name
	return &u
}

// Trace implements microproto.Tracer.
func (t *Transcript) Trace(now microproto.Instant, r microproto.TraceRecord) {
	if slices.Contains(t.Skip, r.Kind) {
		return
	}
	fmt.Fprintf(t.text, "%-8v ", time.Duration(now))
	if t.Name != "" {
		fmt.Fprintf(t.text, "%s ", t.Name)
	}
	t.text.WriteString(r.String())
	if t.Headers && r.Kind == microproto.TraceTransmit {
		fmt.Fprintf(t.text, " [%x]", r.Header)
	}
	t.text.WriteByte('\n')
}

// Printf adds a line.
func (t *Transcript) Printf(format string, args ...any) { fmt.Fprintf(t.text, format+"\n", args...) }

// String returns the text so far.
func (t *Transcript) String() string { return t.text.String() }

// TraceHash is a Tracer that computes a hash of every step, headers included. Two runs with equal
// hashes are the same.
type TraceHash struct {
	h       hash.Hash64
	scratch []byte
	// Steps counts the records.
	Steps uint64
}

// NewTraceHash returns an empty hash.
func NewTraceHash() *TraceHash { return &TraceHash{h: fnv.New64a()} }

// Trace implements microproto.Tracer.
func (t *TraceHash) Trace(now microproto.Instant, r microproto.TraceRecord) {
	t.Steps++
	b := binary.BigEndian.AppendUint64(t.scratch[:0], uint64(now))
	b = append(b, byte(r.Kind))
	for _, s := range []string{r.Event, r.Protocol, r.Detail} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	for _, n := range []uint64{r.Message, uint64(r.Depth), uint64(r.Delay), uint64(r.Length)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = append(b, r.Header...)
	_, _ = t.h.Write(b)
	t.scratch = b
}

// Sum returns the hash of the steps so far.
func (t *TraceHash) Sum() uint64 { return t.h.Sum64() }
