package ctp

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// exchange is two open ends that hand each other their frames at once, in memory
// that is used again.
type exchange struct {
	ends  [2]*microproto.Composite
	outs  [2][]microproto.Output
	now   microproto.Instant
	label uint64
	data  []byte
	dst   []byte
	send  func(*microproto.Exec)
	take  func(*microproto.Exec)
}

// newExchange sends messages of so many segments of so many bytes of payload.
func newExchange(tb testing.TB, names []string, segments, payload int) *exchange {
	e := &exchange{data: pattern(segments*payload, 1), dst: make([]byte, segments*payload), now: 1}
	o := microproto.Options{OptionReceive: 8 << 20, OptionPeerReceive: 8 << 20}
	probe, err := microproto.NewComposite(microproto.Config{Name: "probe", MTU: 1400}, build(tb, names, o)...)
	require.NoError(tb, err)
	for i := range e.ends {
		e.ends[i], err = microproto.NewComposite(microproto.Config{Name: "end", MTU: probe.HeaderBytes() + payload, Frames: &ringFrames{}}, build(tb, names, o)...)
		require.NoError(tb, err)
		require.NoError(tb, e.ends[i].Open(0))
	}
	e.send = func(x *microproto.Exec) { _, err = e.ends[0].Endpoint().Send(x, tag, e.label, e.data) }
	e.take = func(x *microproto.Exec) { _, err = e.ends[1].Endpoint().Receive(x, tag, e.dst, nil) }
	return e
}

// turn carries one message over, from Send to Receive and to its acceptance.
func (e *exchange) turn() {
	e.label++
	_ = e.ends[0].Do(e.now, e.send)
	for e.ends[0].Endpoint().Accepted() < e.label {
		e.now += 10_000
		for i, c := range e.ends {
			e.outs[i] = c.Drain(e.outs[i][:0])
			for _, o := range e.outs[i] {
				_ = e.ends[1-i].Input(e.now, o.Frame)
			}
		}
		for _, c := range e.ends {
			if c.Deadline() <= e.now { // an acknowledgement that waited
				_ = c.Advance(e.now)
			}
		}
	}
	_ = e.ends[1].Do(e.now, e.take)
}

// BenchmarkSegment is the cost of a segment at both ends together, with its share of
// the acknowledgement, of the message and of the round trips. At 8 bytes that is the
// handlers and the kernel between them; at 1280 two copies come to it.
func BenchmarkSegment(b *testing.B) {
	for _, c := range []struct {
		column string
		names  []string
	}{{"intra", syncEther}, {"inter", syncInter}, {"inter+cubic", syncCubic}} {
		for _, payload := range []int{8, 1280} {
			b.Run(fmt.Sprintf("%s/%dB", c.column, payload), func(b *testing.B) {
				const segments = 64 // a flight of frames that stays in the cache, as with a link that takes them at once
				e := newExchange(b, c.names, segments, payload)
				for range 50 { // the window opens
					e.turn()
				}
				b.ReportAllocs()
				for b.Loop() {
					e.turn()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/segments, "ns/segment")
				require.Zero(b, e.ends[0].Protocol("Retransmit").(*Retransmit).Retransmitted())
			})
		}
	}
}

// In steady state neither end of the column allocates, with either controller.
func TestInterClusterAllocatesNothing(t *testing.T) {
	for _, names := range [][]string{syncInter, syncCubic} {
		e := newExchange(t, names, 40, 1000)
		for range 100 {
			e.turn()
		}
		require.Zero(t, testing.AllocsPerRun(100, e.turn))
		require.Equal(t, e.data, e.dst)
	}
}
