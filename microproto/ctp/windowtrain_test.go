package ctp

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever is lost, trains change the window as segments do that are acknowledged one by one: the
// same segments are sent in the same round trips. After a time-out they do not, since each
// acknowledgement then counts as one segment and there are fewer (RFC 3465 §2.3).
func TestTrainsMoveTheWindowAsSegmentsDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lost := rapid.SliceOfN(rapid.IntRange(1, 120), 0, 12).Draw(rt, "lost")
		initial := rapid.Int64Range(1, 10).Draw(rt, "initial window")
		segments := rapid.IntRange(1, 200).Draw(rt, "segments")
		run := func(train int) [][]int {
			f := newTrainFlights(rt, microproto.Options{OptionInitialWindow: initial}, train)
			f.lose = losing(lost...)
			f.write(segments)
			timeouts := f.timeouts()
			f.run(20 * time.Second)
			require.EqualValues(rt, 1, f.accepted(0))
			if len(*timeouts) > 0 {
				return append(f.rounds[:(*timeouts)[0]/round], nil)
			}
			return f.rounds
		}
		require.Equal(rt, run(0), run(trainBytes))
	})
}

// A window that ends within a train splits it: the first flight is one train, and so is each
// flight that its acknowledgement admits, with one acknowledgement for each.
func TestWindowSplitsTrains(t *testing.T) {
	f := newTrainFlights(t, nil, trainBytes)
	f.write(100)
	f.until(3)
	require.Equal(t, [][]int{span(1, 3), span(4, 9), span(10, 21), span(22, 45)}, f.rounds)
	require.Equal(t, []int{3, 6, 12, 24}, f.trains)
	require.EqualValues(t, 3, f.Link.Stats(1).Sent, "acknowledgements")
	require.EqualValues(t, 24, f.window())
}

// A segment in the middle of a train is lost. Each later one causes a duplicate acknowledgement,
// so that the segment is sent again after a round trip, alone, and the window is halved once. The
// rest of its train is not sent again.
func TestLossWithinATrainOfAWindow(t *testing.T) {
	f := newTrainFlights(t, nil, trainBytes)
	f.lose = losing(15)
	f.write(100)
	timeouts := f.timeouts()
	f.run(time.Second)
	require.EqualValues(t, 1, f.accepted(0))
	require.Empty(t, *timeouts)
	require.Equal(t, 2, f.copies[15])
	require.EqualValues(t, 1, *f.ends[0].Protocol("Retransmit").(*Retransmit).resent)
	require.Contains(t, f.trains, 12)
	got, _ := f.drain(1, 100*f.segment())
	require.Equal(t, [][]byte{pattern(100*f.segment(), 100)}, got)
}

// Slow start ends at the threshold however many segments an acknowledgement covers; the remaining
// ones count in congestion avoidance.
func TestTrainsEndSlowStartAtTheThreshold(t *testing.T) {
	for _, c := range []struct{ count, acks, window, counted int }{
		{2, 1, 12, 0}, {6, 3, 16, 0}, {10, 5, 20, 0}, {14, 7, 20, 4}, {14, 1, 12, 0}, {40, 20, 21, 10},
	} {
		r := Reno{}
		r.Open(ControllerStart{Unit: 1, Window: 10, Threshold: 20})
		r.Acked(Progress{Count: c.count, Acks: c.acks, Full: true})
		require.Equal(t, c.window, r.Window(), "%+v", c)
		require.Equal(t, c.counted, r.counted, "%+v", c)
	}
	c := CUBIC{}
	c.Open(ControllerStart{Unit: 1, Window: 10, Threshold: 20})
	c.Acked(Progress{Now: 1, Count: 14, Acks: 7, Full: true})
	require.Equal(t, 20, c.Window())
}

// keeper is a micro-protocol that holds trains and releases them later.
type keeper struct {
	bit  microproto.HoldBit
	held []*microproto.Message
}

func (*keeper) Name() string { return "Keeper" }
func (k *keeper) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	k.bit = b.HoldBit("Keeper")
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Late, func(x *microproto.Exec, m *microproto.Message) {
		x.Hold(m, k.bit)
		k.held = append(k.held, m)
	})
	return nil
}

// A train that another micro-protocol holds is not split. The window splits it after the release.
func TestWindowLeavesTrainsThatOthersHold(t *testing.T) {
	r := &rig{tb: t}
	var keepers [2]*keeper
	for i := range r.ends {
		keepers[i] = &keeper{}
		mps := build(t, syncInter, microproto.Options{OptionInitialWindow: 4})
		c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), MTU: 160, Train: trainBytes},
			append(mps, keepers[i])...)
		require.NoError(t, err)
		r.ends[i] = c
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], 1, mptest.Faults{Delay: way})
	r.open()
	size := 30 * *r.ends[0].Protocol("WindowCongestionControl").(*WindowCongestionControl).segment
	_, err := r.send(0, tag, 1, pattern(size, 1))
	require.NoError(t, err)
	var sent []int
	r.OnFrame = func(end int, f microproto.Frame) bool {
		if end == 0 {
			sent = append(sent, f.Count())
		}
		return true
	}
	for range 200 {
		require.NoError(t, r.Do(0, func(x *microproto.Exec) {
			k := keepers[0]
			for len(k.held) > 0 {
				x.Release(k.held[0], k.bit)
				k.held = k.held[1:]
			}
		}))
		r.run(10 * time.Millisecond)
	}
	require.EqualValues(t, 1, r.accepted(0))
	got, _ := r.drain(1, size)
	require.Equal(t, [][]byte{pattern(size, 1)}, got)
	require.NotEmpty(t, sent)
	require.NoError(t, r.Pair.Close())
	require.Zero(t, r.ends[0].Counters().Live)
}
