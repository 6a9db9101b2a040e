package ctp

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// The columns of Table I that this package makes whole.
var (
	syncEther  = []string{"TransportDriver", "Resize", "Synchronous", "SequencedSegment", "PositiveAck", "Retransmit", "RTTEstimation", "ReliableFIFO"}
	syncReady  = []string{"TransportDriver", "Resize", "Synchronous"} // over a reliable link
	asyncEther = []string{"TransportDriver", "Resize", "Asynchronous"}
)

// build makes the micro-protocols of one end.
func build(tb require.TestingT, names []string, o microproto.Options) []microproto.MicroProtocol {
	mps, err := Catalog().Build(names, o)
	require.NoError(tb, err)
	return mps
}

// A rig is two composites of a column, joined by a link with faults, and what a
// user of an endpoint does.
type rig struct {
	tb   require.TestingT
	ends [2]*microproto.Composite
	*mptest.Pair
}

func newRig(tb require.TestingT, names []string, o microproto.Options, mtu int, seed uint64, f mptest.Faults) *rig {
	r := &rig{tb: tb}
	for i := range r.ends {
		c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), Seed: seed, MTU: mtu}, build(tb, names, o)...)
		require.NoError(tb, err)
		r.ends[i] = c
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], seed, f)
	return r
}

func (r *rig) open() *rig {
	require.NoError(r.tb, r.Pair.Open())
	return r
}

func (r *rig) send(end int, tag uint32, label uint64, data []byte) (t uint64, err error) {
	require.NoError(r.tb, r.Do(end, func(x *microproto.Exec) { t, err = r.ends[end].Endpoint().Send(x, tag, label, data) }))
	return t, err
}

func (r *rig) receive(end int, tag uint32, dst []byte, labels *[]microproto.SegmentLabel) (a microproto.Arrival, err error) {
	require.NoError(r.tb, r.Do(end, func(x *microproto.Exec) { a, err = r.ends[end].Endpoint().Receive(x, tag, dst, labels) }))
	return a, err
}

func (r *rig) run(d time.Duration) {
	_, err := r.Run(d)
	require.NoError(r.tb, err)
}

func (r *rig) accepted(end int) uint64 { return r.ends[end].Endpoint().Accepted() }

func (r *rig) drops(end int, reason string) uint64 {
	for _, d := range r.ends[end].Counters().Drops {
		if d.Reason == reason {
			return d.Count
		}
	}
	return 0
}

// pattern is data that tells its message.
func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
	return b
}

func TestConformance(t *testing.T) {
	lossless := mptest.Faults{Delay: 200 * time.Microsecond}
	for _, c := range []struct {
		column   string
		names    []string
		faults   *mptest.Faults
		reliable bool
	}{
		{"sync ether", syncEther, nil, true},
		{"sync reliable link", syncReady, &lossless, true},
		{"async", asyncEther, nil, false},
	} {
		for _, name := range c.names {
			t.Run(c.column+"/"+name, func(t *testing.T) {
				mptest.Conform(t, mptest.Subject{
					Protocol: name,
					New:      func(int) []microproto.MicroProtocol { return build(t, c.names, nil) },
					Faults:   c.faults,
					Reliable: c.reliable,
				})
			})
		}
	}
}
