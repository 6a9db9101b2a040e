package ctp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// Messages of one segment wait behind a longer one, and while Retransmit pauses segmentation; they
// arrive in the order in which they were sent.
func TestShortMessagesWait(t *testing.T) {
	const waiting = maxWaiting + 1 // one is in flight
	r := newRig(t, syncEther, microproto.Options{OptionInFlightCount: 1}, 600, 1, calm).open()
	backlog, ok := microproto.CompositeCell[int](r.ends[0], cellBacklog)
	require.True(t, ok)
	var want []uint64
	send := func(n int) {
		want = append(want, uint64(len(want)))
		_, err := r.send(0, tag, uint64(len(want)-1), pattern(n, 1))
		require.NoError(t, err)
	}
	for range waiting {
		send(8)
		require.Zero(t, *backlog)
	}
	send(8)
	require.Equal(t, 1, *backlog, "segmentation pauses")
	send(5000)
	send(8)
	require.Equal(t, 3, *backlog, "no message overtakes another")
	r.run(time.Second)
	_, labels := r.drain(1, 5000)
	require.Equal(t, want, labels)
	require.Zero(t, *backlog)
}

// A message of one segment waits for a longer one whose trains are not all sent.
func TestShortMessageWaitsForTrains(t *testing.T) {
	r := newTrainRig(t, syncEther, nil, 600, trainBytes, 1, calm).open()
	backlog, ok := microproto.CompositeCell[int](r.ends[0], cellBacklog)
	require.True(t, ok)
	for label, n := range []int{60_000, 8} {
		_, err := r.send(0, tag, uint64(label), pattern(n, 1))
		require.NoError(t, err)
		require.Equal(t, 1, *backlog)
	}
	r.run(time.Second)
	_, labels := r.drain(1, 60_000)
	require.Equal(t, []uint64{0, 1}, labels)
}

// prompter is a micro-protocol that answers the first segment of its user with a message.
type prompter struct {
	sent  bool
	reply func(x *microproto.Exec)
}

func (*prompter) Name() string { return "prompter" }

func (p *prompter) Attach(b *microproto.Binder) error {
	microproto.Bind(b, microproto.SegmentFromUser, microproto.First, func(x *microproto.Exec, _ *microproto.Message) {
		if !p.sent {
			p.sent = true
			p.reply(x)
		}
	})
	return nil
}

// A message that is sent within the chain of a segment is segmented after it.
func TestMessageOfASegmentsHandler(t *testing.T) {
	r := newRig(t, syncEther, nil, 600, 1, calm)
	p := &prompter{}
	end, err := microproto.NewComposite(microproto.Config{Name: "a", MTU: 600},
		append(build(t, syncEther, nil), p)...)
	require.NoError(t, err)
	r.ends[0] = end
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, calm)
	p.reply = func(x *microproto.Exec) {
		_, err := end.Endpoint().Send(x, tag, 2, pattern(16, 2))
		require.NoError(t, err)
	}
	r.open()
	_, err = r.send(0, tag, 1, pattern(8, 1))
	require.NoError(t, err)
	r.run(time.Second)
	got, labels := r.drain(1, 16)
	require.Equal(t, []uint64{1, 2}, labels)
	require.Equal(t, [][]byte{pattern(8, 1), pattern(16, 2)}, got)
}
