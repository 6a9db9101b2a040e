package ctp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var syncCubic = append(append([]string(nil), syncInter...), CUBICCongestionAvoidance)

func TestConformanceOfCUBIC(t *testing.T) {
	for _, name := range []string{"WindowCongestionControl", "TCPNewRenoCongestionAvoidance",
		CUBICCongestionAvoidance} {
		t.Run(name, func(t *testing.T) {
			mptest.Conform(t, mptest.Subject{
				Protocol: name,
				New:      func(int) []microproto.MicroProtocol { return build(t, syncCubic, nil) },
				Reliable: true, Violations: []error{errCoalesced},
				Messages: conformMessages(),
			})
		})
	}
}

// windowWatch checks every frame of one end: a new segment is sent only if it fits the largest
// window since the last acknowledgement, and new segments are sent in the order of their numbers.
type windowWatch struct {
	tb            require.TestingT
	window        *WindowCongestionControl
	retransmit    *Retransmit
	header        int // bytes
	sent          uint64
	limit         uint64
	most          int    // segments in flight at once
	next          uint32 // number of the next new segment
	number, flags int    // where they are in a frame
}

func watchWindow(r *rig, end int) *windowWatch {
	w := r.ends[end].Protocol("WindowCongestionControl").(*WindowCongestionControl)
	return &windowWatch{
		tb: r.tb, window: w, retransmit: r.ends[end].Protocol("Retransmit").(*Retransmit),
		header: r.ends[end].HeaderBytes(), sent: *w.sentTo, limit: *w.limit,
		next:   r.ends[end].Protocol("SequencedSegment").(*SequencedSegment).first,
		number: offsetOf(r.ends[end], attrNumber), flags: offsetOf(r.ends[end], attrFlags),
	}
}

func (w *windowWatch) frame(f microproto.Frame) {
	data := f.Data
	if n := binary.BigEndian.Uint32(data[w.number:]); data[w.flags]&flagData != 0 && !before(n, w.next) {
		require.Equal(w.tb, w.next, n, "a segment was skipped")
		w.next += uint32(f.Count())
	}
	checkAccounts(w.tb, w.retransmit, w.header)
	c := w.window.shared
	limit := max(*w.window.limit, *w.window.ackedTo+uint64(max(c.Window, c.Unit)))
	w.limit = max(w.limit, limit)
	if sent := *w.window.sentTo; sent != w.sent {
		require.LessOrEqual(w.tb, sent, w.limit, "more in flight than the window of %d bytes, acknowledged %d",
			c.Window, *w.window.ackedTo)
		w.sent = sent
		w.most = max(w.most, int(sent-*w.window.ackedTo)/c.Unit)
	}
	w.limit = limit
}

// crossing is traffic in both directions over the synchronous column between clusters, with the
// window checked at both ends.
type crossing struct {
	*rig
	sizes   []int
	watches [2]*windowWatch
	next    [2]int
	got     [2]int
}

func newCrossing(r *rig, sizes []int) *crossing {
	c := &crossing{rig: r, sizes: sizes}
	r.OnFrame = func(end int, f microproto.Frame) bool {
		c.watches[end].frame(f)
		return true
	}
	for end := range 2 {
		c.watches[end] = watchWindow(r, end)
	}
	r.open()
	return c
}

func (c *crossing) done() bool { return c.got[0] == len(c.sizes) && c.got[1] == len(c.sizes) }

// turn sends as much as the credit admits, and receives all that has arrived.
func (c *crossing) turn() {
	for end := range 2 {
		for c.next[end] < len(c.sizes) {
			k := c.next[end]
			if _, err := c.send(end, tag, uint64(k), pattern(c.sizes[k], uint64(k))); err != nil {
				require.ErrorIs(c.tb, err, microproto.ErrBusy)
				break
			}
			c.next[end]++
		}
		data, labels := c.drain(end, 4000)
		for i := range data {
			k := c.got[end]
			require.EqualValues(c.tb, k, labels[i])
			require.True(c.tb, bytes.Equal(pattern(c.sizes[k], uint64(k)), data[i]), "message %d at end %d", k, end)
			c.got[end]++
		}
	}
}

// play runs until all messages are received, for at most limit of virtual time, and then until the
// last acknowledgements have arrived.
func (c *crossing) play(limit time.Duration) {
	for !c.done() {
		require.Less(c.tb, time.Duration(c.Clock.Now()), limit, "no progress: sent %v, received %v of %d", c.next,
			c.got, len(c.sizes))
		c.turn()
		quiet, err := c.Run(20 * time.Millisecond)
		require.NoError(c.tb, err)
		if quiet {
			c.Clock.Advance(c.Clock.Now().Add(20 * time.Millisecond))
		}
	}
	c.run(30 * time.Second)
	for end := range 2 {
		require.EqualValues(c.tb, len(c.sizes), c.accepted(end), "every transfer is accepted in the end")
		require.True(c.tb, c.ends[end].Counters().Balanced())
		require.Zero(c.tb, c.ends[end].Counters().Live, "end %d: %+v", end, c.ends[end].Counters())
	}
	require.NoError(c.tb, c.Pair.Close())
}

// Whatever the faults and the controller, every message arrives once, in order and complete, and
// the window is never exceeded.
func TestInterClusterExactlyOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SampledFrom([][]string{syncInter, syncCubic}).Draw(rt, "column")
		f := mptest.Faults{
			Delay:     time.Duration(rapid.IntRange(0, 20_000).Draw(rt, "delay µs")) * time.Microsecond,
			Jitter:    time.Duration(rapid.IntRange(0, 1000).Draw(rt, "jitter µs")) * time.Microsecond,
			Loss:      rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.3}).Draw(rt, "loss"),
			Duplicate: rapid.SampledFrom([]float64{0, 0.1}).Draw(rt, "duplicate"),
			Reorder:   rapid.SampledFrom([]float64{0, 0.2}).Draw(rt, "reorder"),
		}
		floors := []time.Duration{10 * time.Millisecond, 200 * time.Millisecond}
		o := microproto.Options{
			OptionRTOFloor:    int64(rapid.SampledFrom(floors).Draw(rt, "floor")),
			OptionFirst:       int64(rapid.SampledFrom([]uint32{0, 1, 1<<32 - 20, 1<<31 - 5}).Draw(rt, "first")),
			OptionReceive:     rapid.Int64Range(5000, 50_000).Draw(rt, "queue"),
			OptionInFlight:    rapid.Int64Range(100, 40_000).Draw(rt, "retransmit's window"),
			OptionPeerReceive: 0, OptionRTOMax: int64(time.Second), // otherwise most of the virtual time is back-off
			OptionSelective:   rapid.Int64Range(0, 1).Draw(rt, "selective"),
			OptionProbeMargin: rapid.SampledFrom([]int64{0, int64(5 * time.Millisecond)}).Draw(rt, "probes"),
		}
		o[OptionPeerReceive] = o[OptionReceive]
		train := rapid.SampledFrom([]int{0, 1000, trainBytes}).Draw(rt, "train")
		r := newTrainRig(rt, names, o, rapid.IntRange(160, 1500).Draw(rt, "mtu"), train,
			rapid.Uint64().Draw(rt, "seed"), f)
		c := newCrossing(r, rapid.SliceOfN(rapid.IntRange(0, 4000), 1, 20).Draw(rt, "sizes"))
		c.play(noProgress)
	})
}

// Long runs with all faults, in which the window grows and shrinks.
func TestInterClusterSeeds(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 40
	}
	most := 0
	for seed := range seeds {
		f := mptest.Faults{
			Delay: 5 * time.Millisecond, Jitter: time.Millisecond,
			Loss: []float64{0, 0.001, 0.01, 0.05}[seed%4], Duplicate: 0.01, Reorder: 0.01,
		}
		names := [][]string{syncInter, syncCubic}[seed/4%2]
		train := []int{0, trainBytes}[seed/8%2]
		o := microproto.Options{OptionRTOFloor: int64(50 * time.Millisecond), OptionSelective: int64(seed / 16 % 2)}
		r := newTrainRig(t, names, o, 500, train, seed, f)
		sizes := make([]int, 60)
		for i := range sizes {
			sizes[i] = int((seed*7919 + uint64(i)*104729) % 4000)
		}
		c := newCrossing(r, sizes)
		c.play(10 * time.Minute)
		most = max(most, c.watches[0].most)
	}
	require.Greater(t, most, 40, "segments in flight at once in some run")
}

// Without the three lower rows Retransmit detects losses by the bitmap, and no window holds
// segments.
func TestInterClusterRowsLeftOut(t *testing.T) {
	r := newRig(t, syncInter[:len(syncInter)-3], nil, 200, 1, calm).open()
	lose := true
	r.OnFrame = func(end int, f microproto.Frame) bool {
		keep := end != 0 || !lose
		lose = lose && end != 0
		return keep
	}
	_, err := r.send(0, tag, 1, pattern(5000, 1))
	require.NoError(t, err)
	require.Greater(t, r.Link.Stats(0).Sent, uint64(20), "the whole message at once")
	r.run(time.Millisecond)
	require.EqualValues(t, 1, r.accepted(0), "repaired without a time-out")
}

// A controller that is set while the channel works starts with the window and the threshold of the
// one before.
func TestControllerIsReplacedWhileRunning(t *testing.T) {
	f := newFlights(t, nil)
	f.write(60)
	f.until(2)
	reno := f.shared().Controller
	require.IsType(t, &Reno{}, reno)
	cubic, err := NewCUBIC(nil)
	require.NoError(t, err)
	f.shared().Use(f.Clock.Now(), cubic)
	require.EqualValues(t, 12, f.window(), "the window is that of the controller before")
	f.until(3)
	require.Len(t, f.rounds[3], 24, "and in slow start")
	window := f.window()
	f.shared().Use(f.Clock.Now(), reno)
	require.Same(t, reno, f.shared().Controller)
	require.InDelta(t, window, f.window(), 0.001)
	f.run(time.Second)
	require.EqualValues(t, 1, f.accepted(0))
}

// sevens is a controller with a constant window.
type sevens struct{ Reno }

func (s *sevens) Window() int { return 7 * 1000 }

func TestControllerRow(t *testing.T) {
	c := Catalog()
	require.NoError(t, c.AddRow(ControllerRow("Fixed", "a test",
		func(microproto.Options) (Controller, error) { return &sevens{}, nil })))
	mps, err := c.Build(append(append([]string(nil), syncInter...), "Fixed"), microproto.Options{OptionAckEvery: 1})
	require.NoError(t, err)
	a, err := microproto.NewComposite(microproto.Config{Name: "a", MTU: 1060}, mps...)
	require.NoError(t, err)
	b, err := microproto.NewComposite(microproto.Config{Name: "b", MTU: 1060},
		build(t, syncInter, microproto.Options{OptionAckEvery: 1})...)
	require.NoError(t, err)
	r := &rig{tb: t, ends: [2]*microproto.Composite{a, b}, Pair: mptest.NewPair(a, b, 1, calm)}
	r.open()
	_, err = r.send(0, tag, 1, pattern(100_000, 1))
	require.NoError(t, err)
	require.EqualValues(t, 6, r.Link.Stats(0).Sent, "segments of 1060 bytes in 7000")
	r.run(time.Second)
	require.EqualValues(t, 1, r.accepted(0))

	_, err = ControllerRow("None", "a test", func(microproto.Options) (Controller, error) { return nil, nil }).New(nil)
	require.ErrorContains(t, err, "None returned no controller")
	_, err = ControllerRow("Bad", "a test", func(microproto.Options) (Controller, error) {
		return nil,
			fmt.Errorf("no")
	}).New(nil)
	require.ErrorContains(t, err, "no")
	_, err = microproto.NewComposite(microproto.Config{Name: "c", MTU: 1060},
		build(t, append(append([]string(nil), syncEther...), CUBICCongestionAvoidance), nil)...)
	require.ErrorContains(t, err, CellCongestion, "there is no window that it could control")
}

// The third segment is lost, and is sent again at the third duplicate acknowledgement.
func TestInterClusterTranscript(t *testing.T) {
	text := mptest.NewTranscript("a")
	var ends [2]*microproto.Composite
	for i, tr := range []microproto.Tracer{text, text.Join("b")} {
		o := microproto.Options{OptionInitialWindow: 4, OptionRTOFloor: int64(200 * time.Millisecond)}
		c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), MTU: 150, Tracer: tr},
			build(t, syncInter, o)...)
		require.NoError(t, err)
		ends[i] = c
	}
	r := &rig{tb: t, ends: ends, Pair: mptest.NewPair(ends[0], ends[1], 1, mptest.Faults{Delay: way})}
	data := 0
	r.OnFrame = func(end int, _ microproto.Frame) bool {
		if end == 0 {
			data++
		}
		return end != 0 || data != 3
	}
	r.open()
	_, err := r.send(0, tag, 1, pattern(800, 1))
	require.NoError(t, err)
	r.run(150 * time.Millisecond)
	require.EqualValues(t, 1, r.accepted(0))
	got, _ := r.drain(1, 800)
	require.Len(t, got, 1)
	require.NoError(t, r.Pair.Close())
	mptest.Golden(t, "fast_retransmit.txt", text.String())
}

// wide is a controller with an unlimited window.
type wide struct{ Reno }

func (w *wide) Window() int { return 1 << 30 }

// One acknowledgement releases all waiting segments. Segments made at that moment do not overtake
// them, within a cluster and between clusters.
func TestReleasedSegmentsAreNotOvertaken(t *testing.T) {
	c := Catalog()
	require.NoError(t, c.AddRow(ControllerRow("Wide", "a test",
		func(microproto.Options) (Controller, error) { return &wide{}, nil })))
	for _, names := range [][]string{syncEther, append(append([]string(nil), syncInter...), "Wide")} {
		r := &rig{tb: t}
		for i := range r.ends {
			mps, err := c.Build(names, microproto.Options{OptionInFlightCount: 100})
			require.NoError(t, err)
			r.ends[i], err = microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), MTU: 160}, mps...)
			require.NoError(t, err)
		}
		r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, calm)
		next := uint32(1)
		number, flags := offsetOf(r.ends[0], attrNumber), offsetOf(r.ends[0], attrFlags)
		r.OnFrame = func(end int, f microproto.Frame) bool {
			if n := binary.BigEndian.Uint32(f.Data[number:]); end == 0 && f.Data[flags]&flagData != 0 && !before(n,
				next) {
				require.Equal(t, next, n, "overtaken in %v", names)
				next++
			}
			return true
		}
		r.open()
		r.Link.Partition(1, true)
		_, err := r.send(0, tag, 1, pattern(40_000, 1))
		require.NoError(t, err)
		r.run(time.Millisecond)
		require.EqualValues(t, 101, next, "a hundred went")
		r.Link.Partition(1, false)
		r.run(time.Second) // a time-out brings the acknowledgement of all of them at once
		require.EqualValues(t, 1, r.accepted(0))
	}
}
