package software_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// advance moves the time of a bubble and returns when all timers that expire by then have had their
// effect.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// The sender waits for the receiver's RNR time, for its number of retries.
func TestRNRTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := software.NewFabric(software.Config{})
		l := openConnection(t, f, verbs.RC, 4, timers{14, 7, 26, 2}) // 81.92 ms
		a, b := &l.ends[0], &l.ends[1]
		a.send(t, 1, 8, 0)
		advance(81 * time.Millisecond)
		b.postReceive(t, 1, 0, 8)
		require.Empty(t, pollAll(t, a.queue))
		advance(time.Millisecond)
		require.Len(t, pollAll(t, a.queue), 1)
		require.Len(t, pollAll(t, b.recvs), 1)
		a.send(t, 2, 8, 0)
		advance(163 * time.Millisecond)
		require.Empty(t, pollAll(t, a.queue))
		advance(time.Millisecond)
		got := pollAll(t, a.queue)
		require.Len(t, got, 1)
		require.Equal(t, verbs.StatusRNRExceeded, got[0].Status)
	})
}

// The sender retries three times after 4.096 µs × 2^14 each.
func TestRetryTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := software.NewFabric(software.Config{})
		l := openConnection(t, f, verbs.RC, 4, timers{14, 3, 12, 7})
		a, b := &l.ends[0], &l.ends[1]
		b.postReceive(t, 1, 0, 8)
		b.adapter.SetPort(false)
		a.send(t, 1, 8, 0)
		advance(268 * time.Millisecond)
		require.Empty(t, pollAll(t, a.queue))
		advance(time.Millisecond)
		got := pollAll(t, a.queue)
		require.Len(t, got, 1)
		require.Equal(t, verbs.StatusRetriesExceeded, got[0].Status)
		require.EqualValues(t, 4, f.Lost())
		require.EqualValues(t, 3, f.Resent())
	})
}

// On a lossy network a UC pair receives whole messages in order, and the same ones for the same
// seed.
func TestLossyUnreliable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		seed := rapid.Uint64().Draw(r, "seed")
		loss := rapid.Float64Range(0, 0.5).Draw(r, "loss")
		first := lossy(r, seed, loss)
		require.Equal(r, first, lossy(r, seed, loss), "the seed decides")
	})
}

func lossy(t tester, seed uint64, loss float64) string {
	f := software.NewFabric(software.Config{MTU: 256, Seed: seed})
	l := openConnection(t, f, verbs.UC, 64, timers{})
	a, b := &l.ends[0], &l.ends[1]
	f.SetRule(faultRates{Seed: seed, DropRate: loss}.rule())
	for i := range uint64(64) {
		b.postReceive(t, i, int(i)*2048, 2048)
	}
	for i := range uint64(60) {
		n := int(i) * 30
		for j := range n {
			a.memory[j] = byte(int(i) + j)
		}
		a.send(t, i, n, uint32(i))
	}
	require.Len(t, pollAll(t, a.queue), 60, "UC never waits")
	last, log := -1, ""
	for k, c := range pollAll(t, b.recvs) {
		require.Equal(t, verbs.StatusOK, c.Status)
		require.EqualValues(t, k, c.ID, "a lost message takes no receive request")
		i := int(c.Immediate)
		require.Greater(t, i, last)
		last = i
		require.EqualValues(t, i*30, c.Bytes)
		for j := range int(c.Bytes) {
			if b.memory[k*2048+j] != byte(i+j) {
				t.Fatal(fmt.Sprintf("message %d, byte %d", i, j))
			}
		}
		log += fmt.Sprint(i, " ")
	}
	return log
}

// A delayed packet arrives after later ones. UC takes it for a new message. RC restores the order.
func TestOvertaking(t *testing.T) {
	for _, tr := range []verbs.Transport{verbs.UC, verbs.RC} {
		synctest.Test(t, func(t *testing.T) { testOvertaking(t, tr) })
	}
}

func testOvertaking(t *testing.T, tr verbs.Transport) {
	f := software.NewFabric(software.Config{})
	l := openConnection(t, f, tr, 4, timers{14, 7, 12, 7})
	a, b := &l.ends[0], &l.ends[1]
	var seen []software.Packet
	f.SetRule(func(p software.Packet) software.Fault {
		if p.Ack {
			return software.Fault{}
		}
		seen = append(seen, p)
		if len(seen) == 1 {
			return software.Fault{Delay: 2 * time.Millisecond}
		}
		return software.Fault{}
	})
	immediates := func() (out []uint32) {
		for _, c := range pollAll(t, b.recvs) {
			require.Equal(t, verbs.StatusOK, c.Status)
			out = append(out, c.Immediate)
		}
		return out
	}
	for i := range uint64(3) {
		b.postReceive(t, i, int(i)*64, 64)
	}
	a.send(t, 0, 8, 100)
	require.Empty(t, immediates())
	a.send(t, 1, 8, 101)
	require.Equal(t, a.pair.Number(), seen[0].From)
	require.Equal(t, b.pair.Number(), seen[0].To)
	require.EqualValues(t, 0xfffffe, seen[0].PSN)
	require.True(t, seen[0].First && seen[0].Last)
	require.Equal(t, 8, seen[0].Bytes)
	if tr == verbs.UC {
		require.Equal(t, []uint32{101}, immediates())
		advance(1999 * time.Microsecond)
		require.Empty(t, immediates())
		advance(time.Microsecond)
		require.Equal(t, []uint32{100}, immediates())
		return
	}
	// The gap was refused, and both packets were sent again. The delayed one is a duplicate.
	require.Equal(t, []uint32{100, 101}, immediates())
	advance(time.Second)
	require.Empty(t, immediates())
	require.EqualValues(t, 1, f.Resent())
}
