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

	"github.com/p2pdc/p2pdc/internal/netlab"
	"github.com/p2pdc/p2pdc/internal/netlab/flow"
	"github.com/p2pdc/p2pdc/microproto"
)

func TestMain(m *testing.M) {
	flow.Main()
	// They wait for most of their time: more at once than there are processors.
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	if err := netlab.UrgentLink.SetAll(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const patience = 20 * time.Second

// wide is a link of 50 Mbit/s, 20 ms there and back, with a queue of what is under way
// then, that loses so much of what goes forth.
func wide(loss float64) netlab.Emulation {
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
	t.Cleanup(func() { f.Stop() }) // in case the test has not
	return f
}

// stop wants both ends to have nothing to complain about.
func stop(t *testing.T, f *flow.Flow) (sender, receiver flow.Counts) {
	t.Helper()
	sender, receiver, err := f.Stop()
	require.NoError(t, err)
	return sender, receiver
}

// grows waits until so many more bytes have arrived.
func grows(t *testing.T, f *flow.Flow, bytes float64) {
	t.Helper()
	before := f.Received(flow.Now())
	require.Eventually(t, func() bool { return f.Received(flow.Now()) >= before+bytes }, patience, 5*time.Millisecond)
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

// synchronous are the sessions that must lose nothing: within a cluster, and between
// two, with protected frames.
func synchronous() map[string]flow.Spec {
	return map[string]flow.Spec{
		"intra": {Mode: microproto.ModeSynchronous, Intra: true}, "inter": {Mode: microproto.ModeSynchronous, Protected: true},
	}
}

func TestTCPIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	k := link(t, wide(0))
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
		require.Less(t, s.TCP.RTTMicros, uint32(200_000))
	}
	_, err := flow.Start(k.A, k.B, flow.Spec{Congestion: "no such control"})
	require.ErrorContains(t, err, "no such file or directory")
}

// What is sent arrives: each message once, in order and whole, whatever the link does
// to packets.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, s := range synchronous() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := wide(0.03)
			e.Forth.Duplicate, e.Forth.Reorder, e.Forth.Late, e.Forth.Jitter = 0.1, 0.1, 5*time.Millisecond, 2*time.Millisecond
			e.Back.Loss, e.Back.Duplicate, e.Back.Reorder, e.Back.Late = 0.03, 0.1, 0.1, 5*time.Millisecond
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
			k := link(t, wide(0))
			f := start(t, k, s)
			require.NoError(t, f.Bulk())
			grows(t, f, 2e5)
			change(t, k, func(c *netlab.Conditions) { c.Down = true })
			begin := time.Now()
			require.Eventually(t, func() bool { return time.Since(begin) > 2*time.Second }, patience, 10*time.Millisecond)
			require.Positive(t, k.Counters(netlab.Forth).Dropped[netlab.Down])
			change(t, k, func(c *netlab.Conditions) { c.Down = false })
			begin = time.Now()
			grows(t, f, 1)
			require.Less(t, time.Since(begin), 3*time.Second, "the time-outs back off to a second at most")
			grows(t, f, 2e5)
			stop(t, f)
		})
	}
}

// The path narrows below the size of the segments that were agreed on, and tells it or
// does not; then the interface narrows too. Over IPv4 routers cut what is too large; over
// IPv6 the session finds out and goes on in shorter frames.
func TestPathNarrowsUnderWay(t *testing.T) {
	t.Parallel()
	for name, s := range synchronous() {
		for _, c := range []struct{ six, silent bool }{{false, false}, {false, true}, {true, true}} {
			t.Run(fmt.Sprintf("%s, IPv6 %v, silent %v", name, c.six, c.silent), func(t *testing.T) {
				t.Parallel()
				k := link(t, wide(0))
				own := s
				own.IPv6 = c.six
				f := start(t, k, own)
				require.NoError(t, f.Bulk())
				grows(t, f, 2e5)
				change(t, k, func(now *netlab.Conditions) { now.MTU, now.Silent = 1300, c.silent })
				grows(t, f, 6e5) // more than is under way
				n := k.Counters(netlab.Forth)
				require.Equal(t, c.six, n.Dropped[netlab.TooLarge] > 0)
				require.Equal(t, c.six, n.Fragments == 0)
				require.NoError(t, k.A.SetMTU(1280))
				grows(t, f, 6e5)
				stop(t, f)
			})
		}
	}
}

// Answers that come 60 ms late now and then, on a path of 20 ms, say nothing about how
// much it bears: who takes them for losses gets little of it.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]flow.Spec{"sync": {Mode: microproto.ModeSynchronous}, "async": {Mode: microproto.ModeAsynchronous, EveryMicros: 20_000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := netlab.Conditions{Rate: 10 * netlab.Mbit, QueueBytes: 25_000, Delay: 10 * time.Millisecond}
			k := link(t, netlab.Emulation{Both: &c})
			f := start(t, k, s)
			require.NoError(t, f.Bulk())
			pass := func(d time.Duration) {
				from := flow.Now()
				require.Eventually(t, func() bool { return flow.Now() > from+int64(d) }, patience, time.Millisecond)
			}
			punctually(t, func() string {
				begin := flow.Now()
				for range 12 {
					pass(350 * time.Millisecond)
					c.Delay = 70 * time.Millisecond
					require.NoError(t, k.Change(netlab.Back, c))
					pass(50 * time.Millisecond)
					c.Delay = 10 * time.Millisecond
					require.NoError(t, k.Change(netlab.Back, c))
				}
				got := f.Goodput(begin+int64(2*time.Second), flow.Now()) / netlab.Mbit
				t.Logf("%.2f of 10 Mbit/s", got)
				if got <= 5 {
					return "less than half of what the path bears"
				}
				return ""
			})
			stop(t, f)
		})
	}
}

// The first and the last message are lost: nothing that comes behind them tells.
func TestFirstAndLastAreLost(t *testing.T) {
	t.Parallel()
	for name, s := range synchronous() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lose atomic.Int32
			e := wide(0)
			e.Forth.Pick = func(ip []byte) bool {
				protocol, _ := netlab.Protocol(ip)
				return protocol == 17 && lose.Add(-1) >= 0
			}
			k := link(t, e)
			s.Bytes = 700 // one packet each
			f := start(t, k, s)
			lose.Store(1)
			require.NoError(t, f.Send(1))
			require.NoError(t, f.Send(30))
			lose.Store(2) // the last message, and the first time that it is sent again
			require.NoError(t, f.Send(1))
			sent, got := stop(t, f)
			require.EqualValues(t, 32, got.Messages)
			require.EqualValues(t, 3, k.Counters(netlab.Forth).Dropped[netlab.Picked])
			require.GreaterOrEqual(t, sent.Session.Retransmitted, uint64(3))
		})
	}
}

// An asynchronous session repairs nothing and never stops.
func TestAsynchronousGoesOn(t *testing.T) {
	t.Parallel()
	e := wide(0.3)
	e.Forth.Duplicate, e.Forth.Reorder, e.Forth.Late = 0.1, 0.1, 5*time.Millisecond
	k := link(t, e)
	f := start(t, k, flow.Spec{Mode: microproto.ModeAsynchronous, Intra: true, Bytes: 16 << 10, EveryMicros: 10_000})
	require.NoError(t, f.Bulk())
	grows(t, f, 2e5)
	change(t, k, func(c *netlab.Conditions) { c.Down = true })
	require.Eventually(t, func() bool { return k.Counters(netlab.Forth).Dropped[netlab.Down] > 10 }, patience, 5*time.Millisecond)
	change(t, k, func(c *netlab.Conditions) { c.Down, c.MTU = false, 1300 })
	grows(t, f, 2e5)
	sent, got := stop(t, f)
	require.Positive(t, got.Messages)
	require.Zero(t, sent.Session.Retransmitted)
}

// Sessions between clusters beside the kernel's TCP. At one packet lost of a hundred
// NewReno gets about what the kernel gets that does the same (reno without SACK, RACK and
// tail loss probes), each on a link of its own; and of a link that loses only what its queue
// cannot hold, a session and a TCP connection get shares that let both live. Short, so wide;
// bench measures it.
func TestBesideTheKernels(t *testing.T) {
	t.Parallel()
	lossy := wide(0.01)
	narrow := netlab.Conditions{Rate: 10 * netlab.Mbit, QueueBytes: 25_000, Delay: 5 * time.Millisecond}
	newReno, ccid2 := flow.Spec{Mode: microproto.ModeSynchronous}, flow.Spec{Mode: microproto.ModeAsynchronous, EveryMicros: 50_000}
	reno := flow.Spec{Congestion: "reno"}
	alone, kernels, shared, sharedToo := link(t, lossy), link(t, lossy), link(t, netlab.Emulation{Both: &narrow}), link(t, netlab.Emulation{Both: &narrow})
	require.NoError(t, flow.PlainTCP(kernels.A.Host))
	require.NoError(t, flow.PlainTCP(kernels.B.Host))
	pairs := [][2]*flow.Flow{
		{start(t, alone, newReno), start(t, kernels, reno)},
		{start(t, shared, newReno), start(t, shared, reno)},
		{start(t, sharedToo, ccid2), start(t, sharedToo, reno)},
	}
	for _, p := range pairs {
		require.NoError(t, p[0].Bulk())
		require.NoError(t, p[1].Bulk())
	}
	const span = int64(6 * time.Second)
	punctually(t, func() (what string) {
		begin := flow.Now()
		require.Eventually(t, func() bool { return flow.Now() > begin+span }, patience, 10*time.Millisecond)
		for i, p := range pairs {
			ours, theirs := p[0].Goodput(begin+span/3, begin+span)/netlab.Mbit, p[1].Goodput(begin+span/3, begin+span)/netlab.Mbit
			t.Logf("pair %d: ours %.2f Mbit/s, TCP %.2f", i, ours, theirs)
			most := 2.5
			if i > 0 {
				most = 4
			}
			if i > 0 && ours+theirs <= 6 || theirs/ours >= most || ours/theirs >= most {
				what += fmt.Sprintf("pair %d: ours %.2f Mbit/s, TCP %.2f; ", i, ours, theirs)
			}
		}
		return what
	})
	for _, p := range pairs {
		stop(t, p[0])
		stop(t, p[1])
	}
}

// punctually measures what depends on time, which a machine that is busy with something else
// does not keep: what is wrong must be so three times.
func punctually(t *testing.T, measure func() (wrong string)) {
	wrong := ""
	for range 3 {
		if wrong = measure(); wrong == "" {
			return
		}
		t.Log("again: ", wrong)
	}
	require.Empty(t, wrong)
}
