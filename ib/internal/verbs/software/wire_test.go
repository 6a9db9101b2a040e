package software_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRNRTimer: the sender waits as long as the receiver asked for, as often as it was
// told.
func TestRNRTimer(t *testing.T) {
	f := software.NewFabric(software.Config{Virtual: true})
	l := join(t, f, verbs.RC, 4, timers{14, 7, 26, 2}) // 81.92 ms
	a, b := &l.ends[0], &l.ends[1]
	a.send(t, 1, 8, 0)
	f.Advance(81 * time.Millisecond)
	b.expect(t, 1, 0, 8)
	require.Empty(t, all(t, a.queue))
	f.Advance(time.Millisecond)
	require.Len(t, all(t, a.queue), 1)
	require.Len(t, all(t, b.recvs), 1)
	a.send(t, 2, 8, 0)
	f.Advance(163 * time.Millisecond)
	require.Empty(t, all(t, a.queue))
	f.Advance(time.Millisecond)
	got := all(t, a.queue)
	require.Len(t, got, 1)
	require.Equal(t, verbs.StatusRNRExceeded, got[0].Status)
}

// TestRetryTimer: 4.096 µs × 2^14, 1 + 3 times.
func TestRetryTimer(t *testing.T) {
	f := software.NewFabric(software.Config{Virtual: true})
	l := join(t, f, verbs.RC, 4, timers{14, 3, 12, 7})
	a, b := &l.ends[0], &l.ends[1]
	b.expect(t, 1, 0, 8)
	require.NoError(t, b.adapter.SetPort(1, false))
	a.send(t, 1, 8, 0)
	f.Advance(268 * time.Millisecond)
	require.Empty(t, all(t, a.queue))
	f.Advance(time.Millisecond)
	got := all(t, a.queue)
	require.Len(t, got, 1)
	require.Equal(t, verbs.StatusRetriesExceeded, got[0].Status)
	require.EqualValues(t, 4, f.Lost())
	require.EqualValues(t, 3, f.Resent())
}

// TestLossyUnreliable: what a UC pair gets of a lossy wire is whole messages in order,
// and the same ones whenever the seed is the same.
func TestLossyUnreliable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		seed := rapid.Uint64().Draw(r, "seed")
		loss := rapid.Float64Range(0, 0.5).Draw(r, "loss")
		first := lossy(r, seed, loss)
		require.Equal(r, first, lossy(r, seed, loss), "the seed decides")
	})
}

func lossy(t tester, seed uint64, loss float64) string {
	f := software.NewFabric(software.Config{Virtual: true, MTU: 256, Seed: seed})
	l := join(t, f, verbs.UC, 64, timers{})
	a, b := &l.ends[0], &l.ends[1]
	f.SetRule(software.FaultRates{Seed: seed, DropRate: loss}.Rule())
	for i := range uint64(64) {
		b.expect(t, i, int(i)*2048, 2048)
	}
	for i := range uint64(60) {
		n := int(i) * 30
		for j := range n {
			a.memory[j] = byte(int(i) + j)
		}
		a.send(t, i, n, uint32(i))
	}
	require.Len(t, all(t, a.queue), 60, "UC never waits")
	last, log := -1, ""
	for k, c := range all(t, b.recvs) {
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

// TestOvertaking: a packet that is late comes when its time has come. UC takes it for a
// new message; RC restores the order.
func TestOvertaking(t *testing.T) {
	for _, tr := range []verbs.Transport{verbs.UC, verbs.RC} {
		f := software.NewFabric(software.Config{Virtual: true})
		l := join(t, f, tr, 4, timers{14, 7, 12, 7})
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
			for _, c := range all(t, b.recvs) {
				require.Equal(t, verbs.StatusOK, c.Status)
				out = append(out, c.Immediate)
			}
			return out
		}
		for i := range uint64(3) {
			b.expect(t, i, int(i)*64, 64)
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
			f.Advance(1999 * time.Microsecond)
			require.Empty(t, immediates())
			f.Advance(time.Microsecond)
			require.Equal(t, []uint32{100}, immediates())
			continue
		}
		// The gap was refused, and both were sent again at once; what comes late is a repeat.
		require.Equal(t, []uint32{100, 101}, immediates())
		f.Advance(time.Second)
		require.Empty(t, immediates())
		require.EqualValues(t, 1, f.Resent())
	}
}
