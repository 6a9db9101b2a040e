package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// build returns the asynchronous column with FEC.
func build(t require.TestingT, o microproto.Options, names ...string) []microproto.MicroProtocol {
	c := ctp.Catalog()
	require.NoError(t, c.Add("FEC", New))
	mps, err := c.Build(append(names, "FEC"), o)
	require.NoError(t, err)
	return mps
}

var column = []string{"TransportDriver", "Resize", "Asynchronous"}

func TestConformance(t *testing.T) {
	inter := append(column, "DCCPAck", "DCCPWindowCongestionControl", "TCPCongestionAvoidance")
	for _, names := range [][]string{column, inter} {
		mptest.Conform(t, mptest.Subject{
			Protocol: "FEC", New: func(int) []microproto.MicroProtocol { return build(t, nil, names...) },
		})
	}
}

// At 5 % loss three of four lost segments come back, and what comes back is right.
func TestFewerLosses(t *testing.T) {
	sent, without, err := missing(column, 0.05)
	require.NoError(t, err)
	require.InDelta(t, 0.05, float64(without)/float64(sent), 0.01)
	_, with, err := missing(append(column, "FEC"), 0.05)
	require.NoError(t, err)
	// Of five frames another must be lost too: 1 − 0.95⁴ of the losses stay.
	require.InDelta(t, 0.185*0.05, float64(with)/float64(sent), 0.004)
	require.Positive(t, with)
}

// ends are two ends of the column; lose says which frames from end 0 are lost.
func ends(t *testing.T, o microproto.Options, length int, lose func(n int) bool) (
	*mptest.Pair, [2]*microproto.Composite,
) {
	var e [2]*microproto.Composite
	for i := range e {
		c, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: 100}, build(t, o, column...)...)
		require.NoError(t, err)
		require.NoError(t, c.Endpoint().Slot(tag, length))
		e[i] = c
	}
	p := mptest.NewPair(e[0], e[1], 1, mptest.Faults{Delay: time.Millisecond})
	n := 0
	p.OnFrame = func(end int, _ microproto.Frame) bool {
		if end == 0 {
			n++
		}
		return end == 1 || !lose(n)
	}
	require.NoError(t, p.Open())
	return p, e
}

func send(t *testing.T, p *mptest.Pair, e [2]*microproto.Composite, label uint64, value []byte) {
	require.NoError(t, p.Do(0, func(x *microproto.Exec) {
		_, err := e[0].Endpoint().Send(x, tag, label, value)
		require.NoError(t, err)
	}))
	_, err := p.Run(20 * time.Millisecond)
	require.NoError(t, err)
}

func received(t *testing.T, p *mptest.Pair, e [2]*microproto.Composite, length int) (
	a microproto.Arrival, data []byte,
) {
	data = make([]byte, length)
	require.NoError(t, p.Do(1, func(x *microproto.Exec) {
		var err error
		a, err = e[1].Endpoint().Receive(x, tag, data, nil)
		require.NoError(t, err)
	}))
	return a, data
}

// Every single frame of a group may be lost, the shorter last one and the parity too;
// two may not.
func TestOneOfAGroup(t *testing.T) {
	const length = 200 // four segments, the last one short
	value := make([]byte, length)
	for i := range value {
		value[i] = byte(7 * i)
	}
	for lost := 1; lost <= 5; lost++ {
		p, e := ends(t, nil, length, func(n int) bool { return n == lost })
		send(t, p, e, 1, value)
		a, data := received(t, p, e, length)
		require.True(t, a.Complete, "frame %d", lost)
		require.Equal(t, value, data, "frame %d", lost)
		require.EqualValues(t, min(1, 5-lost), e[1].Protocol("FEC").(*FEC).Repaired(), "frame %d", lost)
	}
	p, e := ends(t, nil, length, func(n int) bool { return n == 2 || n == 3 })
	send(t, p, e, 1, value)
	a, _ := received(t, p, e, length)
	require.False(t, a.Complete)
	require.Zero(t, e[1].Protocol("FEC").(*FEC).Repaired(), "two are too many: nothing is made up")
}

// Frames that no FEC sends are dropped and counted.
func TestMalformed(t *testing.T) {
	const length = 40
	for _, name := range []string{"fec.length", "fec.index", "fec.count"} {
		p, e := ends(t, nil, length, func(int) bool { return false })
		at := -1
		for _, r := range e[0].Layout() {
			if r.Name == name {
				at = r.Offset + r.Length - 1
			}
		}
		require.GreaterOrEqual(t, at, 0)
		p.OnFrame = func(_ int, f microproto.Frame) bool {
			f.Data[at] ^= 0x60
			return true
		}
		send(t, p, e, 1, make([]byte, length))
		require.Equal(t, "fec: malformed", e[1].Counters().Drops[0].Reason, name)
	}
}

// A group that does not fill up is closed in time; the rate is what the option says.
func TestRate(t *testing.T) {
	const length = 200
	for segments, parity := range map[int64]uint64{2: 2, 3: 2, 4: 1, 5: 1, 32: 1} {
		p, e := ends(t, microproto.Options{OptionSegments: segments}, length, func(int) bool { return false })
		send(t, p, e, 1, make([]byte, length))
		require.Equal(t, 4+parity, p.Link.Stats(0).Sent, "%d segments to one of parity", segments)
	}
	_, err := New(microproto.Options{OptionSegments: 33})
	require.ErrorContains(t, err, "2 to 32")
}

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	require.Equal(t, 4, strings.Count(out.String(), "\n"), out.String())
}
