//go:build linux

package flow_test

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/netlab/flow"
	"github.com/p2pdc/p2pdc/microproto"
)

func TestMain(m *testing.M) {
	flow.Main()
	// The tests mostly wait, so more of them than processors may run at once.
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// wanLink returns a link of 50 Mbit/s with a round-trip time of 20 ms, a queue of one bandwidth-delay product,
// and that loss rate in the forward direction.
func wanLink(loss float64) netlab.Emulation {
	c := netlab.Conditions{Rate: 50 * netlab.Mbit, QueueBytes: 125_000, Delay: 10 * time.Millisecond}
	e := netlab.Emulation{Forth: c, Back: c, Seed: 1}
	e.Forth.Loss = loss
	return e
}

func link(t *testing.T, e netlab.Emulation) *netlab.Link {
	t.Helper()
	lab := netlab.New(t)
	return lab.Emulate(lab.Host("a"), lab.Host("b"), e)
}

func start(t *testing.T, k *netlab.Link, s flow.Spec) *flow.Flow {
	t.Helper()
	f, err := flow.Start(k.A, k.B, s)
	require.NoError(t, err)
	t.Cleanup(func() {
		if sender, receiver, err := f.Stop(); t.Failed() {
			t.Logf("sender: %+v\nreceiver: %+v\nerror: %v", sender, receiver, err)
		}
	})
	return f
}

// stop stops the flow and requires that both ends succeeded.
func stop(t *testing.T, f *flow.Flow) (sender, receiver flow.Counts) {
	t.Helper()
	sender, receiver, err := f.Stop()
	require.NoError(t, err)
	return sender, receiver
}

// grows waits until that many more bytes have arrived.
func grows(t *testing.T, f *flow.Flow, bytes float64) {
	t.Helper()
	before := f.Received(flow.Now())
	await.Until(t, func() bool { return f.Received(flow.Now()) >= before+bytes }, "%g more bytes", bytes)
}

// change alters the conditions of both directions.
func change(t *testing.T, k *netlab.Link, f func(c *netlab.Conditions)) {
	t.Helper()
	for _, d := range []netlab.Direction{netlab.Forth, netlab.Back} {
		c := k.Conditions(d)
		f(&c)
		require.NoError(t, k.Change(d, c))
	}
}

// synchronous returns the sessions that must not lose messages: within a cluster, and between two clusters with
// protected frames.
func synchronous() map[string]flow.Spec {
	return map[string]flow.Spec{
		"intra": {Mode: microproto.ModeSynchronous, Intra: true},
		"inter": {Mode: microproto.ModeSynchronous, Protected: true},
	}
}

func TestTCPUsesTheCongestionControl(t *testing.T) {
	t.Parallel()
	k := link(t, wanLink(0))
	require.NoError(t, flow.PlainTCP(k.A.Host))
	require.NoError(t, flow.PlainTCP(k.B.Host))
	for _, name := range []string{"reno", "cubic"} {
		f := start(t, k, flow.Spec{Congestion: name})
		require.NoError(t, f.Bulk())
		grows(t, f, 1e5)
		s, r := stop(t, f)
		require.Equal(t, name, s.TCP.Congestion)
		require.GreaterOrEqual(t, s.Bytes, r.Bytes)
		require.GreaterOrEqual(t, s.TCP.RTTMicros, uint32(20_000))
	}
	_, err := flow.Start(k.A, k.B, flow.Spec{Congestion: "no such control"})
	require.ErrorContains(t, err, "no such file or directory")
}

// Messages arrive once each, complete and in order, over a link that loses, duplicates and reorders packets.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, s := range synchronous() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := wanLink(0.03)
			for _, c := range []*netlab.Conditions{&e.Forth, &e.Back} {
				c.Loss, c.Duplicate = 0.03, 0.1
				c.Reorder, c.Late = 0.1, 5*time.Millisecond
			}
			e.Forth.Jitter = 2 * time.Millisecond
			k := link(t, e)
			s.Bytes = 3001
			f := start(t, k, s)
			require.NoError(t, f.Send(120))
			sent, got := stop(t, f)
			require.EqualValues(t, 120, got.Messages)
			require.EqualValues(t, 120*3001, got.Bytes)
			require.Positive(t, sent.Session.Retransmitted)
			require.Equal(t, s.Protected, len(sent.Session.Protection) > 0)
		})
	}
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	for name, s := range synchronous() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := link(t, wanLink(0))
			f := start(t, k, s)
			require.NoError(t, f.Bulk())
			grows(t, f, 2e5)
			change(t, k, func(c *netlab.Conditions) { c.Down = true })
			// While the link is down it gets only the packets that were in flight, and then the
			// retransmissions after time-outs.
			before := k.Counters(netlab.Forth).In
			flight := func() bool { return k.Counters(netlab.Forth).Held == 0 && k.Counters(netlab.Back).Held == 0 }
			await.Until(t, flight, "the packets in flight to arrive")
			await.Until(t, func() bool { return k.Counters(netlab.Forth).In >= before+4 }, "retransmitted segments")
			require.Positive(t, k.Counters(netlab.Forth).Dropped[netlab.Down])
			change(t, k, func(c *netlab.Conditions) { c.Down = false })
			grows(t, f, 2e5)
			stop(t, f)
		})
	}
}

// The MTU of the path decreases below the agreed segment size, with or without ICMP messages; then the MTU of
// the interface decreases too. The session detects the loss and continues with shorter frames.
func TestPathMTUDecreasesDuringASession(t *testing.T) {
	t.Parallel()
	for name, s := range synchronous() {
		cases := []struct{ six, silent bool }{{false, true}, {true, true}, {false, false}}
		if testing.Short() {
			cases = cases[:2]
		}
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s, IPv6 %v, silent %v", name, c.six, c.silent), func(t *testing.T) {
				t.Parallel()
				k := link(t, wanLink(0))
				own := s
				own.IPv6 = c.six
				f := start(t, k, own)
				require.NoError(t, f.Bulk())
				grows(t, f, 2e5)
				change(t, k, func(now *netlab.Conditions) { now.MTU, now.Silent = 1300, c.silent })
				grows(t, f, 6e5) // more than is in flight
				n := k.Counters(netlab.Forth)
				require.Positive(t, n.Dropped[netlab.TooLarge])
				require.Zero(t, n.Fragments)
				require.NoError(t, k.A.SetMTU(1280))
				grows(t, f, 6e5)
				stop(t, f)
			})
		}
	}
}

// The first and the last message are lost, so that no later packet reveals the loss.
func TestFirstAndLastAreLost(t *testing.T) {
	t.Parallel()
	for name, s := range synchronous() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lose atomic.Int32
			e := wanLink(0)
			e.Forth.Pick = func(ip []byte) bool {
				return ip[0]>>4 == 4 && ip[9] == 17 && lose.Add(-1) >= 0 // UDP
			}
			k := link(t, e)
			s.Bytes = 700 // one packet each
			f := start(t, k, s)
			lose.Store(1)
			require.NoError(t, f.Send(1))
			require.NoError(t, f.Send(30))
			lose.Store(2) // the last message and its first retransmission
			require.NoError(t, f.Send(1))
			sent, got := stop(t, f)
			require.EqualValues(t, 32, got.Messages)
			require.EqualValues(t, 3, k.Counters(netlab.Forth).Dropped[netlab.Picked])
			require.GreaterOrEqual(t, sent.Session.Retransmitted, uint64(3))
		})
	}
}

// An asynchronous session retransmits nothing and never stalls.
func TestAsynchronousContinues(t *testing.T) {
	t.Parallel()
	e := wanLink(0.3)
	e.Forth.Duplicate = 0.1
	e.Forth.Reorder, e.Forth.Late = 0.1, 5*time.Millisecond
	k := link(t, e)
	f := start(t, k, flow.Spec{Mode: microproto.ModeAsynchronous, Intra: true, Bytes: 16 << 10})
	require.NoError(t, f.Bulk())
	grows(t, f, 2e5)
	change(t, k, func(c *netlab.Conditions) { c.Down = true })
	await.Until(t, func() bool { return k.Counters(netlab.Forth).Dropped[netlab.Down] > 10 },
		"packets dropped while it is down")
	change(t, k, func(c *netlab.Conditions) { c.Down, c.MTU = false, 1300 })
	grows(t, f, 2e5)
	sent, got := stop(t, f)
	require.Positive(t, got.Messages)
	require.Zero(t, sent.Session.Retransmitted)
}
