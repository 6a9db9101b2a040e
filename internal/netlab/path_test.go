package netlab

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

// testPath is a path driven by a test.
type testPath struct {
	*path
	next uint32
}

func newTestPath(c Conditions) *testPath {
	return &testPath{path: newPath(c, 1, &pool{size: 2000})}
}

// send sends a packet that contains its number, counted from 0.
func (c *testPath) send(now time.Duration, size int) {
	b := c.pool.acquire()
	b.data = b.data[:size]
	binary.BigEndian.PutUint32(b.data, c.next)
	c.next++
	c.accept(now, b)
}

// received returns the numbers of the packets that have arrived by now.
func (c *testPath) received(now time.Duration) (numbers []uint32) {
	for b := c.nextArrived(now); b != nil; b = c.nextArrived(now) {
		numbers = append(numbers, binary.BigEndian.Uint32(b.data))
		c.pool.release(b)
		c.count.Forwarded++
	}
	return numbers
}

func TestNoConditions(t *testing.T) {
	c := newTestPath(Conditions{})
	require.Equal(t, never, c.deadline())
	c.send(5, 100)
	require.LessOrEqual(t, c.deadline(), time.Duration(5))
	require.Equal(t, []uint32{0}, c.received(5))
	require.Equal(t, never, c.deadline())
}

func TestRateAndDelay(t *testing.T) {
	c := newTestPath(Conditions{Rate: 100_000, Delay: 7 * ms}) // 1000 bytes in 10 ms
	for range 3 {
		c.send(0, 1000)
	}
	for i, at := range []time.Duration{17 * ms, 27 * ms, 37 * ms} {
		require.Empty(t, c.received(at-1))
		require.Equal(t, []uint32{uint32(i)}, c.received(at))
	}
	// An idle transmitter accumulates no credit.
	c.send(100*ms, 500)
	require.Equal(t, 105*ms, c.deadline())
	require.Empty(t, c.received(112*ms-1))
	require.Equal(t, []uint32{3}, c.received(112*ms))
}

// The path computes with due times: a late call does not slow the link.
func TestLateCaller(t *testing.T) {
	c := newTestPath(Conditions{Rate: 100_000, Delay: ms})
	for range 5 {
		c.send(0, 1000)
	}
	require.Equal(t, []uint32{0, 1, 2, 3, 4}, c.received(51*ms))
}

func TestTailDrop(t *testing.T) {
	c := newTestPath(Conditions{Rate: 100_000, QueueBytes: 2999})
	for range 5 { // one is transmitted, two wait, two are dropped
		c.send(0, 1000)
	}
	require.EqualValues(t, 2, c.count.Dropped[QueueFull])
	require.Equal(t, 2000, c.waiting)
	require.Equal(t, []uint32{0}, c.received(10*ms))
	c.send(10*ms, 1000) // there is room again
	require.Equal(t, []uint32{1, 2, 5}, c.received(time.Second))
}

func TestLossUsesTheRate(t *testing.T) {
	c := newTestPath(Conditions{Rate: 100_000, Loss: 1})
	c.send(0, 1000)
	c.change(0, Conditions{Rate: 100_000})
	c.send(0, 1000)
	require.Empty(t, c.received(20*ms-1))
	require.Equal(t, []uint32{1}, c.received(20*ms))
	require.EqualValues(t, 1, c.count.Dropped[Lost])
}

func TestLossIsSeeded(t *testing.T) {
	arrivals := func(seed uint64) []uint32 {
		c := &testPath{path: newPath(Conditions{Loss: 0.3}, seed, &pool{size: 100})}
		for range 2000 {
			c.send(0, 8)
		}
		return c.received(0)
	}
	a := arrivals(7)
	require.Equal(t, a, arrivals(7))
	require.NotEqual(t, a, arrivals(8))
	require.InDelta(t, 1400, len(a), 100) // five standard deviations
}

func TestDuplicateAndReorder(t *testing.T) {
	c := newTestPath(Conditions{Duplicate: 1, Delay: ms})
	c.send(0, 8)
	require.Equal(t, []uint32{0, 0}, c.received(ms))
	require.EqualValues(t, 1, c.count.Duplicated)

	c = newTestPath(Conditions{Reorder: 1, Late: 3 * ms})
	c.send(0, 8)
	c.change(0, Conditions{})
	c.send(ms, 8)
	require.Equal(t, []uint32{1}, c.received(3*ms-1))
	require.Equal(t, []uint32{0}, c.received(3*ms))
	require.EqualValues(t, 1, c.count.Reordered)
}

func TestJitterKeepsTheOrder(t *testing.T) {
	c := newTestPath(Conditions{Delay: ms, Jitter: 10 * ms})
	early := 0
	for i := range 500 {
		now := time.Duration(i) * 20 * ms
		c.send(now, 8)
		require.Empty(t, c.received(now+ms-1))
		first := len(c.received(now + 6*ms))
		require.Equal(t, 1, first+len(c.received(now+11*ms)))
		early += first
	}
	require.InDelta(t, 250, early, 60)
	c = newTestPath(Conditions{Delay: ms, Jitter: 10 * ms})
	for i := range 500 {
		c.send(time.Duration(i)*ms/10, 8)
	}
	got := c.received(time.Second)
	require.Len(t, got, 500)
	require.True(t, slices.IsSorted(got))
}

func TestBlackHoleAndPick(t *testing.T) {
	c := newTestPath(Conditions{Delay: 5 * ms})
	c.send(0, 8)
	c.change(0, Conditions{Down: true})
	c.send(0, 8)
	c.change(0, Conditions{Pick: func(ip []byte) bool { return binary.BigEndian.Uint32(ip) == 3 }})
	c.send(0, 8)
	c.send(0, 8)
	require.Empty(t, c.received(5*ms-1), "a shorter delay does not change the order")
	require.Equal(t, []uint32{0, 2}, c.received(5*ms), "packets in flight arrive")
	require.EqualValues(t, 1, c.count.Dropped[Down])
	require.EqualValues(t, 1, c.count.Dropped[Picked])
}

func TestRateChanges(t *testing.T) {
	c := newTestPath(Conditions{Rate: 1}) // 1000 seconds
	c.send(0, 1000)
	c.send(0, 1000)
	c.change(0, Conditions{Rate: 100_000})
	require.Equal(t, []uint32{0}, c.received(10*ms))
	require.Equal(t, []uint32{1}, c.received(20*ms))
}

// Under arbitrary, changing conditions every packet is accounted for, every buffer is released, every packet
// leaves the path, and only reordering changes the order.
func TestEveryPacketIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		probability := rapid.SampledFrom([]float64{0, 0, 0.2, 1})
		conditions := rapid.Custom(func(t *rapid.T) Conditions {
			return Conditions{
				Down:       rapid.IntRange(0, 9).Draw(t, "down") == 0,
				Rate:       rapid.SampledFrom([]int{0, 10_000, 1 << 30}).Draw(t, "rate"),
				QueueBytes: rapid.IntRange(0, 5000).Draw(t, "queue"), Loss: probability.Draw(t, "loss"),
				Duplicate: probability.Draw(t, "duplicate"), Late: 4 * ms,
				Delay:  time.Duration(rapid.IntRange(0, 9).Draw(t, "delay")) * ms,
				Jitter: time.Duration(rapid.IntRange(0, 9).Draw(t, "jitter")) * ms,
			}
		})
		reorders := rapid.Bool().Draw(t, "reorders")
		c := newTestPath(conditions.Draw(t, "conditions"))
		now, last := time.Duration(0), -1
		check := func() {
			for _, n := range c.received(now) {
				if !reorders && int(n) < last {
					t.Fatalf("packet %d after %d", n, last)
				}
				last = int(n)
			}
			if d := c.deadline(); d <= now {
				t.Fatalf("due at %v, already %v", d, now)
			}
			k := &c.count
			dropped := uint64(0)
			for _, d := range k.Dropped {
				dropped += d
			}
			if k.In+k.Fragments+k.Duplicated != k.Forwarded+dropped+uint64(c.held()) {
				t.Fatalf("not accounted for: %+v, held %d", *k, c.held())
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				next := conditions.Draw(t, "conditions")
				if reorders {
					next.Reorder = 0.5
				}
				c.change(now, next)
			case 1:
				now += time.Duration(rapid.IntRange(0, 30).Draw(t, "time")) * ms
			default:
				c.send(now, rapid.IntRange(4, 1500).Draw(t, "size"))
			}
			check()
		}
		for c.held() > 0 {
			now = c.deadline()
			check()
		}
		if c.waiting != 0 {
			t.Fatalf("%d bytes wait in an empty queue", c.waiting)
		}
		for i, b := range c.pool.free {
			if b.references != 0 || slices.Contains(c.pool.free[:i], b) {
				t.Fatalf("buffer %d is released twice", i)
			}
		}
	})
}

func TestWrongConditions(t *testing.T) {
	for _, c := range []Conditions{
		{Loss: -0.1}, {Duplicate: 1.1}, {Reorder: 0.5}, {Rate: -1}, {Delay: -1}, {MTU: 10},
		{Loss: func() float64 { zero := 0.0; return zero / zero }()},
	} {
		require.Error(t, c.check(), "%+v", c)
	}
	require.NoError(t, (&Conditions{Loss: 1, Reorder: 1, Late: 1, MTU: 68}).check())
}
