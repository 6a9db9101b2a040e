package ctp

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
)

// columnChange is traffic both ways, in an order that both ends know, over compositions
// that follow one another while messages are in flight.
type columnChange struct {
	*rig
	first [2]int // messages of an end that arrived before the present composition
	next  [2]int // message that an end sends next
	got   [2]int // messages that an end has received
	open  bool
}

const changeMessages = 60

func changeSize(k int) int { return k * 997 % 3000 }

// change makes the next composition of both ends and hands over.
func (c *columnChange) change(names []string, train int, seed uint64) {
	old := c.rig
	f := mptest.Faults{Delay: 5 * time.Millisecond, Loss: 0.02, Reorder: 0.02}
	c.rig = newTrainRig(old.tb, names, microproto.Options{OptionRTOFloor: int64(50 * time.Millisecond)}, 500, train,
		seed, f)
	var states [2]microproto.HandoverState
	for end := range 2 {
		if !c.open {
			continue
		}
		from := old.ends[end].Endpoint().(microproto.Migratable)
		c.first[1-end] += int(from.Arrivals())
		c.next[1-end] = c.first[1-end]
		from.Export(&states[end])
		require.NoError(c.tb, c.ends[end].Endpoint().(microproto.Migratable).Import(&states[end]))
	}
	c.rig.open()
	for end := range 2 {
		if c.open {
			c.ends[end].Endpoint().(microproto.Migratable).SetCredit(states[1-end].Stored, states[1-end].Credit)
		}
	}
	c.open = true
}

// turn sends what the credit admits, receives what has come and lets d pass.
func (c *columnChange) turn(d time.Duration) {
	for end := range 2 {
		for c.next[end] < changeMessages {
			k := c.next[end]
			if _, err := c.send(end, tag, uint64(k), pattern(changeSize(k), uint64(k))); err != nil {
				require.ErrorIs(c.tb, err, microproto.ErrBusy)
				break
			}
			c.next[end]++
		}
		data, labels := c.drain(end, 3000)
		for i := range data {
			k := c.got[end]
			require.EqualValues(c.tb, k, labels[i])
			require.Equal(c.tb, pattern(changeSize(k), uint64(k)), data[i])
			c.got[end]++
		}
	}
	c.rest(d)
}

// Whatever the columns, every message arrives once and in order when the composition
// changes while messages are in flight: those that have not arrived are sent again.
func TestMessagesSurviveChangesOfColumn(t *testing.T) {
	for seed := range uint64(20) {
		c := &columnChange{rig: &rig{tb: t}}
		for k, names := range [][]string{syncEther, syncInter, syncCubic, syncInter, syncEther, syncReady, syncCubic} {
			train := []int{0, trainBytes}[(seed+uint64(k))%2]
			if c.change(names, train, 100*seed+uint64(k)); len(names) == len(syncReady) {
				c.Link.SetFaults(mptest.Faults{Delay: time.Millisecond}) // a reliable link
			}
			for range 1 + seed%5 {
				c.turn(3 * time.Millisecond)
			}
		}
		for c.got != [2]int{changeMessages, changeMessages} {
			require.Less(t, time.Duration(c.Clock.Now()), time.Minute, "received %v", c.got)
			c.turn(20 * time.Millisecond)
		}
		require.NoError(t, c.Pair.Close())
	}
}
