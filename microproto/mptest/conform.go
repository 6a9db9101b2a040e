package mptest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Subject is a micro-protocol under test with the company that it needs.
type Subject struct {
	// Protocol is the name of the one under test.
	Protocol string
	// New makes the micro-protocols of one end (0 or 1), from top to bottom, the
	// one under test among them. Top and Bottom may stand around it.
	New func(end int) []microproto.MicroProtocol
	// Config of both ends; Tracer, Frames and Seed are the suite's. MTU 0: 200.
	Config microproto.Config
	// Faults of the link in the runs with faults; zero: some of every kind but
	// corruption.
	Faults *Faults
	// Messages and Length of the traffic each way (default 40 messages of up to
	// 600 bytes; without an Endpoint, of up to the segment size).
	Messages, Length int
	// Reliable: in the end every message has arrived, once and in order.
	Reliable bool
	// Tail is what the micro-protocol adds behind a payload, in bytes: without an
	// Endpoint the suite leaves room for it.
	Tail int
	// Quiet is how long the ends may take, after the last message, to fall silent
	// or into their idle rhythm (default 1 min of virtual time).
	Quiet time.Duration
	// Violations are the errors by which a frame that no correct sender makes may end the
	// composite: those of a reliable channel, which cannot leave a message out. Any other
	// frame is accepted, or dropped with a counted reason.
	Violations []error
}

// Conform is the conformance suite of a micro-protocol. Where it and its company take
// trains, the suite runs with trains as well: a train and its segments one by one must
// lead to the same deliveries.
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
}

func (s *Subject) defaults() {
	if s.Config.MTU == 0 {
		s.Config.MTU = 200
	}
	if s.Faults == nil {
		s.Faults = &Faults{Delay: 300 * time.Microsecond, Jitter: 200 * time.Microsecond, Loss: 0.1, Duplicate: 0.05, Reorder: 0.1}
	}
	if s.Messages == 0 {
		s.Messages = 40
	}
	if s.Length == 0 {
		s.Length = 600
	}
	if s.Quiet == 0 {
		s.Quiet = time.Minute
	}
}

type check struct {
	name string
	run  func(t require.TestingT)
}

func (s *Subject) checks() []check {
	checks := []check{
		{"declares what it is", s.declares},
		{"replays", s.replays},
		{"keeps to its header", s.isolated},
		{"accounts for every message", s.conserves},
		{"falls quiet", s.quiet},
		{"stays within limits", s.bounded},
		{"is replaced while running", s.replaced},
	}
	if s.Config.Train > 0 {
		checks = append(checks, check{"takes a train as its segments", s.trains})
	}
	return checks
}

// bench is one run of a subject.
type bench struct {
	s    *Subject
	pair *Pair
	ends [2]*microproto.Composite
	mem  [2]*Frames
	load [2]*load
}

// load is the traffic of one end.
type load struct {
	rand *rand.Rand
	sent [][]byte
	got  [][]byte
	left int
	// refused counts sends that found no room.
	refused int
}

const loadTag = 1

func (s *Subject) bench(tb require.TestingT, seed uint64, f Faults, tracer [2]microproto.Tracer) *bench {
	b := &bench{s: s}
	for end := range b.ends {
		c := s.Config
		c.Name = fmt.Sprintf("end%d", end)
		c.Seed = seed*2 + uint64(end)
		b.mem[end] = &Frames{Headroom: c.Headroom}
		c.Frames, c.Tracer = b.mem[end], tracer[end]
		comp, err := microproto.NewComposite(c, s.New(end)...)
		require.NoError(tb, err)
		b.ends[end] = comp
		b.load[end] = &load{rand: rand.New(rand.NewPCG(seed, uint64(end))), left: s.Messages}
		if ep := comp.Endpoint(); ep != nil {
			require.NoError(tb, ep.Slot(loadTag, s.Length&^7))
		}
	}
	b.pair = NewPair(b.ends[0], b.ends[1], seed, f)
	frames, most := 0, 2000*s.Messages*s.most()
	b.pair.OnFrame = func(int, microproto.Frame) bool {
		if frames++; frames > most {
			b.pair.note(fmt.Errorf("mptest: %d frames for %d messages each way, and no end", frames, s.Messages))
			return false
		}
		return true
	}
	return b
}

// send tries to send one message of an end's load.
func (b *bench) send(end int) error {
	l, c := b.load[end], b.ends[end]
	if l.left == 0 {
		return nil
	}
	ep := c.Endpoint()
	if ep == nil {
		return b.sendBelow(end)
	}
	data := l.bytes(b.s.Length &^ 7)
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
	return nil
}

// bytes draws n bytes.
func (l *load) bytes(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(l.rand.Uint32())
	}
	return data
}

// receive takes what has come to an end with an endpoint.
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

// run plays the load of both ends, then lets them come to rest.
func (b *bench) run(rest time.Duration) error {
	if err := b.pair.Open(); err != nil {
		return err
	}
	for round := 0; round < 100*b.s.Messages && b.load[0].left+b.load[1].left > 0; round++ {
		for end := range b.ends {
			_ = b.send(end) // what finds no room is tried again in a later round
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

// rest lets virtual time pass, receiving meanwhile.
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

// close ends a run: everything lent must have come back.
func (b *bench) close(tb require.TestingT) {
	require.NoError(tb, b.pair.Close())
	for b.pair.Clock.Step() { // frames still on the link find a closed end
	}
	for end, c := range b.ends {
		for _, o := range c.Drain(nil) {
			o.Frame.Release()
			c.Recycle(o.Message)
		}
		n := c.Counters()
		require.True(tb, n.Balanced(), "end %d: the account does not balance: %+v", end, n)
		require.Zero(tb, n.Live, "end %d: messages live after Close: %+v", end, n)
		require.Equal(tb, microproto.Never, c.Deadline(), "end %d: timers after Close", end)
	}
	for end, m := range b.mem {
		require.Equal(tb, m.Acquired, m.Released, "end %d: frames acquired and not released", end)
	}
}

func (s *Subject) declares(t require.TestingT) {
	b := s.bench(t, 1, Faults{}, [2]microproto.Tracer{})
	require.Contains(t, b.ends[0].Names(), s.Protocol)
	require.Equal(t, b.ends[0].Fingerprint(), s.bench(t, 2, Faults{}, [2]microproto.Tracer{}).ends[0].Fingerprint(),
		"two composites made alike have one fingerprint")
	require.LessOrEqual(t, b.ends[0].HeaderBytes(), microproto.MaxHeaderBytes)
	require.Positive(t, b.ends[0].MaxPayload(), "the header leaves no room for payload in an MTU of %d", s.Config.MTU)
}

func (s *Subject) replays(t require.TestingT) {
	for seed := range uint64(3) {
		var sums [2][2]uint64
		var got [2][][]byte
		for k := range 2 {
			hashes := [2]*TraceHash{NewTraceHash(), NewTraceHash()}
			b := s.bench(t, seed, *s.Faults, [2]microproto.Tracer{hashes[0], hashes[1]})
			require.NoError(t, b.run(s.Quiet))
			sums[k] = [2]uint64{hashes[0].Sum(), hashes[1].Sum()}
			got[k] = append(b.load[0].got, b.load[1].got...)
			require.NotZero(t, hashes[0].Steps)
		}
		require.Equal(t, sums[0], sums[1], "seed %d: the same seed gave another run", seed)
		require.Equal(t, got[0], got[1], "seed %d: the same seed delivered other bytes", seed)
	}
}

func (s *Subject) isolated(t require.TestingT) {
	checks := [2]*Isolation{{}, {}}
	b := s.bench(t, 7, *s.Faults, [2]microproto.Tracer{checks[0], checks[1]})
	for end := range checks {
		checks[end].Layout = b.ends[end].Layout()
	}
	require.NoError(t, b.run(s.Quiet))
	for _, c := range checks {
		require.Empty(t, c.Breaches)
	}
}

func (s *Subject) conserves(t require.TestingT) {
	for seed := range uint64(5) {
		b := s.bench(t, 100+seed, *s.Faults, [2]microproto.Tracer{})
		require.NoError(t, b.run(s.Quiet), "seed %d", seed)
		for end, c := range b.ends {
			require.Zero(t, b.load[end].left, "seed %d, end %d: messages could not be sent (%d refusals)", seed, end, b.load[end].refused)
			require.True(t, c.Counters().Balanced(), "seed %d, end %d: %+v", seed, end, c.Counters())
			got, sent := b.load[1-end].got, b.load[end].sent
			if s.Reliable {
				require.Equal(t, len(sent), len(got), "seed %d: messages from end %d arrived", seed, end)
				for i := range sent {
					require.True(t, bytes.Equal(sent[i], got[i]), "seed %d: message %d of end %d came changed or out of order", seed, i, end)
				}
			} else {
				require.NotEmpty(t, got, "seed %d: nothing of end %d arrived", seed, end)
			}
		}
		b.close(t)
	}
}

func (s *Subject) quiet(t require.TestingT) {
	b := s.bench(t, 3, Faults{Delay: 200 * time.Microsecond}, [2]microproto.Tracer{})
	require.NoError(t, b.run(s.Quiet))
	sent := b.pair.Link.Stats(0).Sent + b.pair.Link.Stats(1).Sent
	const idle = 10 * time.Second
	require.NoError(t, b.rest(idle))
	more := b.pair.Link.Stats(0).Sent + b.pair.Link.Stats(1).Sent - sent
	require.LessOrEqual(t, more, uint64(2*idle/time.Millisecond), "idle ends sent %d frames in %v", more, idle)
	for end, c := range b.ends {
		n := c.Counters()
		require.LessOrEqual(t, n.Timers, 64, "end %d: an idle composite keeps %d timers", end, n.Timers)
		require.Zero(t, n.Queued)
	}
	b.close(t)
}

func (s *Subject) bounded(t require.TestingT) {
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
		b := tight.bench(t, uint64(k), *s.Faults, [2]microproto.Tracer{})
		if err := b.run(100 * time.Millisecond); err != nil {
			// Past a bound a composite may fail, with an error of the kernel's.
			require.ErrorIs(t, err, microproto.ErrLimit, "limits %+v", l)
		}
		for end, c := range b.ends {
			n := c.Counters()
			require.True(t, n.Balanced(), "limits %+v, end %d: %+v", l, end, n)
			require.LessOrEqual(t, n.Live, l.Messages, "limits %+v, end %d", l, end)
			if l.Timers > 0 {
				require.LessOrEqual(t, n.Timers, l.Timers)
			}
		}
	}
}

func (s *Subject) anyBytes(t *testing.T) {
	// Frames of a real run are the corpus: whole, cut, changed and in any order.
	var corpus [][]byte
	b := s.bench(t, 5, *s.Faults, [2]microproto.Tracer{})
	b.pair.OnFrame = func(end int, f microproto.Frame) bool {
		if end == 0 && len(corpus) < 64 {
			corpus = append(corpus, bytes.Clone(f.Data))
		}
		return true
	}
	require.NoError(t, b.run(s.Quiet))
	rapid.Check(t, func(rt *rapid.T) {
		b := s.bench(rt, rapid.Uint64().Draw(rt, "seed"), Faults{}, [2]microproto.Tracer{})
		require.NoError(rt, b.pair.Open())
		c := b.ends[1]
		for range rapid.IntRange(1, 20).Draw(rt, "frames") {
			data := hostile(rt, corpus)
			segment := 0
			if s.Config.Train > 0 {
				segment = rapid.IntRange(0, len(data)).Draw(rt, "frames of")
			}
			err := c.Input(b.pair.Clock.Now(), microproto.Frame{Peer: 1, Data: data, Segment: segment})
			if s.violated(err) {
				require.True(rt, c.Counters().Balanced(), "%+v", c.Counters())
				return
			}
			require.NoError(rt, err, "frame %x", data)
			_ = b.send(1)
			_, err = b.pair.Run(time.Duration(rapid.IntRange(0, 5_000_000).Draw(rt, "ns")))
			require.NoError(rt, err)
			require.NoError(rt, b.receive(1))
		}
		require.True(rt, c.Counters().Balanced(), "%+v", c.Counters())
		require.LessOrEqual(rt, c.Counters().Live, 65536)
		b.close(rt)
	})
}

func (s *Subject) violated(err error) bool {
	return slices.ContainsFunc(s.Violations, func(v error) bool { return errors.Is(err, v) })
}

// hostile draws a frame: random bytes, or a real one cut or changed.
func hostile(rt *rapid.T, corpus [][]byte) []byte {
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

// replaced swaps the subject for a fresh one in the middle of the traffic. A
// refusal is fine and must change nothing; what is accepted must go on working.
func (s *Subject) replaced(t require.TestingT) {
	for seed := range uint64(4) {
		b := s.bench(t, 200+seed, *s.Faults, [2]microproto.Tracer{})
		require.NoError(t, b.pair.Open())
		for range 5 {
			_ = b.send(0)
			_ = b.send(1)
			_, err := b.pair.Run(time.Millisecond)
			require.NoError(t, err)
		}
		c := b.ends[0]
		print0 := c.Fingerprint()
		if err := c.Replace(b.pair.Clock.Now(), s.Protocol, s.fresh(t, 0)); err == nil {
			require.Equal(t, print0, c.Fingerprint(), "a successor of the same kind has the same header")
		} else {
			require.NoError(t, c.Err(), "a refused replacement must leave the composite as it was (refused with: %v)", err)
		}
		require.NoError(t, b.rest(time.Second))
		_, err := c.Detach(b.pair.Clock.Now(), "no such micro-protocol")
		require.Error(t, err)
		if _, err := c.Detach(b.pair.Clock.Now(), s.Protocol); err != nil {
			require.NoError(t, c.Err(), "a refused detachment must leave the composite as it was (refused with: %v)", err)
			require.Contains(t, c.Names(), s.Protocol)
		} else {
			require.NotContains(t, c.Names(), s.Protocol)
		}
		require.True(t, c.Counters().Balanced(), "%+v", c.Counters())
	}
}

func (s *Subject) fresh(t require.TestingT, end int) microproto.MicroProtocol {
	for _, mp := range s.New(end) {
		if mp.Name() == s.Protocol {
			return mp
		}
	}
	require.Failf(t, "no such micro-protocol", "New does not make %q", s.Protocol)
	return nil
}
