package mptest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"pgregory.net/rapid"
)

// Subject is a micro-protocol under test, with the others of its composite.
type Subject struct {
	// Protocol is the name of the micro-protocol under test.
	Protocol string
	// New returns the micro-protocols of one end (0 or 1), from top to bottom, the one under
	// test included. Top and Bottom may be the first and the last.
	New func(end int) []microproto.MicroProtocol
	// Config is that of both ends. The suite sets Tracer, Frames and Seed; MTU 0 stands for 200.
	Config microproto.Config
	// Faults are those of the link in the runs with faults. nil: every kind but corruption.
	Faults *Faults
	// Messages and Length describe the traffic in each direction (default 40 messages of up to
	// 600 bytes; without an Endpoint, of up to the segment size).
	Messages, Length int
	// Reliable: every message must arrive once and in order.
	Reliable bool
	// Tail is the number of bytes that the micro-protocol appends to a payload. Without an
	// Endpoint the suite leaves room for them.
	Tail int
	// Quiet is the time after the last message in which the ends must become idle (default 1 min
	// of virtual time).
	Quiet time.Duration
	// Violations are the errors with which frames of an incorrect sender may fail the composite:
	// a reliable channel cannot omit a message. All other frames must be accepted, or dropped
	// for a counted reason.
	Violations []error
}

// Conform runs the conformance suite of a micro-protocol. If all micro-protocols of the subject
// take trains, the suite runs with trains as well: a train must lead to the same deliveries as its
// segments one by one.
func Conform(t *testing.T, s Subject) {
	t.Helper()
	s.defaults()
	s.conform(t)
	if s.Config.Train == 0 && s.takesTrains() {
		s.Config.Train = trainBytes
		t.Run("trains", s.conform)
	}
}

func (s *Subject) conform(t *testing.T) {
	for _, c := range s.checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
	t.Run("takes any bytes", s.anyBytes)
	t.Run("runs the same untraced", s.runsUntraced)
}

func (s *Subject) defaults() {
	s.Config.MTU = cmp.Or(s.Config.MTU, 200)
	s.Faults = cmp.Or(s.Faults, &Faults{Delay: 300 * time.Microsecond, Jitter: 200 * time.Microsecond, Loss: 0.1,
		Duplicate: 0.05, Reorder: 0.1})
	s.Messages = cmp.Or(s.Messages, 40)
	s.Length = cmp.Or(s.Length, 600)
	s.Quiet = cmp.Or(s.Quiet, time.Minute)
}

type check struct {
	name string
	run  func(t failer)
}

func (s *Subject) checks() []check {
	checks := []check{
		{"declares what it is", s.declares},
		{"replays", s.replays},
		{"keeps to its header", s.isolated},
		{"accounts for every message", s.conserves},
		{"falls quiet", s.quiet},
		{"stays within limits", s.bounded},
		{"survives a change of composition", s.recomposed},
	}
	if s.Config.Train > 0 {
		checks = append(checks, check{"takes a train as its segments", s.trains})
	}
	return checks
}

type bench struct {
	s    *Subject
	pair *Pair
	ends [2]*microproto.Composite
	mem  [2]*Frames
	load [2]*load
}

type load struct {
	rand *rand.Rand
	sent [][]byte
	got  [][]byte
	left int
	// again are the messages to be sent again first, counted in left.
	again [][]byte
	// refused counts refused sends.
	refused int
}

const loadTag = 1

// bench returns two ends that are not open yet. tracers are none, or one for each end.
func (s *Subject) bench(tb failer, seed uint64, f Faults, tracers ...microproto.Tracer) *bench {
	b := &bench{s: s}
	for end := range b.ends {
		c := s.Config
		c.Name = fmt.Sprintf("end%d", end)
		c.Seed = seed*2 + uint64(end)
		b.mem[end] = &Frames{Headroom: c.Headroom}
		c.Frames = b.mem[end]
		if tracers != nil {
			c.Tracer = tracers[end]
		}
		comp, err := microproto.NewComposite(c, s.New(end)...)
		noError(tb, err, "end %d", end)
		b.ends[end] = comp
		b.load[end] = &load{rand: rand.New(rand.NewPCG(seed, uint64(end))), left: s.Messages}
		if ep := comp.Endpoint(); ep != nil {
			noError(tb, ep.Slot(loadTag, s.Length&^7), "end %d: Slot", end)
		}
	}
	b.pair = NewPair(b.ends[0], b.ends[1], seed, f)
	frames, most := 0, 2000*s.Messages*s.most()
	b.pair.OnFrame = func(int, microproto.Frame) bool {
		if frames++; frames > most {
			b.pair.fail(fmt.Errorf("mptest: %d frames for %d messages each way, and no end", frames, s.Messages))
			return false
		}
		return true
	}
	return b
}

// played returns two ends that have played their load.
func (s *Subject) played(tb failer, seed uint64, f Faults, tracers ...microproto.Tracer) *bench {
	b := s.bench(tb, seed, f, tracers...)
	noError(tb, b.run(s.Quiet), "seed %d", seed)
	return b
}

func (b *bench) send(end int) error {
	l, c := b.load[end], b.ends[end]
	if l.left == 0 {
		return nil
	}
	ep := c.Endpoint()
	if ep == nil {
		return b.sendBelow(end)
	}
	var data []byte
	if len(l.again) > 0 {
		data = l.again[0]
	} else {
		data = l.bytes(b.s.Length &^ 7)
	}
	var err error
	doErr := b.pair.Do(end, func(x *microproto.Exec) { _, err = ep.Send(x, loadTag, uint64(len(l.sent)+1), data) })
	if doErr != nil {
		return doErr
	}
	if err != nil {
		l.refused++
		return err
	}
	l.left--
	l.sent = append(l.sent, data)
	l.again = l.again[min(1, len(l.again)):]
	return nil
}

func (l *load) bytes(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(l.rand.Uint32())
	}
	return data
}

func (b *bench) receive(end int) error {
	ep := b.ends[end].Endpoint()
	if ep == nil {
		b.load[end].got = b.pair.Received[end]
		return nil
	}
	for {
		var a microproto.Arrival
		var err error
		dst := make([]byte, b.s.Length&^7)
		if e := b.pair.Do(end, func(x *microproto.Exec) { a, err = ep.Receive(x, loadTag, dst, nil) }); e != nil {
			return e
		}
		if err != nil || !a.Fresh {
			return nil
		}
		b.load[end].got = append(b.load[end].got, dst[:a.Length])
	}
}

func (b *bench) run(rest time.Duration) error {
	if err := b.pair.Open(); err != nil {
		return err
	}
	return b.play(rest)
}

// play sends and receives the load of both ends, then lets virtual time pass.
func (b *bench) play(rest time.Duration) error {
	for round := 0; round < 100*b.s.Messages && b.load[0].left+b.load[1].left > 0; round++ {
		for end := range b.ends {
			_ = b.send(end) // a refused message is sent in a later round
			if err := b.ends[end].Err(); err != nil {
				return err
			}
			if err := b.receive(end); err != nil {
				return err
			}
		}
		if _, err := b.pair.Run(time.Millisecond); err != nil {
			return err
		}
	}
	return b.rest(rest)
}

// rest lets virtual time pass and receives meanwhile.
func (b *bench) rest(d time.Duration) error {
	for range 20 {
		quiet, err := b.pair.Run(d / 20)
		if err != nil {
			return err
		}
		for end := range b.ends {
			if err := b.receive(end); err != nil {
				return err
			}
		}
		if quiet && b.pair.next() == microproto.Never {
			break
		}
	}
	return nil
}

// close ends a run. All messages and frames must have been released.
func (b *bench) close(tb failer) {
	noError(tb, b.pair.Close(), "Close")
	for b.pair.Clock.Step() { // frames in flight arrive at a closed end
	}
	for end, c := range b.ends {
		for _, o := range c.Drain(nil) {
			o.Frame.Release()
			c.Recycle(o.Message)
		}
		n := c.Counters()
		must(tb, n.Balanced(), "end %d: the account does not balance: %+v", end, n)
		must(tb, n.Live == 0, "end %d: messages live after Close: %+v", end, n)
		must(tb, c.Deadline() == microproto.Never, "end %d: timers after Close", end)
	}
	for end, m := range b.mem {
		must(tb, m.Acquired == m.Released, "end %d: %d frames acquired, %d released", end, m.Acquired, m.Released)
	}
}

func (s *Subject) declares(t failer) {
	b := s.bench(t, 1, Faults{})
	must(t, slices.Contains(b.ends[0].Names(), s.Protocol), "New makes %q, not %q", b.ends[0].Names(), s.Protocol)
	second := s.bench(t, 2, Faults{})
	must(t, b.ends[0].Fingerprint() == second.ends[0].Fingerprint(),
		"two composites made alike have different fingerprints")
	must(t, b.ends[0].HeaderBytes() <= microproto.MaxHeaderBytes, "a header of %d bytes", b.ends[0].HeaderBytes())
	must(t, b.ends[0].MaxPayload() > 0, "the header leaves no room for payload in an MTU of %d", s.Config.MTU)
}

func (s *Subject) replays(t failer) {
	for seed := range uint64(3) {
		var sums [2][2]uint64
		var got [2][][]byte
		for k := range 2 {
			hashes := [2]*TraceHash{NewTraceHash(), NewTraceHash()}
			b := s.played(t, seed, *s.Faults, hashes[0], hashes[1])
			sums[k] = [2]uint64{hashes[0].Sum(), hashes[1].Sum()}
			got[k] = append(b.load[0].got, b.load[1].got...)
			must(t, hashes[0].Steps > 0, "seed %d: nothing was traced", seed)
		}
		must(t, sums[0] == sums[1], "seed %d: the same seed gave another run", seed)
		must(t, reflect.DeepEqual(got[0], got[1]), "seed %d: the same seed delivered other bytes", seed)
	}
}

func (s *Subject) isolated(t failer) {
	checks := [2]*Isolation{{}, {}}
	b := s.bench(t, 7, *s.Faults, checks[0], checks[1])
	for end := range checks {
		checks[end].Layout = b.ends[end].Layout()
	}
	noError(t, b.run(s.Quiet), "run")
	for _, c := range checks {
		must(t, len(c.Breaches) == 0, "%q", c.Breaches)
	}
}

func (s *Subject) conserves(t failer) {
	for seed := range uint64(5) {
		b := s.played(t, 100+seed, *s.Faults)
		for end, c := range b.ends {
			must(t, b.load[end].left == 0, "seed %d, end %d: %d messages could not be sent (%d refusals)", seed, end,
				b.load[end].left, b.load[end].refused)
			must(t, c.Counters().Balanced(), "seed %d, end %d: %+v", seed, end, c.Counters())
			s.arrived(t, seed, b.load[end].sent, b.load[1-end].got)
		}
		b.close(t)
	}
}

// arrived checks what an end received against what the other end sent.
func (s *Subject) arrived(t failer, seed uint64, sent, got [][]byte) {
	must(t, len(got) > 0, "seed %d: nothing arrived of %d messages", seed, len(sent))
	if !s.Reliable {
		return
	}
	must(t, len(sent) == len(got), "seed %d: %d messages sent, %d received", seed, len(sent), len(got))
	for i := range sent {
		must(t, bytes.Equal(sent[i], got[i]), "seed %d: message %d came changed or out of order", seed, i)
	}
}

func (s *Subject) quiet(t failer) {
	b := s.played(t, 3, Faults{Delay: 200 * time.Microsecond})
	sent := b.pair.Link.Stats(0).Sent + b.pair.Link.Stats(1).Sent
	const idle = 10 * time.Second
	noError(t, b.rest(idle), "idle")
	more := b.pair.Link.Stats(0).Sent + b.pair.Link.Stats(1).Sent - sent
	must(t, more <= uint64(2*idle/time.Millisecond), "idle ends sent %d frames in %v", more, idle)
	for end, c := range b.ends {
		n := c.Counters()
		must(t, n.Timers <= 64, "end %d: an idle composite keeps %d timers", end, n.Timers)
		must(t, n.Queued == 0, "end %d: an idle composite keeps %d events enqueued", end, n.Queued)
	}
	b.close(t)
}

func (s *Subject) bounded(t failer) {
	for k, l := range []microproto.Limits{
		{Messages: 6},
		{Messages: 40, Timers: 1},
		{Messages: 40, Outputs: 2},
		{Messages: 40, Queue: 3},
		{Messages: 40, RaiseDepth: 3},
		{Messages: 3, Timers: 1, Outputs: 1, Queue: 1, RaiseDepth: 2},
	} {
		tight := *s
		tight.Config.Limits = l
		b := tight.bench(t, uint64(k), *s.Faults)
		if err := b.run(100 * time.Millisecond); err != nil {
			// Beyond a bound a composite may fail, with ErrLimit.
			must(t, errors.Is(err, microproto.ErrLimit), "limits %+v: %v", l, err)
		}
		for end, c := range b.ends {
			n := c.Counters()
			must(t, n.Balanced(), "limits %+v, end %d: %+v", l, end, n)
			must(t, n.Live <= l.Messages, "limits %+v, end %d: %d messages live", l, end, n.Live)
			must(t, l.Timers == 0 || n.Timers <= l.Timers, "limits %+v, end %d: %d timers", l, end, n.Timers)
		}
	}
}

func (s *Subject) anyBytes(t *testing.T) {
	// The corpus are frames of a run: complete, truncated, changed and in any order.
	var corpus [][]byte
	b := s.bench(t, 5, *s.Faults)
	b.pair.OnFrame = func(end int, f microproto.Frame) bool {
		if end == 0 && len(corpus) < 64 {
			corpus = append(corpus, bytes.Clone(f.Data))
		}
		return true
	}
	noError(t, b.run(s.Quiet), "run")
	rapid.Check(t, func(rt *rapid.T) {
		b := s.bench(rt, rapid.Uint64().Draw(rt, "seed"), Faults{})
		noError(rt, b.pair.Open(), "Open")
		c := b.ends[1]
		for range rapid.IntRange(1, 20).Draw(rt, "frames") {
			data := arbitraryFrame(rt, corpus)
			segment := 0
			if s.Config.Train > 0 {
				segment = rapid.IntRange(0, len(data)).Draw(rt, "frames of")
			}
			err := c.Input(b.pair.Clock.Now(), microproto.Frame{Peer: 1, Data: data, Segment: segment})
			if s.isViolation(err) {
				must(rt, c.Counters().Balanced(), "%+v", c.Counters())
				return
			}
			noError(rt, err, "frame %x", data)
			_ = b.send(1)
			_, err = b.pair.Run(time.Duration(rapid.IntRange(0, 5_000_000).Draw(rt, "ns")))
			noError(rt, err, "after frame %x", data)
			noError(rt, b.receive(1), "Receive")
		}
		must(rt, c.Counters().Balanced(), "%+v", c.Counters())
		must(rt, c.Counters().Live <= 65536, "%+v", c.Counters())
		b.close(rt)
	})
}

func (s *Subject) isViolation(err error) bool {
	return slices.ContainsFunc(s.Violations, func(v error) bool { return errors.Is(err, v) })
}

// arbitraryFrame draws random bytes, or a frame of the corpus, truncated or changed.
func arbitraryFrame(rt *rapid.T, corpus [][]byte) []byte {
	kind := rapid.IntRange(0, 3).Draw(rt, "kind")
	if kind == 0 || len(corpus) == 0 {
		return rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(rt, "bytes")
	}
	data := bytes.Clone(rapid.SampledFrom(corpus).Draw(rt, "frame"))
	switch {
	case len(data) == 0:
	case kind == 1:
		data = data[:rapid.IntRange(0, len(data)).Draw(rt, "cut")]
	case kind == 2:
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			data[rapid.IntRange(0, len(data)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "value")
		}
	}
	return data
}
