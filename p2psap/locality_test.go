package p2psap

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// addressed gives a node an address, so that its locality is measured.
func addressed(at string) func(*NodeConfig) {
	return func(c *NodeConfig) { c.Addresses = prefixes(at) }
}

// The ends measure different round trips and still agree on the locality.
func TestMeasuredLocality(t *testing.T) {
	for _, x := range []struct {
		what     string
		latency  time.Duration // one way, and up to as much again
		a, b     string
		locality Locality
	}{
		{"near, behind a router", 200 * time.Microsecond, "10.0.0.1/24", "10.0.1.1/24", SameCluster},
		{"one network, a little slow", 700 * time.Microsecond, "10.0.0.1/24", "10.0.0.2/24", SameCluster},
		{"as slow, behind a router", 700 * time.Microsecond, "10.0.0.1/24", "10.0.1.1/24", OtherCluster},
		{"far", 10 * time.Millisecond, "10.0.0.1/24", "10.0.0.2/24", OtherCluster},
	} {
		t.Run(x.what, func(t *testing.T) {
			w := newWorld(t, 3)
			w.latency = x.latency
			a, b := w.add("a", addressed(x.a)), w.add("b", addressed(x.b))
			w.connect()
			// It grows, so that no two samples are the same.
			for end := w.now.Add(3 * time.Second); w.step(end); w.latency += 100 * time.Nanosecond {
			}
			requireUp(t, a, b)
			require.NotEqual(t, a.peers[0].measurement.Min(), b.peers[0].measurement.Min(), "each has measured for itself")
			f, g := a.Finding("b"), b.Finding("a")
			require.Equal(t, x.locality, f.Locality, f.Reason)
			require.Equal(t, f, g)
			require.GreaterOrEqual(t, f.RTT, 2*x.latency)
			require.Less(t, f.RTT, 4*x.latency)
			require.Equal(t, f.Locality, a.Finding("b").Locality)
		})
	}
}

func requireUp(t *testing.T, a, b *worldNode) {
	t.Helper()
	for _, x := range [][2]*worldNode{{a, b}, {b, a}} {
		state, err := x[0].Peer(x[1].Name())
		require.NoError(t, err)
		require.Equal(t, PeerUp, state)
	}
}

// Whatever happens to the messages, both ends find the same locality.
func TestMeasuringSurvivesBrokenConnections(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		w := newWorld(t, seed)
		w.latency = time.Duration(1+rand.New(rand.NewPCG(seed, 2)).IntN(4)) * 300 * time.Microsecond
		w.breakChance, w.doubleChance, w.lateChance = 0.1, 0.1, 0.1
		a, b := w.add("a", addressed("10.0.0.1/24")), w.add("b", addressed("10.0.0.2/24"))
		w.connect()
		for range 300 {
			w.run(20 * time.Millisecond)
			if state, _ := a.Peer("b"); state == PeerUp && b.Finding("a").Locality != 0 {
				break
			}
		}
		requireUp(t, a, b)
		require.Equal(t, a.Finding("b"), b.Finding("a"), "seed %d", seed)
		require.NotZero(t, a.Finding("b").RTT)
		_, err := a.Open(w.now, "b", syncOptions("s"))
		require.NoError(t, err)
	}
}

// A pong that was not expected is not a measurement.
func TestUnexpectedPong(t *testing.T) {
	w := newWorld(t, 4)
	w.latency = 10 * time.Millisecond
	a, b := w.add("a", addressed("10.0.0.1/24")), w.add("b", addressed("10.0.0.2/24"))
	w.connect()
	w.until(time.Second, func() bool {
		if a.peer("b") == nil {
			return false
		}
		_, pending := a.peer("b").measurement.Pending()
		return pending
	})
	p := a.peer("b")
	pong := func(number uint64) {
		conn := p.Conn.ID
		a.Control(w.now, ConnID(conn), control.Encode(control.KindPong, 0, 0, &control.Echo{Number: number}))
	}
	last, _ := p.measurement.Pending()
	pong(last + 1)
	pong(0)
	require.EqualValues(t, 2, a.Counters().ControlDuplicate)
	w.run(3 * time.Second)
	requireUp(t, a, b)
	require.Equal(t, OtherCluster, a.Finding("b").Locality)
	last, _ = p.measurement.Pending()
	pong(last)
	require.EqualValues(t, 3, a.Counters().ControlDuplicate, "the last one was answered before")
	require.GreaterOrEqual(t, a.Finding("b").RTT, 20*time.Millisecond)
}

// A peer that says hello and then nothing is not up and is dialled again.
func TestPeerThatAnswersNoPing(t *testing.T) {
	w := newWorld(t, 5)
	a, b := w.add("a", addressed("10.0.0.1/24")), w.add("b", addressed("10.0.0.2/24"))
	w.connect()
	w.run(3500 * time.Microsecond) // hello has come, no pong yet
	b.muted = true
	w.run(20 * time.Second)
	state, _ := a.Peer("b")
	require.Equal(t, PeerNew, state)
	require.NotZero(t, a.Counters().HandshakesExpired)
	b.muted = false
	w.run(20 * time.Second)
	requireUp(t, a, b)
}
