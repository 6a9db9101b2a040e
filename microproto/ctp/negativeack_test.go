package ctp

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

var (
	syncEtherNamed = append(slices.Clone(syncEther), "NegativeAck")
	syncInterNamed = append(slices.Clone(syncInter), "NegativeAck")
)

func TestNegativeAckConformance(t *testing.T) {
	for _, names := range [][]string{syncEtherNamed, syncInterNamed} {
		mptest.Conform(t, mptest.Subject{
			Protocol: "NegativeAck", Reliable: true, Violations: []error{errCoalesced},
			Messages: conformMessages(),
			New:      func(int) []microproto.MicroProtocol { return build(t, names, nil) },
		})
	}
}

// loseData drops the data frames of end 0 with these transmission numbers, from 1.
func (r *rig) loseData(lost ...int) *int {
	n, at := new(int), offsetOf(r.ends[0], attrFlags)
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end != 0 || f.Data[at]&flagData == 0 {
			return true
		}
		*n++
		return !slices.Contains(lost, *n)
	}
	return n
}

// A gap is repaired one round trip after the next segment has arrived, even if only one has.
// Without the row it takes a time-out.
func TestReportedGapIsSentAtOnce(t *testing.T) {
	const way = 50 * time.Microsecond
	for _, first := range []uint32{1, math.MaxUint32 - 1} {
		for _, c := range []struct {
			names []string
			lost  []int
			after time.Duration
			sent  int
		}{
			{syncEtherNamed, []int{4}, 3 * way, 6},
			{syncEtherNamed, []int{2, 3, 4}, 3 * way, 8},
			// Without the row it is sent again a quarter of a round trip after the segment behind it.
			{syncEther, []int{4}, 4 * way, 6},
			// A retransmitted segment is not reported again.
			{syncEtherNamed, []int{4, 6}, 2*time.Millisecond + 3*way, 7},
		} {
			r := newRig(t, c.names, microproto.Options{OptionFirst: int64(first)}, 150, 1,
				mptest.Faults{Delay: way}).open()
			n := r.loseData(c.lost...)
			length := 5 * (r.ends[0].MaxPayload() &^ 7)
			_, err := r.send(0, tag, 1, pattern(length, 1))
			require.NoError(t, err)
			came := func() bool { return r.ends[1].Endpoint().Arrivals() == 1 }
			ok, err := r.RunUntil(time.Second, came)
			require.NoError(t, err)
			require.True(t, ok)
			require.LessOrEqual(t, time.Duration(r.Clock.Now()), c.after, "%v, lost %v", c.names[len(c.names)-1],
				c.lost)
			require.Greater(t, time.Duration(r.Clock.Now()), c.after-2*way)
			r.run(time.Second)
			require.Equal(t, c.sent, *n, "%v, lost %v: a segment that has arrived is not sent twice",
				c.names[len(c.names)-1], c.lost)
			got, _ := r.drain(1, length)
			require.True(t, bytes.Equal(pattern(length, 1), got[0]))
		}
	}
}

// Every frame is duplicated, reports included: a reported segment is sent again once.
func TestReportsReceivedTwice(t *testing.T) {
	r := newRig(t, syncEtherNamed, nil, 150, 1, mptest.Faults{Delay: 50 * time.Microsecond, Duplicate: 1}).open()
	n := r.loseData(2, 4)
	_, err := r.send(0, tag, 1, pattern(5*(r.ends[0].MaxPayload()&^7), 1))
	require.NoError(t, err)
	r.run(time.Second)
	require.EqualValues(t, 1, r.accepted(0))
	require.Equal(t, 7, *n)
}

// A frame that reports too many segments is dropped. Reports of segments not sent, or already
// received, change nothing.
func TestInvalidReports(t *testing.T) {
	r := newRig(t, syncEtherNamed, nil, 150, 1, calm).open()
	_, err := r.send(0, tag, 1, pattern(300, 1))
	require.NoError(t, err)
	r.run(time.Second)
	countAt, firstAt := offsetOf(r.ends[0], "negative.count"), offsetOf(r.ends[0], "negative.first")
	sent := r.Link.Stats(0).Sent
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end == 1 {
			f.Data[countAt], f.Data[firstAt+3] = 32, 1
		}
		return true
	}
	_, err = r.send(1, tag, 1, pattern(50, 1))
	require.NoError(t, err)
	r.run(time.Second)
	require.Zero(t, *r.ends[0].Protocol("Retransmit").(*Retransmit).resent)
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end == 1 {
			f.Data[countAt] = 33
		}
		return true
	}
	_, err = r.send(1, tag, 2, pattern(50, 1))
	require.NoError(t, err)
	r.run(10 * time.Millisecond)
	require.Positive(t, r.drops(0, "malformed acknowledgement"))
	require.Less(t, r.Link.Stats(0).Sent-sent, uint64(4))
}
