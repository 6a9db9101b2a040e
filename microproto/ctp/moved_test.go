package ctp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// pausesOf returns the longest pause of the receiver at each of some moves of the route. Before each nothing arrives for the
// time of the outage. The session is inside a cluster and is given more than its cable carries, which has a short queue.
func pausesOf(t *testing.T, queue int, outage time.Duration, moves int) (out []time.Duration) {
	const rate, offered, size = 2.5e6, 4e6, 4096
	o := microproto.Options{OptionRTOMax: int64(time.Second), OptionRTOFloor: int64(2 * time.Millisecond)}
	r := newRig(t, syncEther, o, 1464, 1, mptest.Faults{Delay: 20 * time.Microsecond, Rate: rate, Capacity: queue})
	lost := false
	r.OnFrame = func(int, microproto.Frame) bool { return !lost }
	r.open()
	data, dst := pattern(size, 1), make([]byte, size)
	sent, last, pause := uint64(0), microproto.Instant(0), time.Duration(0)
	exchange := func(until time.Duration) {
		for ; time.Duration(r.Clock.Now()) < until; r.rest(100 * time.Microsecond) {
			for sent < uint64(offered*time.Duration(r.Clock.Now()).Seconds()/size) {
				if _, err := r.send(0, tag, sent, data); err != nil {
					break
				}
				sent++
			}
			for {
				if _, err := r.receive(1, tag, dst, nil); err != nil {
					break
				}
				last = r.Clock.Now()
			}
			pause = max(pause, r.Clock.Now().Sub(last))
		}
	}
	for i := range moves {
		at := time.Duration(i+1) * 2 * time.Second
		exchange(at)
		pause, lost = 0, true
		exchange(at + outage)
		lost = false
		for end := range r.ends {
			r.do(end, func(x *microproto.Exec) { microproto.Raise(x, microproto.PathMoved, struct{}{}) })
		}
		exchange(at + 1900*time.Millisecond)
		out = append(out, pause)
	}
	return out
}

// When the link has left a cable, the time-outs that passed on it do not count: if what is sent again is lost, too, the next
// time-out is that of the measured round trip, and not up to a second later.
func TestMoveEndsTheBackoff(t *testing.T) {
	for _, queue := range []int{22, 45} {
		for _, outage := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond} {
			pauses := pausesOf(t, queue, outage, 5)
			t.Log(queue, outage, pauses)
			for _, p := range pauses {
				require.Less(t, p, outage+30*time.Millisecond)
			}
		}
	}
}
