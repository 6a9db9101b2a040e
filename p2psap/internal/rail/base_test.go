package rail

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// beats passes heartbeats to an end, one a second from the first second on. Each entry has the frames that were sent
// before it, and those that have arrived by it.
func beats(s *side, beats [][2]uint64) (probes []int) {
	for k, b := range beats {
		now := microproto.Instant(time.Duration(k+1) * time.Second)
		if b[0] > 0 {
			s.Base.Sent(now.Add(-time.Second + 1))
		}
		probes = append(probes, s.HeardBase(now, time.Second, 0, b[0], b[1]))
	}
	return probes
}

// The base path goes down when enough frames were sent in vain for long enough, and comes up with the first that
// arrives.
func TestBaseIsJudgedByHeartbeats(t *testing.T) {
	for what, c := range map[string]struct {
		beats  [][2]uint64
		probes []int
		down   bool
		says   []control.Stage
	}{
		"nothing is sent":   {[][2]uint64{{0, 0}, {0, 0}, {0, 0}, {0, 0}}, []int{0, 0, 0, 0}, false, nil},
		"all arrives":       {[][2]uint64{{10, 10}, {20, 20}, {30, 30}, {40, 40}}, []int{0, 0, 0, 0}, false, nil},
		"most is lost":      {[][2]uint64{{10, 1}, {20, 2}, {30, 3}, {40, 4}}, []int{0, 0, 0, 0}, false, nil},
		"too few are sent":  {[][2]uint64{{1, 0}, {3, 0}, {5, 0}, {7, 0}}, []int{4, 4, 4, 4}, false, nil},
		"nothing arrives":   {[][2]uint64{{4, 0}, {20, 0}, {30, 0}}, []int{4, 4, 4}, true, []control.Stage{control.Down}},
		"it stops":          {[][2]uint64{{9, 9}, {20, 9}, {30, 9}}, []int{0, 4, 4}, true, []control.Stage{control.Down}},
		"a pause":           {[][2]uint64{{9, 9}, {20, 9}, {30, 12}}, []int{0, 4, 0}, false, nil},
		"it works again":    {[][2]uint64{{9, 9}, {20, 9}, {30, 9}, {40, 10}}, []int{0, 4, 4, 0}, false, []control.Stage{control.Down, control.Ready}},
		"a peer that lies":  {[][2]uint64{{9, math.MaxUint64}, {20, 0}, {30, 7}, {40, 1 << 63}}, []int{0, 0, 0, 0}, false, nil},
		"counters that end": {[][2]uint64{{math.MaxUint64, 0}, {math.MaxUint64, 0}}, []int{4, 4}, true, []control.Stage{control.Down}},
	} {
		t.Run(what, func(t *testing.T) {
			sides, _ := newSides()
			s := sides[0]
			require.Equal(t, c.probes, beats(s, c.beats))
			require.Equal(t, c.down, s.Base.Down(), s.Base.Reason)
			var says []control.Stage
			for _, m := range s.sent {
				says = append(says, m.Stage)
			}
			require.Equal(t, c.says, says)
		})
	}
}

// A process that was stopped, or a network that carried nothing at all, leaves frames without an answer: that does not
// tell of the path.
func TestInterruptionIsNoJudgement(t *testing.T) {
	sides, _ := newSides()
	s := sides[0]
	at := func(seconds float64) microproto.Instant { return microproto.Instant(seconds * float64(time.Second)) }
	s.HeardBase(at(1), time.Second, 0, 10, 10)
	s.Base.Sent(at(1.1))
	s.HeardBase(at(9), time.Second, 0, 100, 10) // the first heartbeat for 8 s
	require.False(t, s.Base.Down())
	s.HeardBase(at(9.5), time.Second, 0, 110, 10)
	require.False(t, s.Base.Down())
	s.HeardBase(at(10.6), time.Second, 0, 120, 10)
	require.True(t, s.Base.Down())
}

// A path that stands by connects when the base path goes down, at both ends, whichever of them finds so. Sessions of
// both modes then prefer it, and the base path once that has been up for a while.
func TestStandby(t *testing.T) {
	for finder := range 2 {
		sides, rails := newSides()
		networks := []path.Network{path.InfiniBand}
		for i, s := range sides {
			s.rail.Standby, s.rail.Synchronous = true, true
			s.Begin(1, rails[i], networks, networks)
			require.True(t, s.Settled())
		}
		require.Empty(t, append(sides[0].sent, sides[1].sent...))
		now := run(t, 1, sides)
		s := sides[finder]
		s.Base.flow = flow{since: now, heard: now.Add(time.Second)}
		s.HeardBase(now.Add(2*time.Second), time.Second, 0, 100, 0)
		now = run(t, now.Add(2*time.Second), sides)
		modes := []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous}
		for i, e := range sides {
			require.True(t, e.List[0].Up())
			require.Equal(t, []int{1, 0, 1}, []int{e.baseDowns, e.baseUps, e.ups})
			require.Equal(t, i != finder, len(e.Base.here) == 0)
			for _, m := range modes {
				require.Equal(t, e.List[0], e.Best(m, true))
				require.True(t, e.Better(e.List[0], nil, m))
			}
		}
		steady := sides[0].steady
		s.HeardBase(now, time.Second, 0, 101, 1)
		sides[finder].deliver(t, now, sides[1-finder])
		for _, m := range modes {
			require.Nil(t, sides[0].Best(m, true))
			require.False(t, sides[0].Better(nil, sides[0].List[0], m), "not yet")
		}
		run(t, now, sides)
		require.Equal(t, steady+1, sides[0].steady)
		for _, m := range modes {
			require.True(t, sides[0].Better(nil, sides[0].List[0], m))
		}
	}
}

// Whatever the other end reports, the two ends agree on the state once their messages have arrived, and it is that
// which the last heartbeats show.
func TestEndsAgreeOnBase(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sides, _ := newSides()
		var sent, arrived [2]uint64
		now := microproto.Instant(1)
		exchange := func() {
			for i, s := range sides {
				for len(s.sent) > 0 {
					s.deliver(t, now, sides[1-i])
				}
			}
		}
		for range rapid.IntRange(0, 40).Draw(r, "beats") {
			i := rapid.IntRange(0, 1).Draw(r, "end")
			sent[i] += rapid.Uint64Range(0, 20).Draw(r, "sent")
			arrived[i] = rapid.Uint64Range(arrived[i], sent[i]).Draw(r, "arrived")
			sides[i].Base.Sent(now)
			now = now.Add(time.Duration(rapid.Int64Range(1, int64(2*time.Second)).Draw(r, "pause")))
			sides[i].HeardBase(now, time.Second, 0, sent[i], arrived[i])
			if rapid.Bool().Draw(r, "exchange") {
				exchange()
			}
		}
		exchange()
		a, b := &sides[0].Base, &sides[1].Base
		require.Equal(t, a.Down(), b.Down())
		require.Equal(t, a.Down(), a.here != "" || b.here != "")
		for i, s := range sides {
			sides[i].Base.Sent(now)
			now = now.Add(time.Second)
			s.HeardBase(now, time.Second, 0, sent[i]+1, arrived[i]+1)
		}
		exchange()
		require.False(t, a.Down() || b.Down())
	})
}
