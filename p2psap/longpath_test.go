package p2psap

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// A longPath is two composites of a column between clusters, as TablePolicy composes it,
// joined by 10 Mbit/s with a long round trip and no loss.
type longPath struct {
	*mptest.Pair
	t    *testing.T
	ends [2]*microproto.Composite
}

// rtt is the round trip, first the initial time-out that the node derives from it.
func newLongPath(t *testing.T, mode microproto.Mode, rtt, first time.Duration) *longPath {
	p := &longPath{t: t}
	composed, err := TablePolicy{}.Compose(Conditions{Mode: mode, Locality: OtherCluster, Network: Ethernet})
	require.NoError(t, err)
	if first > 0 {
		composed.Options[OptionRTOInitial] = int64(first)
	}
	for i := range p.ends {
		mps, err := ctp.Catalog().Build(composed.Protocols, composed.Options)
		require.NoError(t, err)
		p.ends[i], err = microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), MTU: 1464}, mps...)
		require.NoError(t, err)
	}
	p.Pair = mptest.NewPair(p.ends[0], p.ends[1], 1, mptest.Faults{Delay: rtt / 2, Rate: 10e6 / 8, Capacity: 1 << 16})
	return p
}

func (p *longPath) send(label uint64, data []byte) (err error) {
	require.NoError(p.t, p.Do(0, func(x *microproto.Exec) { _, err = p.ends[0].Endpoint().Send(x, 1, label, data) }))
	return err
}

// transfer returns how long 10 MB take, at most limit, and how many segments were sent again.
func (p *longPath) transfer(limit time.Duration) (took time.Duration, again uint64) {
	const size, messages = 100_000, 100
	data, dst := make([]byte, size), make([]byte, size)
	require.NoError(p.t, p.Open())
	sent, received := uint64(0), 0
	for time.Duration(p.Clock.Now()) < limit && received < messages {
		for sent < messages && p.send(sent, data) == nil {
			sent++
		}
		require.NoError(p.t, p.Do(1, func(x *microproto.Exec) {
			for {
				if _, err := p.ends[1].Endpoint().Receive(x, 1, dst, nil); err != nil {
					return
				}
				received++
			}
		}))
		_, err := p.Run(10 * time.Millisecond)
		require.NoError(p.t, err)
	}
	p.t.Logf("%d of %d bytes after %v, %d segments sent again", received*size, messages*size,
		time.Duration(p.Clock.Now()), valueOf(cellsOf(p.ends[0]).retransmitted))
	require.Equal(p.t, messages, received)
	return time.Duration(p.Clock.Now()), valueOf(cellsOf(p.ends[0]).retransmitted)
}

// measured returns a Measurement with one sample.
func measured(rtt time.Duration) (m path.Measurement) {
	m.Pong(microproto.Instant(1).Add(rtt), m.Ping(1))
	return m
}

// Over round trips of more than a second 10 MB take their 8 s and some round trips of slow start, and nothing
// is sent twice.
func TestTransferOverLongRoundTrips(t *testing.T) {
	for _, rtt := range []time.Duration{990 * time.Millisecond, 1050 * time.Millisecond, 2500 * time.Millisecond,
		8 * time.Second} {
		t.Run(rtt.String(), func(t *testing.T) {
			m := measured(rtt)
			took, again := newLongPath(t, microproto.ModeSynchronous, rtt,
				m.InitialTimeout(InterRTOMax)).transfer(2 * time.Minute)
			require.Less(t, took, 8*time.Second+12*rtt)
			require.Zero(t, again)
		})
	}
}

// A first flight whose time-out is shorter than the round trip costs one copy of its first segment for each time-out: the
// acknowledgement of the original shows that nothing was lost, and the window is that of a flight without a time-out.
func TestFirstFlightTimesOutInVain(t *testing.T) {
	for _, rtt := range []time.Duration{1100 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 6 * time.Second} {
		t.Run(rtt.String(), func(t *testing.T) {
			took, again := newLongPath(t, microproto.ModeSynchronous, rtt, time.Second).transfer(4 * time.Minute)
			known, _ := newLongPath(t, microproto.ModeSynchronous, rtt, 4*rtt).transfer(4 * time.Minute)
			require.LessOrEqual(t, took, known+known/50)
			require.LessOrEqual(t, again, uint64(timeouts(time.Second, rtt)))
		})
	}
}

// If the round trip is not known in advance, the first flight times out. The back-off then lets one
// acknowledgement give a measurement, and no other segment times out.
func TestFirstTimeoutShorterThanTheRoundTrip(t *testing.T) {
	p := newLongPath(t, microproto.ModeSynchronous, 2500*time.Millisecond, 0)
	require.NoError(t, p.Open())
	for label := range uint64(40) {
		require.NoError(t, p.send(label, make([]byte, 1000)))
		_, err := p.Run(3 * time.Second)
		require.NoError(t, err)
	}
	require.EqualValues(t, 40, p.ends[0].Endpoint().Accepted())
	require.LessOrEqual(t, valueOf(cellsOf(p.ends[0]).retransmitted), uint64(2))
	require.InDelta(t, 2.5, valueOf(cellsOf(p.ends[0]).rtt).Seconds(), 0.01)
}

// CCID 2 fills a path whose round trip is longer than a second as it fills a shorter one; it takes longer if
// the round trip is not known in advance.
func TestValuesOverLongRoundTrips(t *testing.T) {
	trips := []time.Duration{2500 * time.Millisecond, 1200 * time.Millisecond, 800 * time.Millisecond}
	if testing.Short() {
		trips = trips[:1]
	}
	for _, rtt := range trips {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, known in advance: %v", rtt, known), func(t *testing.T) {
				var m path.Measurement
				if known {
					m = measured(rtt)
				}
				p := newLongPath(t, microproto.ModeAsynchronous, rtt, m.InitialTimeout(InterRTOMax))
				for _, e := range p.ends {
					require.NoError(t, e.Endpoint().Slot(1, 80_000))
				}
				require.NoError(t, p.Open())
				data, dst, arrival := make([]byte, 80_000), make([]byte, 80_000), microproto.Arrival{}
				label := uint64(0)
				for p.Clock.Now() < microproto.Instant(time.Minute) {
					label++
					require.NoError(t, p.send(label, data))
					_, err := p.Run(20 * time.Millisecond)
					require.NoError(t, err)
				}
				require.NoError(t, p.Do(1, func(x *microproto.Exec) {
					var err error
					arrival, err = p.ends[1].Endpoint().Receive(x, 1, dst, nil)
					require.NoError(t, err)
				}))
				packets := p.Link.Stats(0).Sent
				t.Logf("%d packets; the oldest segment is of value %d of %d", packets, arrival.Label, label)
				require.True(t, arrival.Complete)
				require.Less(t, time.Duration(label-arrival.Label)*20*time.Millisecond, 3*rtt)
				least := uint64(10_000)
				if !known && rtt > time.Second {
					least = 200 // the first time-out has left a threshold of two packets
				}
				require.Greater(t, packets, least)
			})
		}
	}
}

// A time-out between clusters keeps a margin of 200 ms above the mean round trip, however little that varies,
// as in Linux, and doubles. Inside a cluster the floor applies to the whole time-out. Probes that are sooner come first,
// each after twice the time of the one before. The time-out begins with the first probe.
func TestMarginOfTheTimeout(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ rtt, probe, want time.Duration }{
		{4 * ms, 9 * ms, 204 * ms}, {20 * ms, 25 * ms, 220 * ms}, {200 * ms, 250 * ms, 400 * ms},
		{2000 * ms, 2200 * ms, 4400 * ms}, // a time-out, and another
	} {
		p := newLongPath(t, microproto.ModeSynchronous, c.rtt, 3*c.rtt)
		require.NoError(t, p.Open())
		for label := range uint64(60) {
			require.NoError(t, p.send(label, make([]byte, 8)))
			_, err := p.Run(2 * c.rtt)
			require.NoError(t, err)
		}
		require.EqualValues(t, 60, p.ends[0].Endpoint().Accepted())
		// The next one and its copies are lost.
		start := p.Clock.Now()
		var sent []float64
		p.OnFrame = func(end int, _ microproto.Frame) bool {
			sent = append(sent, p.Clock.Now().Sub(start).Seconds())
			return false
		}
		require.NoError(t, p.send(60, make([]byte, 8)))
		_, err := p.Run(c.probe + c.want + 2*ms)
		require.NoError(t, err)
		times := []float64{0, c.probe.Seconds()}
		for d, at := 2*c.probe, c.probe; at+d < c.probe+c.want; d *= 2 {
			at += d
			times = append(times, at.Seconds())
		}
		require.InDeltaSlice(t, append(times, (c.probe+c.want).Seconds()), sent, 0.002)
	}
}

// Peers with a round trip of seconds connect, find that they are in different clusters, and exchange
// messages, protected or not, of which none is sent twice.
func TestPeersWithALongRoundTripConnect(t *testing.T) {
	for _, rtt := range []time.Duration{600 * time.Millisecond, 1200 * time.Millisecond, 2500 * time.Millisecond,
		4 * time.Second} {
		for _, protect := range []Protection{ProtectNever, ProtectAlways} {
			for _, labelled := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, protection %v, labels %v", rtt, protect, labelled), func(t *testing.T) {
					w := newWorld(t, 3)
					w.latency = rtt / 2
					node := func(name, at string, seed uint64) *worldNode {
						return w.add(name, func(c *NodeConfig) {
							protected(protect, "", seed)(c)
							c.Addresses, c.Catalog, c.Rails[0].Network, c.PeerTimeout = prefixes(at), ctp.Catalog(), Ethernet, 10*time.Second
							if labelled {
								c.Cluster = name
							}
						})
					}
					a, b := node("a", "10.0.0.1/24", 1), node("b", "10.0.0.2/24", 2)
					w.connect()
					up := func() bool { return a.Finding("b").Locality != 0 && b.Finding("a").Locality != 0 }
					require.True(t, w.until(2*time.Second+7*rtt/2, up), "not connected after %v", w.now)
					requireUp(t, a, b)
					require.Equal(t, OtherCluster, a.Finding("b").Locality)
					sa, err := a.Open(w.now, "b", syncOptions("s"))
					require.NoError(t, err)
					sb, err := b.Open(w.now, "a", syncOptions("s"))
					require.NoError(t, err)
					open := func() bool { return a.opened[sa] && b.opened[sb] }
					require.True(t, w.until(3*rtt, open))
					for k := range 20 {
						for _, e := range []struct {
							n  *worldNode
							id SessionID
						}{{a, sa}, {b, sb}} {
							_, err := e.n.Send(w.now, e.id, 1, Label(k), make([]byte, 64))
							require.NoError(t, err)
						}
						w.run(rtt / 4)
					}
					done := func() bool { return a.Accepted(sa) == 20 && b.Accepted(sb) == 20 }
					require.True(t, w.until(10*rtt, done))
					for n, id := range map[*worldNode]SessionID{a: sa, b: sb} {
						i, err := n.Info(id)
						require.NoError(t, err)
						require.Zero(t, i.Retransmitted, "%v", n.Name())
					}
				})
			}
		}
	}
}

// timeouts returns how often a time-out that doubles passes within a round trip.
func timeouts(first, rtt time.Duration) (n int) {
	for ; first <= rtt; n++ {
		rtt, first = rtt-first, 2*first
	}
	return n
}
