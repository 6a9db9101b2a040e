package ctp

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Over a reliable link without PositiveAck, a receiver that does not receive stops the sender.
// Nothing overflows, and all messages arrive in the end.
func TestGrantsHoldTheSenderBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		queue := rapid.Int64Range(1100, 20_000).Draw(rt, "queue")
		o := microproto.Options{OptionReceive: queue, OptionPeerReceive: queue,
			OptionGrantsInMessages: rapid.Int64Range(0, 1).Draw(rt, "grants in messages")}
		r := newRig(rt, syncReady, o, rapid.IntRange(100, 1500).Draw(rt, "mtu"), 1, calm).open()
		sizes := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 60).Draw(rt, "sizes")
		every := rapid.IntRange(1, 10).Draw(rt, "the receiver looks every so many rounds")
		sent, got := 0, 0
		for round := 0; got < len(sizes); round++ {
			require.Less(rt, round, 5000, "stuck: %d of %d sent, %d received", sent, len(sizes), got)
			for sent < len(sizes) {
				if _, err := r.send(0, tag, uint64(sent), pattern(sizes[sent], uint64(sent))); err != nil {
					require.ErrorIs(rt, err, microproto.ErrBusy)
					break
				}
				sent++
			}
			s := r.ends[1].Endpoint().(*Synchronous)
			require.LessOrEqual(rt, s.stored-*s.consumed, uint64(queue))
			if round%every == 0 {
				dst := make([]byte, 1000)
				if a, err := r.receive(1, tag, dst, nil); err == nil {
					require.True(rt, bytes.Equal(pattern(sizes[got], uint64(got)), dst[:a.Length]), "message %d", got)
					got++
				}
			}
			r.run(time.Millisecond)
		}
		require.EqualValues(rt, len(sizes), r.accepted(0))
		require.NoError(rt, r.Pair.Close())
	})
}

func TestGrantTagIsReserved(t *testing.T) {
	for _, names := range [][]string{syncReady, syncEther} {
		r := newRig(t, names, nil, 1500, 1, calm).open()
		_, err := r.send(0, math.MaxUint32, 1, nil)
		require.ErrorIs(t, err, ErrSlot)
	}
}

// A peer that exceeds its grant, and a link that loses a segment, fail the session with an error
// that says so.
func TestGrantExceeded(t *testing.T) {
	o := microproto.Options{OptionReceive: 2000, OptionPeerReceive: 2000}
	r := newRig(t, syncReady, o, 1500, 1, calm).open()
	*r.ends[0].Endpoint().(*Synchronous).grant = 1 << 40
	for range 3 {
		_, err := r.send(0, tag, 1, make([]byte, 900))
		require.NoError(t, err)
	}
	_, err := r.Run(time.Second)
	require.ErrorIs(t, err, ErrQueueFull)

	c, err := microproto.NewComposite(microproto.Config{Name: "c", MTU: 100, Limits: microproto.Limits{Outputs: 4}},
		build(t, syncReady, nil)...)
	require.NoError(t, err)
	require.NoError(t, c.Open(0))
	require.NoError(t, c.Do(0, func(x *microproto.Exec) { _, err = c.Endpoint().Send(x, tag, 1, make([]byte, 1000)) }))
	require.NoError(t, err)
	for k := range 10 { // the outputs are not drained
		if err = c.Advance(microproto.Instant(k)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrLink)
}

// A message of two hundred segments does not fill a small output at once.
func TestBurstLeavesRoomToDrain(t *testing.T) {
	o := microproto.Options{OptionReceive: 1 << 20, OptionPeerReceive: 1 << 20}
	r := newLimitedRig(t, syncReady, o, 400, microproto.Limits{Outputs: 40}, calm)
	data := pattern(80_000, 1)
	_, err := r.send(0, tag, 1, data)
	require.NoError(t, err)
	r.run(time.Second)
	require.EqualValues(t, 1, r.accepted(0))
	got, _ := r.drain(1, len(data))
	require.Len(t, got, 1)
	require.True(t, bytes.Equal(data, got[0]))
}

// A transfer is accepted when it is stored at the other end, not when the link has taken it, and
// even if the user never receives it. A receiver that keeps up sends one grant for each message.
func TestAcceptedByAGrant(t *testing.T) {
	r := newRig(t, syncReady, nil, 1500, 1, calm).open()
	for i := range uint64(3) {
		_, err := r.send(0, tag, i, pattern(3000, i))
		require.NoError(t, err)
	}
	require.EqualValues(t, 0, r.accepted(0), "on its way")
	r.run(10 * time.Millisecond)
	require.EqualValues(t, 3, r.accepted(0), "the user has received none of them")

	dst := make([]byte, 3000)
	for range 3 {
		_, err := r.receive(1, tag, dst, nil)
		require.NoError(t, err)
	}
	r.run(10 * time.Millisecond)
	before := r.ends[1].Counters().Transmitted
	for i := range uint64(10) {
		_, err := r.send(0, tag, 3+i, pattern(3000, i))
		require.NoError(t, err)
		for end := 0; ; end++ {
			if _, err := r.receive(1, tag, dst, nil); err == nil {
				break
			}
			require.Less(t, end, 1000)
			r.run(10 * time.Microsecond)
		}
	}
	r.run(10 * time.Millisecond)
	require.EqualValues(t, 13, r.accepted(0))
	require.EqualValues(t, 10, r.ends[1].Counters().Transmitted-before, "one answer a message")
}

// With grants in messages, two ends that answer each other send nothing but messages, and each accepts the transfer
// before. An end that waits for the next message, or does not receive, acknowledges alone.
func TestGrantsTravelInMessages(t *testing.T) {
	r := newRig(t, syncReady, microproto.Options{OptionGrantsInMessages: 1}, 1500, 1, calm).open()
	dst := make([]byte, 3000)
	arrives := func(end int) {
		ok, err := r.RunUntil(time.Second, func() bool {
			return r.ends[end].Endpoint().(*Synchronous).stored > *r.ends[end].Endpoint().(*Synchronous).consumed
		})
		require.NoError(t, err)
		require.True(t, ok)
	}
	for i := range uint64(20) { // each end answers once the message has arrived
		end := int(i % 2)
		require.EqualValues(t, i/2, r.accepted(end), "message %d", i)
		_, err := r.send(end, tag, i, pattern(1000, i))
		require.NoError(t, err)
		arrives(1 - end)
		_, err = r.receive(1-end, tag, dst, nil)
		require.NoError(t, err)
	}
	for end := range 2 {
		require.EqualValues(t, 10, r.ends[end].Counters().Transmitted, "messages only")
	}
	r.run(time.Microsecond)
	require.EqualValues(t, 11, r.ends[0].Counters().Transmitted, "the last message is acknowledged in the next Advance")
	r.run(10 * time.Millisecond)
	require.EqualValues(t, 10, r.accepted(1))

	_, err := r.send(0, tag, 20, pattern(1000, 20))
	require.NoError(t, err)
	r.run(10 * time.Millisecond)
	require.EqualValues(t, 11, r.accepted(0), "the user has not received it")
	require.EqualValues(t, 11, r.ends[1].Counters().Transmitted)
	_, err = r.receive(1, tag, dst, nil)
	require.NoError(t, err)
	r.run(10 * time.Millisecond)
	require.EqualValues(t, 12, r.ends[1].Counters().Transmitted, "the queue is empty again")
	require.Equal(t, *r.ends[1].Endpoint().(*Synchronous).consumed+defaultReceive,
		*r.ends[0].Endpoint().(*Synchronous).grant)
	r.run(time.Second)
	require.EqualValues(t, 12, r.ends[1].Counters().Transmitted, "nothing is granted twice")

	_, err = r.send(0, tag, 21, pattern(1000, 21))
	require.NoError(t, err)
	arrives(1)
	r.run(100 * time.Microsecond) // the user is late, but answers within the delay
	_, err = r.receive(1, tag, dst, nil)
	require.NoError(t, err)
	_, err = r.send(1, tag, 11, pattern(1000, 11))
	require.NoError(t, err)
	arrives(0)
	require.EqualValues(t, 13, r.ends[1].Counters().Transmitted, "the answer only")
	require.EqualValues(t, 12, r.accepted(0))
}

// A segment that acknowledges more than was sent is dropped.
func TestForgedGrantInAMessage(t *testing.T) {
	r := newRig(t, syncReady, microproto.Options{OptionGrantsInMessages: 1}, 1500, 1, calm).open()
	r.ends[1].Endpoint().(*Synchronous).arrivals = 7
	_, err := r.send(1, tag, 1, pattern(100, 1))
	require.NoError(t, err)
	r.run(10 * time.Millisecond)
	require.Zero(t, r.accepted(0))
	require.Positive(t, r.ends[0].Counters().Dropped)
}

// Forged grants do not make transfers accepted that were not sent.
func TestGrantOfATransferNotSent(t *testing.T) {
	r := newRig(t, syncReady, nil, 1500, 1, calm).open()
	s := r.ends[1].Endpoint().(*Synchronous)
	s.arrivals = 7
	require.NoError(t, r.Do(1, s.sendGrant))
	r.run(10 * time.Millisecond)
	require.Zero(t, r.accepted(0))
	require.Positive(t, r.ends[0].Counters().Dropped)
}
