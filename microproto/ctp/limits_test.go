package ctp

import (
	"bytes"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// newLimitedRig is newRig with limits for the composites.
func newLimitedRig(tb require.TestingT, names []string, o microproto.Options, mtu int, l microproto.Limits,
	f mptest.Faults) *rig {
	r := &rig{tb: tb}
	for i := range r.ends {
		c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), MTU: mtu, Limits: l},
			build(tb, names, o)...)
		require.NoError(tb, err)
		r.ends[i] = c
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, f)
	return r.open()
}

// A message with more segments than the pool has messages arrives, in both directions at once and
// over a lossy link: acknowledgements always find a message.
func TestMessageLongerThanThePool(t *testing.T) {
	o := microproto.Options{OptionReceive: 1 << 20, OptionPeerReceive: 1 << 20}
	f := calm
	f.Loss = 0.05
	r := newLimitedRig(t, syncEther, o, 256, microproto.Limits{Messages: 64}, f)
	data := pattern(100_000, 1)
	for end := range 2 {
		_, err := r.send(end, tag, 1, data)
		require.NoError(t, err)
	}
	ok, err := r.RunUntil(20*time.Second, func() bool { return r.accepted(0) == 1 && r.accepted(1) == 1 })
	require.NoError(t, err)
	require.True(t, ok)
	for end := range 2 {
		got, _ := r.drain(end, len(data))
		require.Len(t, got, 1)
		require.True(t, bytes.Equal(data, got[0]))
	}
}

// A message of 64 MiB is segmented while it is sent: there are never many more segments than the
// window.
func TestLongMessageIsSegmentedWhileItIsSent(t *testing.T) {
	n := 64 << 20
	if testing.Short() {
		n = 16 << 20
	}
	o := microproto.Options{OptionReceive: int64(n) + 1<<20, OptionPeerReceive: int64(n) + 1<<20}
	r := newRig(t, syncEther, o, 9000, 1, calm).open()
	data := pattern(n, 1)
	_, err := r.send(0, tag, 1, data)
	require.NoError(t, err)
	most := 0
	ok, err := r.RunUntil(time.Minute, func() bool {
		most = max(most, r.ends[0].Counters().Live)
		return r.accepted(0) == 1
	})
	require.NoError(t, err)
	require.True(t, ok)
	require.LessOrEqual(t, most, 1024+maxWaiting+8)
	got, _ := r.drain(1, n)
	require.True(t, bytes.Equal(data, got[0]))
}

// Asynchronous values are segmented completely before Send returns, or dropped: the user may
// change the memory afterwards.
func TestAsynchronousKeepsNothingOfTheUser(t *testing.T) {
	r := newLimitedRig(t, asyncEther, nil, 200, microproto.Limits{Messages: 1}, calm)
	require.NoError(t, r.ends[0].Endpoint().Slot(tag, 4096))
	_, err := r.send(0, tag, 1, pattern(4096, 1))
	require.NoError(t, err, "Send never blocks")
	require.Zero(t, r.ends[0].Counters().Live)
	require.EqualValues(t, 1, r.drops(0, "no message for a segment"))
}

// Segments beyond the grant are dropped and counted, memory stays bounded, and their
// retransmissions arrive once.
func TestBeyondTheCredit(t *testing.T) {
	const queue, n = 5000, 900
	o := microproto.Options{OptionReceive: queue, OptionPeerReceive: queue}
	r := newRig(t, syncEther, o, 400, 1, calm).open()
	*r.ends[0].Endpoint().(*Synchronous).grant = 1 << 40
	for k := range uint64(20) {
		_, err := r.send(0, tag, k, pattern(n, k))
		require.NoError(t, err)
	}
	fifo := r.ends[1].Protocol("ReliableFIFO").(*ReliableFIFO)
	got := uint64(0)
	for round := 0; got < 20; round++ {
		require.Less(t, round, 1000)
		require.LessOrEqual(t, fifo.stored-*fifo.consumed, uint64(queue))
		r.run(20 * time.Millisecond)
		dst := make([]byte, n)
		if a, err := r.receive(1, tag, dst, nil); err == nil {
			require.Equal(t, got, a.Label)
			require.True(t, bytes.Equal(pattern(n, got), dst))
			got++
		}
	}
	require.Positive(t, r.drops(1, "beyond the credit"))
	require.NoError(t, r.ends[1].Err())
}

// A transfer is accepted when its last segment is stored, not before.
func TestAcceptedWhenStored(t *testing.T) {
	r := newRig(t, syncEther, nil, 400, 1, calm).open()
	c := r.ends[0]
	last := c.HeaderBytes() + 1000%(c.MaxPayload()&^7)
	r.OnFrame = func(end int, f microproto.Frame) bool { return end != 0 || len(f.Data) != last }
	_, err := r.send(0, tag, 1, pattern(1000, 1))
	require.NoError(t, err)
	r.run(time.Second)
	require.EqualValues(t, 3, *r.ends[1].Protocol("ReliableFIFO").(*ReliableFIFO).expected,
		"two of three segments are stored")
	require.Zero(t, r.accepted(0))
	require.Zero(t, r.ends[1].Endpoint().Arrivals())
	r.OnFrame = nil
	r.run(2 * time.Second)
	require.EqualValues(t, 1, r.accepted(0))
	require.EqualValues(t, 1, r.ends[1].Endpoint().Arrivals())
}
