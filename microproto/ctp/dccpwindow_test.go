package ctp

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A newer value replaces the waiting one segment by segment, at the same positions. A value that
// has to wait is copied.
func TestNewerValueReplacesTheWaitingOne(t *testing.T) {
	o := microproto.Options{OptionRTOFloor: int64(200 * time.Millisecond)}
	r := interRig(t, o, 600, 1, mptest.Faults{Delay: 10 * time.Millisecond}, 4000)
	w := r.ends[0].Protocol("DCCPWindowCongestionControl").(*DCCPWindowCongestionControl)
	segment := *r.ends[0].Endpoint().(*Asynchronous).segment
	parts := (4000 + segment - 1) / segment
	var offsets []int
	labelAt, offsetAt := offsetOf(r.ends[0], "asynchronous.label"), offsetOf(r.ends[0], attrOffset)
	var labels []uint64
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end == 0 {
			offsets = append(offsets, int(binary.BigEndian.Uint32(f.Data[offsetAt:]))/segment)
			labels = append(labels, binary.BigEndian.Uint64(f.Data[labelAt:]))
		}
		return true
	}
	buffer := value(4000, 1)
	for label := uint64(1); label <= 3; label++ {
		copy(buffer, value(4000, label))
		_, err := r.send(0, tag, label, buffer)
		require.NoError(t, err)
	}
	clear(buffer)
	require.Equal(t, parts, w.waiting.Len(), "the four that have gone wait again, with newer values")
	require.EqualValues(t, parts-4+parts, *w.replaced, "of the first what waited, of the second all")
	r.run(time.Second)
	// The first four were sent at once; then the waiting segments follow in the order of their
	// positions, from the second value on.
	require.Equal(t, []int{0, 1, 2, 3}, offsets[:4])
	require.Equal(t, []uint64{1, 1, 1, 1}, labels[:4])
	want := []int{}
	for i := 4; i < parts; i++ {
		want = append(want, i)
	}
	require.Equal(t, append(want, 0, 1, 2, 3), offsets[4:])
	require.Len(t, labels, parts+4)
	require.NotContains(t, labels[4:], uint64(1), "the old value is not sent")
	require.NotContains(t, labels[4:], uint64(2))
	dst := make([]byte, 4000)
	a, err := r.receive(1, tag, dst, nil)
	require.NoError(t, err)
	require.True(t, a.Complete)
	require.EqualValues(t, 3, a.Label)
	require.Equal(t, value(4000, 3), dst, "what the user did to its buffer meanwhile is not seen")
}

// While the receiver stalls, Send does not block, at most one copy of the slot waits and at most a
// window is in flight. When the receiver continues, the newest value arrives.
func TestStalledReceiver(t *testing.T) {
	const length = 64_000
	mem := &mptest.Frames{}
	r := &rig{tb: t}
	for i := range r.ends {
		config := microproto.Config{Name: string(rune('a' + i)), MTU: 1400}
		if i == 0 {
			config.Frames = mem
		}
		c, err := microproto.NewComposite(config, build(t, asyncInter, interOptions)...)
		require.NoError(t, err)
		require.NoError(t, c.Endpoint().Slot(tag, length))
		r.ends[i] = c
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, mptest.Faults{Delay: 5 * time.Millisecond})
	r.open()
	last := uint64(0)
	send := func(n int, pause time.Duration) {
		for range n {
			last++
			_, err := r.send(0, tag, last, value(length, last))
			require.NoError(t, err)
			r.run(pause)
		}
	}
	send(200, 5*time.Millisecond)
	r.Link.Partition(0, true)
	parts := len(r.ends[0].Endpoint().(*Asynchronous).slots[0].parts)
	before := r.Link.Stats(0).Sent
	send(2000, time.Millisecond)
	require.LessOrEqual(t, r.ends[0].Counters().Live, parts)
	require.LessOrEqual(t, int(mem.Acquired-mem.Released), parts)
	require.Less(t, r.Link.Stats(0).Sent-before, uint64(maxFlight/2), "a window, then a packet for each time-out")
	r.Link.Partition(0, false)
	ok, err := r.RunUntil(2*time.Second, func() bool {
		dst := make([]byte, length)
		a, err := r.receive(1, tag, dst, nil)
		return err == nil && a.Complete && a.Label == last
	})
	require.NoError(t, err)
	require.True(t, ok, "the newest value arrives completely")
	require.NoError(t, r.Pair.Close())
	require.Equal(t, mem.Acquired, mem.Released)
}

// Whatever the faults, the window is never exceeded, parts never become older, and the newest
// value arrives completely when it is repeated after the faults.
func TestAsynchronousInterNewestWins(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		length := 8 * rapid.IntRange(1, 600).Draw(rt, "words")
		f := mptest.Faults{
			Delay:  time.Duration(rapid.IntRange(0, 20_000).Draw(rt, "delay µs")) * time.Microsecond,
			Jitter: time.Millisecond,
			Loss:   rapid.Float64Range(0, 0.4).Draw(rt, "loss"), Duplicate: 0.1,
			Reorder: rapid.Float64Range(0, 0.5).Draw(rt, "reorder"),
		}
		o := microproto.Options{
			OptionRTOFloor: int64(20 * time.Millisecond),
			OptionFirst:    int64(uint32(-rapid.IntRange(0, 100).Draw(rt, "before the wrap"))),
		}
		r := interRig(rt, o, rapid.IntRange(100, 600).Draw(rt, "mtu"), rapid.Uint64().Draw(rt, "seed"), f, length)
		flagsAt := offsetOf(r.ends[0], attrPacketFlags)
		r.OnFrame = func(end int, f microproto.Frame) bool {
			w := r.ends[end].Protocol("DCCPWindowCongestionControl").(*DCCPWindowCongestionControl)
			if f.Data[flagsAt]&flagData != 0 {
				require.LessOrEqual(rt, *w.inFlight, max(*w.announced, 1))
			}
			return true
		}
		dst, held := make([]byte, length), make([]uint64, length/8)
		look := func() microproto.Arrival {
			a, err := r.receive(1, tag, dst, nil)
			require.NoError(rt, err)
			for i := range held {
				v := binary.LittleEndian.Uint64(dst[8*i:])
				require.GreaterOrEqual(rt, v, held[i], "a part went back")
				held[i] = v
			}
			return a
		}
		const last = 60
		both := rapid.Bool().Draw(rt, "both ways")
		for k := uint64(1); k <= last; k++ {
			_, err := r.send(0, tag, k, value(length, k))
			require.NoError(rt, err)
			if both {
				_, err := r.send(1, tag, k, value(length, k))
				require.NoError(rt, err)
			}
			r.run(time.Duration(rapid.IntRange(0, 30_000).Draw(rt, "pause µs")) * time.Microsecond)
			look()
		}
		r.Link.SetFaults(mptest.Faults{Delay: time.Millisecond})
		r.run(3 * time.Second)
		for range 2 {
			_, err := r.send(0, tag, last, value(length, last))
			require.NoError(rt, err)
			r.run(3 * time.Second)
		}
		a := look()
		require.True(rt, a.Complete)
		require.EqualValues(rt, last, a.Label)
		require.NoError(rt, r.Pair.Close())
		for end := range r.ends {
			require.True(rt, r.ends[end].Counters().Balanced())
		}
	})
}

// ages sends a value of one packet every period, 2000 in all, and returns the ages of the
// receiver's newest value, sampled 20 times each period.
func ages(t *testing.T, o microproto.Options, seed uint64, period, way time.Duration, loss float64) []time.Duration {
	r := interRig(t, o, 1400, seed, mptest.Faults{Delay: way, Loss: loss}, 800)
	step := period / 20
	dst := make([]byte, 800)
	var ages []time.Duration
	var newest time.Duration
	for now := time.Duration(0); now < 2000*period; now += step {
		if now%period == 0 {
			_, err := r.send(0, tag, uint64(now), value(800, uint64(now)))
			require.NoError(t, err)
		}
		r.run(step)
		a, err := r.receive(1, tag, dst, nil)
		require.NoError(t, err)
		if a.Complete {
			newest = time.Duration(a.Newest)
		}
		if now > 100*period {
			ages = append(ages, now+step-newest)
		}
	}
	return ages
}

// In 99 of 100 instants the newest value is at most two periods and 1.1 one-way delays old, with 5
// % loss in both directions. The period is not shorter than the round trip: the window limits a
// faster sender as TCP would.
func TestAgeOfTheNewestValue(t *testing.T) {
	for _, c := range []struct{ period, way time.Duration }{
		{5 * time.Millisecond, time.Millisecond},
		{20 * time.Millisecond, 5 * time.Millisecond},
		{20 * time.Millisecond, 10 * time.Millisecond},
		{100 * time.Millisecond, 40 * time.Millisecond},
	} {
		var all []time.Duration
		for seed := range uint64(2) {
			all = append(all, ages(t, interOptions, seed, c.period, c.way, 0.05)...)
		}
		slices.Sort(all)
		bound := 2*c.period + c.way*11/10
		require.LessOrEqual(t, all[len(all)*99/100], bound, "period %v, way %v", c.period, c.way)
		require.Less(t, all[len(all)/2], c.period+c.way)
	}
}

// A busy channel allocates nothing at either end, even while values wait.
func TestAsynchronousInterAllocatesNothing(t *testing.T) {
	a, b := plainEnd(t, asyncInter, interOptions), plainEnd(t, asyncInter, interOptions)
	data, dst := value(64_000, 1), make([]byte, 64_000)
	for _, c := range []*microproto.Composite{a, b} {
		require.NoError(t, c.Endpoint().Slot(tag, len(data)))
	}
	var label uint64
	var now microproto.Instant
	var outs, backs []microproto.Output
	send := func(x *microproto.Exec) { _, _ = a.Endpoint().Send(x, tag, label, data) }
	receive := func(x *microproto.Exec) { _, _ = b.Endpoint().Receive(x, tag, dst, nil) }
	turn := func() {
		label++
		now = now.Add(time.Millisecond)
		_ = a.Do(now, send)
		for range 3 {
			outs = a.Drain(outs[:0])
			for i, o := range outs {
				if label%64 == 0 && i == 0 {
					o.Frame.Release() // a loss now and then
					continue
				}
				_ = b.Input(now, o.Frame)
			}
			backs = b.Drain(backs[:0])
			for _, o := range backs {
				_ = a.Input(now, o.Frame)
			}
		}
		_ = b.Do(now, receive)
		_ = a.Advance(now)
		_ = b.Advance(now)
	}
	for range 300 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(300, turn))
	w := a.Protocol("DCCPWindowCongestionControl").(*DCCPWindowCongestionControl)
	require.Positive(t, *w.replaced, "values waited")
	require.Positive(t, b.Endpoint().Arrivals())
}

// Three values of six packets each pass through a window of four. A packet of the first is lost,
// the second value waits, and the third replaces it.
func TestAsynchronousInterTranscript(t *testing.T) {
	text := mptest.NewTranscript("a")
	r := &rig{tb: t}
	for i, tr := range []microproto.Tracer{text, text.Join("b")} {
		c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), MTU: 120, Tracer: tr},
			build(t, asyncInter, interOptions)...)
		require.NoError(t, err)
		require.NoError(t, c.Endpoint().Slot(tag, 6*(120-c.HeaderBytes())&^7))
		r.ends[i] = c
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, mptest.Faults{Delay: time.Millisecond})
	n := 0
	r.OnFrame = func(end int, _ microproto.Frame) bool {
		if end == 0 {
			n++
		}
		return end != 0 || n != 2
	}
	r.open()
	length := len(r.ends[0].Endpoint().(*Asynchronous).slots[0].data)
	for label := uint64(1); label <= 3; label++ {
		_, err := r.send(0, tag, label, value(length, label))
		require.NoError(t, err)
	}
	r.run(200 * time.Millisecond)
	require.NoError(t, r.Pair.Close())
	mptest.Golden(t, "newest_value.txt", text.String())
}

// The next composition starts with the measured round trip, and slow start may go up to the last
// window.
func TestAsynchronousInterExportsPathState(t *testing.T) {
	s := newPacketSender(t, interOptions)
	s.grow(40)
	first := len(s.numbers) - s.inFlight()
	s.acked(first+3, first)
	mps := build(t, asyncInter, interOptions)
	c, err := microproto.NewComposite(microproto.Config{Name: "next", MTU: packetMTU}, mps...)
	require.NoError(t, err)
	for _, mp := range mps {
		old := s.c.Protocol(mp.Name())
		if e, ok := old.(microproto.StateExporter); ok {
			require.NoError(t, mp.(microproto.StateExporter).ImportState(e.ExportState()))
			require.Error(t, mp.(microproto.StateExporter).ImportState("something else"))
		}
	}
	require.NoError(t, c.Endpoint().Slot(tag, 800))
	require.NoError(t, c.Open(0))
	d := c.Protocol("DCCPAck").(*DCCPAck)
	require.Positive(t, *d.estimate.rtt)
	require.Equal(t, *s.ack().estimate.rtt, *d.estimate.rtt)
	require.Equal(t, s.ack().rto, d.rto)
	require.Zero(t, d.flight.inFlight)
	w := c.Protocol("DCCPWindowCongestionControl").(*DCCPWindowCongestionControl)
	require.Equal(t, 4, *w.announced)
	require.Equal(t, s.threshold(), w.shared.Controller.Threshold())
	require.Greater(t, s.threshold(), 15)
}
