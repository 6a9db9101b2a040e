package calibration

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// The description can be modelled, and its figures are plausible.
func TestThisMachine(t *testing.T) {
	d, err := ThisMachine(context.Background(), Workload{N: 32, Peers: 2, MTU: 1500})
	require.NoError(t, err)
	require.NoError(t, d.Check())
	require.Equal(t, 1500, d.Networks[0].MTU)
	m, err := d.Model(16)
	require.NoError(t, err)
	require.Len(t, m.Hosts, 16)
	h := &m.Hosts[15]
	require.Equal(t, 1, h.Machine)
	require.Greater(t, h.Relaxation, 1e5)
	require.Less(t, h.Relaxation, 1e11)
	for _, c := range []cluster.Cost{h.Send, h.Receive} {
		require.Positive(t, c.Of(1, 1<<15))
		require.Less(t, c.Of(1, 1<<15), 100*time.Millisecond)
	}
}

func TestBlocks(t *testing.T) {
	for _, b := range []Workload{{N: 1, Peers: 1}, {N: 64}, {N: 8, Peers: 9}, {N: 2000, Peers: 1}, {Peers: 3}} {
		_, err := ThisMachine(context.Background(), b)
		require.ErrorContains(t, err, "this-machine: a block of one of")
	}
	for _, mtu := range []int{-1, 600, 65536} {
		_, err := ThisMachine(context.Background(), Workload{N: 8, Peers: 1, MTU: mtu})
		require.ErrorContains(t, err, "this-machine: messages by an MTU of")
	}
	b, err := Workload{}.orDefault()
	require.NoError(t, err)
	require.Equal(t, "96×96×96 points", b.String())
	require.Equal(t, "64×64×32 points", Workload{N: 64, Peers: 2}.String())
	require.Equal(t, "32×32×32 points", Workload{N: 64, Peers: 8}.String())
}

// Exchanges computed from a Cost give that Cost back.
func TestCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) cluster.Cost {
			us := rapid.IntRange(0, 1_000_000)
			return cluster.Cost{Message: time.Duration(us.Draw(t, name)), Segment: time.Duration(us.Draw(t, name)),
				Byte: rapid.Float64Range(0, 5).Draw(t, name)}
		}
		send, receive := draw("send"), draw("receive")
		var all []exchange
		for _, n := range lengths {
			k := 1 + n/65000
			all = append(all, exchange{n, k, send.Of(k, n), receive.Of(k, n)})
		}
		s, r, err := fitCosts(all)
		require.NoError(t, err)
		for _, e := range all {
			near(t, e.Send, s.Of(e.Segments, e.Bytes), all[0].Send)
			near(t, e.Receive, r.Of(e.Segments, e.Bytes), all[0].Receive)
		}
	})
	_, _, err := fitCosts(make([]exchange, 3))
	require.Error(t, err)
}

// near allows for rounding to nanoseconds.
func near(t require.TestingT, want, got, least time.Duration) {
	require.InDelta(t, float64(want), float64(got), 20+float64(want)*(0.01+1/float64(max(1, least))))
}

// A negative cost is left out, and the others are fitted again.
func TestCostsAreNotNegative(t *testing.T) {
	var all []exchange
	for _, n := range lengths {
		d := time.Duration(1000 + n - n/8*n/300000)
		all = append(all, exchange{n, 1 + n/65000, d, d})
	}
	s, _, err := fitCosts(all)
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Message, time.Duration(0))
	require.GreaterOrEqual(t, s.Segment, time.Duration(0))
	require.Positive(t, s.Byte)
}

// Sweeps with a time per part and a time per point give both back, although some are disturbed.
func TestRate(t *testing.T) {
	var all []sweep
	for i := range 41 {
		var s sweep
		for _, n := range []int{1024, 4096, 122880} {
			took := 3*time.Microsecond + time.Duration(n)*2
			if i%3 == 1 {
				took += time.Duration(i) * 100 * time.Microsecond
			}
			s.parts = append(s.parts, timedPart{n, took})
			s.relaxing += took
		}
		all = append(all, s)
	}
	r, part, err := rate(all)
	require.NoError(t, err)
	require.InEpsilon(t, 5e8, r, 1e-3)
	require.InDelta(t, 3000, float64(part), 20)

	r, part, err = rate([]sweep{{parts: []timedPart{{1000, 2000}}, relaxing: 2000}})
	require.NoError(t, err)
	require.InEpsilon(t, 5e8, r, 1e-9)
	require.Zero(t, part, "one length says nothing of it")
	_, _, err = rate(nil)
	require.Error(t, err)
	_, _, err = rate([]sweep{{parts: []timedPart{{1000, 0}}}})
	require.Error(t, err)
	require.InDelta(t, 0.2, crowding(10, 16, 4), 1e-12)
	require.Zero(t, crowding(10, 9, 2))
}

// The deviation of log-normal sweeps is found, although a few of them are interrupted.
func TestJitter(t *testing.T) {
	var all []sweep
	normal := distuv.Normal{Sigma: 0.1, Src: rand.NewPCG(1, 2)}
	for i := range 2000 {
		d := time.Duration(1e5 * math.Exp(normal.Rand()))
		if i%50 == 0 {
			d *= 100
		}
		all = append(all, sweep{relaxing: d})
	}
	require.InEpsilon(t, 0.1, jitter(all), 0.1)
	require.Zero(t, jitter(all[:3]))
}

// Whatever other programs do to the measurements, the result is a valid description.
func TestSpoiltMeasurements(t *testing.T) {
	var all []sweep
	for i := range 100 {
		d := time.Duration(1)
		if i%2 == 0 {
			d = time.Second
		}
		all = append(all, sweep{relaxing: d})
	}
	d := cluster.Description{
		Name: "spoilt", Classes: []cluster.Class{{
			Name: "process", Cores: 1, Relaxation: 1e6, Jitter: jitter(all), Crowding: crowding(1, 1e6, 2),
			Straggle: straggle(append(all, sweep{relaxing: 1}), 0),
		}},
		Networks: []cluster.Network{{Name: "loopback", Kind: cluster.Ether, Rate: 1e9, Queue: 1 << 20, MTU: 1500}},
		Sites:    []cluster.Site{{Name: "here", Network: "loopback", Machines: []cluster.Group{{Class: "process"}}}},
	}
	require.NoError(t, d.Check())
	require.Equal(t, 1.0, d.Classes[0].Jitter)
	require.Positive(t, d.Classes[0].Straggle.PerSecond)
}

// Peers of any partition begin together and then relax alone, the whole block in each sweep.
func TestPeersRelax(t *testing.T) {
	for _, b := range []Workload{{N: 8, Peers: 1}, {N: 8, Peers: 2}, {N: 12, Peers: 5}, {N: 16, Peers: 8},
		{N: 16, Peers: 64}} {
		all, err := newPeers(b)
		require.NoError(t, err)
		require.LessOrEqual(t, len(all), 27)
		whole, err := b.partition()
		require.NoError(t, err)
		require.Equal(t, whole.Box(0), all[0].peer.Box(), "%v", b)
		for _, r := range all {
			for range 5 {
				s, err := r.relax()
				require.NoError(t, err)
				points := 0
				for _, p := range s.parts {
					points += p.Points
				}
				require.Equal(t, r.peer.Box().Points(), points)
				require.Equal(t, b.Peers > 1, s.bytes > 0)
			}
		}
	}
}

// Pauses are found with their rate and length, and jitter gives none.
func TestStraggle(t *testing.T) {
	var all []sweep
	normal := distuv.Normal{Sigma: 0.1, Src: rand.NewPCG(1, 2)}
	for i := range 10000 {
		d := time.Duration(1e5 * math.Exp(normal.Rand()))
		if i%100 == 0 {
			d += 3 * time.Millisecond
		}
		all = append(all, sweep{relaxing: d})
	}
	s := straggle(all, jitter(all))
	require.InEpsilon(t, 100, s.PerSecond, 0.05)
	require.InEpsilon(t, 3*time.Millisecond, s.For, 0.05)
	require.Zero(t, straggle(nil, 0))
	require.Zero(t, straggle([]sweep{{relaxing: 100}, {relaxing: 100}}, 0))
}

// A Path with protected sessions and asynchronous messages gives a description. The cost of carrying
// frames is the receiver's.
func TestWire(t *testing.T) {
	identity, err := driver.NewKeyIdentity(driver.NewKey(), "test")
	require.NoError(t, err)
	spent := time.Duration(0)
	w := &Path{Identity: identity, Rate: 1e9, Queue: 1 << 18, Frame: 42,
		Spent: func() time.Duration { spent += 10 * time.Second; return spent }}
	w.Open = func(_, mtu int) (microproto.Link, error) {
		return ether.Open(ether.Config{Listen: "127.0.0.1", MTU: mtu})
	}
	d, err := ThisMachine(context.Background(), Workload{N: 16, Peers: 2, MTU: 1500, Asynchronous: true, Path: w})
	require.NoError(t, err)
	require.NoError(t, d.Check())
	// Ten seconds of carrying, for some 100 000 to 400 000 frames of 1.5 kB.
	require.Greater(t, d.Classes[0].Receive.Segment, 10*time.Microsecond)
	w.Open = func(int, int) (microproto.Link, error) { return nil, errors.New("no such wire") }
	broken := Workload{N: 16, Peers: 2, MTU: 1500, Path: w}
	peers, err := newPeers(broken)
	require.NoError(t, err)
	_, err = messages(t.Context(), broken, peers, 2)
	require.ErrorContains(t, err, "no such wire")
	if !testing.Short() { // it relaxes for a second before
		_, err = ThisMachine(context.Background(), broken)
		require.ErrorContains(t, err, "no such wire")
	}
}

// Messages are timed at the lengths of a run.
func TestLengths(t *testing.T) {
	require.Equal(t, lengths, lengthsAround(0))
	for _, face := range []int{8, 200, 8 << 10, 32 << 10, 1 << 20} {
		l := lengthsAround(face)
		require.Contains(t, l, face)
		require.True(t, slices.IsSorted(l))
		require.GreaterOrEqual(t, len(l), 4)
		for _, n := range l {
			require.Zero(t, n%8, "slots hold values of 8 bytes")
			require.Positive(t, n)
		}
	}
}

// Messages of one segment each do not determine the cost of a segment.
func TestCostsOfOneSegment(t *testing.T) {
	var all []exchange
	for _, n := range lengthsAround(8 << 10) {
		d := time.Duration(3000 + 2*n)
		all = append(all, exchange{n, 1, d, d})
	}
	s, _, err := fitCosts(all)
	require.NoError(t, err)
	require.Zero(t, s.Segment)
	require.InDelta(t, 3000, float64(s.Message), 20)
	require.InDelta(t, 2, s.Byte, 1e-2)
}
