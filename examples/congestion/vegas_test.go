package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

var packets = []string{
	"TransportDriver", "Resize", "Asynchronous", "DCCPAck", "DCCPWindowCongestionControl", "TCPCongestionAvoidance",
}

func build(t require.TestingT, names []string) []microproto.MicroProtocol {
	c, err := catalog()
	require.NoError(t, err)
	mps, err := c.Build(names, nil)
	require.NoError(t, err)
	return mps
}

func TestConformance(t *testing.T) {
	mptest.Conform(t, mptest.Subject{
		Protocol: "Vegas", Reliable: true,
		New: func(int) []microproto.MicroProtocol { return build(t, append(reliable(), "Vegas")) },
	})
	mptest.Conform(t, mptest.Subject{
		Protocol: "Vegas",
		New:      func(int) []microproto.MicroProtocol { return build(t, append(packets, "Vegas")) },
	})
}

// Vegas keeps a few segments in the queue, loses none, and still fills the line; the
// table's controller fills the queue until it overflows.
func TestShortQueue(t *testing.T) {
	const bytes = 4 << 20
	reno, err := transfer(reliable(), bytes)
	require.NoError(t, err)
	vegas, err := transfer(append(reliable(), "Vegas"), bytes)
	require.NoError(t, err)
	require.Positive(t, reno.lost)
	require.Zero(t, vegas.lost)
	require.Less(t, vegas.queue, 5.0)
	require.Greater(t, reno.queue, 20.0)
	require.Less(t, vegas.took.Seconds(), 1.15*bytes/rate)
}

// The window is obeyed, packet by packet: what was sent less than a round trip ago cannot
// have been acknowledged, so it is never more than the largest window since.
func TestWindowIsObeyed(t *testing.T) {
	const roundTrip, length = 20 * time.Millisecond, 40_000
	var ends [2]*microproto.Composite
	for i := range ends {
		c, err := microproto.NewComposite(microproto.Config{Name: fmt.Sprint("end ", i), MTU: 500},
			build(t, append(packets, "Vegas"))...)
		require.NoError(t, err)
		require.NoError(t, c.Endpoint().Slot(tag, length))
		ends[i] = c
	}
	shared, ok := microproto.CompositeCell[ctp.Congestion](ends[0], ctp.CellCongestion)
	require.True(t, ok)
	p := mptest.NewPair(ends[0], ends[1], 1, mptest.Faults{Delay: roundTrip / 2, Loss: 0.01})
	type sent struct {
		at     microproto.Instant
		window int
	}
	var recent []sent
	most, moved := 0, map[int]bool{}
	p.OnFrame = func(end int, f microproto.Frame) bool {
		if end != 0 || len(f.Data) < 100 {
			return true // an acknowledgement
		}
		now := p.Clock.Now()
		recent = append(recent, sent{now, shared.Window})
		for now.Sub(recent[0].at) >= roundTrip {
			recent = recent[1:]
		}
		window := 0
		for _, s := range recent {
			window = max(window, s.window)
		}
		require.LessOrEqual(t, len(recent), window, "at %v", time.Duration(now))
		most = max(most, len(recent))
		moved[shared.Window] = true
		return true
	}
	require.NoError(t, p.Open())
	require.IsType(t, &Vegas{}, shared.Controller)
	for label := range uint64(500) {
		require.NoError(t, p.Do(0, func(x *microproto.Exec) {
			_, err := ends[0].Endpoint().Send(x, tag, label, make([]byte, length))
			require.NoError(t, err)
		}))
		_, err := p.Run(5 * time.Millisecond)
		require.NoError(t, err)
	}
	require.Greater(t, most, 20, "the window was used")
	require.Greater(t, len(moved), 5, "and moved")
	require.Positive(t, p.Link.Stats(0).Lost)
}

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	require.Equal(t, 3, strings.Count(out.String(), "\n"), out.String())
}
