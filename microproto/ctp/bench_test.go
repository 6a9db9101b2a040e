package ctp

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// exchange is two open ends that pass frames to each other directly, in memory that is reused.
type exchange struct {
	ends  [2]*microproto.Composite
	outs  [2][]microproto.Output
	now   microproto.Instant
	label uint64
	data  []byte
	dst   []byte
	send  func(*microproto.Exec)
	take  func(*microproto.Exec)
	err   error // of the last Send or Receive
}

// newExchange returns an exchange of messages with so many segments of so many payload bytes, over
// a link that takes trains of up to train bytes.
func newExchange(tb testing.TB, names []string, segments, payload, train int) *exchange {
	e := &exchange{data: pattern(segments*payload, 1), dst: make([]byte, segments*payload), now: 1}
	o := microproto.Options{OptionReceive: 8 << 20, OptionPeerReceive: 8 << 20}
	probe, err := microproto.NewComposite(microproto.Config{Name: "probe", MTU: 1400}, build(tb, names, o)...)
	require.NoError(tb, err)
	frames := func() microproto.FrameSource { return &ringFrames{} }
	if train > 0 {
		frames = func() microproto.FrameSource { return &datagrams{} }
	}
	for i := range e.ends {
		e.ends[i], err = microproto.NewComposite(microproto.Config{Name: "end", MTU: probe.HeaderBytes() + payload,
			Train: train, Frames: frames()}, build(tb, names, o)...)
		require.NoError(tb, err)
		require.NoError(tb, e.ends[i].Open(0))
	}
	e.send = func(x *microproto.Exec) { _, e.err = e.ends[0].Endpoint().Send(x, tag, e.label, e.data) }
	e.take = func(x *microproto.Exec) { _, e.err = e.ends[1].Endpoint().Receive(x, tag, e.dst, nil) }
	return e
}

// turn transfers one message, from Send to Receive and its acceptance.
func (e *exchange) turn() {
	e.label++
	_ = e.ends[0].Do(e.now, e.send)
	received := e.ends[1].Endpoint().Arrivals()
	for e.ends[0].Endpoint().Accepted() < e.label {
		e.now += 10_000
		for i, c := range e.ends {
			e.outs[i] = c.Drain(e.outs[i][:0])
			for _, o := range e.outs[i] {
				_ = e.ends[1-i].Input(e.now, o.Frame)
			}
			if n := e.ends[1].Endpoint().Arrivals(); n > received {
				received = n
				_ = e.ends[1].Do(e.now, e.take)
			}
		}
		for _, c := range e.ends {
			if c.Deadline() <= e.now { // an acknowledgement that waited
				_ = c.Advance(e.now)
			}
		}
	}
}

// BenchmarkSegment measures a segment at both ends together, with its share of the acknowledgement
// and of the message, without a link. With 8 bytes it measures the handlers and the kernel; with
// 1280 it adds two copies.
//
// "train": the ends exchange trains, as a link with segmentation offload does, and the window is
// open; the metric segments/train is their mean length. "single": separate segments, every second
// one acknowledged. "message": every segment is a message, received and accepted before the next.
func BenchmarkSegment(b *testing.B) {
	for _, c := range []struct {
		column string
		names  []string
	}{{"ib", syncReady}, {"intra", syncEther}, {"inter", syncInter}, {"inter+cubic", syncCubic}} {
		for _, kind := range []struct {
			name            string
			segments, train int
		}{{"message", 1, 0}, {"single", 64, 0}, {"train", 64, trainBytes}} {
			for _, payload := range []int{8, 1280} {
				b.Run(fmt.Sprintf("%s/%s/%dB", c.column, kind.name, payload),
					func(b *testing.B) { segment(b, c.names, kind.segments, payload, kind.train) })
			}
		}
	}
}

func segment(b *testing.B, names []string, segments, payload, train int) {
	e := newExchange(b, names, segments, payload, train) // the frames of a flight stay in the cache
	for range 50 {                                       // the window opens
		e.turn()
	}
	before := e.ends[1].Counters()
	b.ReportAllocs()
	for b.Loop() {
		e.turn()
	}
	n := e.ends[1].Counters()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*segments), "ns/segment")
	b.ReportMetric(float64(n.SegmentsIn-before.SegmentsIn)/float64(n.Inputs-before.Inputs), "segments/train")
	if r, ok := e.ends[0].Protocol("Retransmit").(*Retransmit); ok {
		require.Zero(b, *r.resent)
	}
}

// A busy channel allocates nothing at either end, with either controller.
func TestInterClusterAllocatesNothing(t *testing.T) {
	for _, names := range [][]string{syncInter, syncCubic} {
		for _, train := range []int{0, trainBytes} {
			e := newExchange(t, names, 40, 1000, train)
			for range 100 {
				e.turn()
			}
			require.Zero(t, testing.AllocsPerRun(100, e.turn))
			require.Equal(t, e.data, e.dst)
		}
	}
}

// Messages of one segment within a cluster take the common path and allocate nothing. The other columns, and
// traced composites, take the chains.
func TestCommonPathOfColumns(t *testing.T) {
	for _, names := range [][]string{syncReady, syncEther} {
		e := newExchange(t, names, 1, 64, 0)
		require.True(t, e.ends[0].HasCommonPath())
		for range 100 {
			e.turn()
		}
		require.Zero(t, testing.AllocsPerRun(100, e.turn))
		require.Equal(t, e.data, e.dst)
	}
	for _, names := range [][]string{syncInter, asyncEther} {
		c, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: 1400}, build(t, names, nil)...)
		require.NoError(t, err)
		require.False(t, c.HasCommonPath())
	}
}
