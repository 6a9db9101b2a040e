package placement_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/placement"
)

// each returns parts of 100 points, for each process as many as counts says.
func each(counts ...int) (parts []placement.Part) {
	for process, n := range counts {
		for range n {
			parts = append(parts, placement.Part{Points: 100, Process: process})
		}
	}
	return parts
}

// count returns how many parts each process has after moves.
func count(parts []placement.Part, moves []placement.Move, processes int) []int {
	after, out := slices.Clone(parts), make([]int, processes)
	for _, m := range moves {
		after[m.Part].Process = m.To
	}
	for _, p := range after {
		out[p.Process]++
	}
	return out
}

func speeds(s ...float64) (out []placement.Process) {
	for _, v := range s {
		out = append(out, placement.Process{Speed: v})
	}
	return out
}

func TestEven(t *testing.T) {
	leaving := speeds(1, 1, 1)
	leaving[1].Leaving = true
	alone := speeds(1)
	alone[0].Leaving = true
	for name, c := range map[string]struct {
		parts     []placement.Part
		processes []placement.Process
		want      []int
	}{
		"even already":                    {each(4, 4), speeds(1, 1), []int{4, 4}},
		"speeds that differ a little":     {each(4, 4), speeds(1, 1.1), []int{4, 4}},
		"one of four five times slower":   {each(4, 4, 4, 4), speeds(1, 5, 5, 5), []int{1, 5, 5, 5}},
		"a process without parts":         {each(4, 4, 0), speeds(3, 3, 3), []int{3, 3, 2}},
		"a process of unknown speed":      {each(4, 4, 0), speeds(3, 3, 0), []int{3, 3, 2}},
		"no speed is known":               {each(6, 0, 0), speeds(0, 0, 0), []int{2, 2, 2}},
		"a process leaves":                {each(4, 4, 4), leaving, []int{6, 0, 6}},
		"nobody can take the parts":       {each(4), alone, []int{4}},
		"a part is too large to move":     {each(1, 1), speeds(1, 1.9), []int{1, 1}},
		"a part moves to a fast process":  {each(1, 1), speeds(1, 4), []int{0, 2}},
		"one part, and a faster process":  {each(1, 0), speeds(1, 2), []int{0, 1}},
		"one part, and a process like it": {each(1, 0), speeds(1, 1), []int{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			moves := placement.Even(c.parts, c.processes)
			require.Equal(t, c.want, count(c.parts, moves, len(c.processes)))
		})
	}
}

// No placement that one more move could reach has a longest time that is shorter by more than a twentieth, moves never
// lengthen it, and a leaving process keeps nothing.
func TestEvenIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "processes")
		var processes []placement.Process
		stay := 0
		for range n {
			p := placement.Process{
				Speed:   rapid.SampledFrom([]float64{0, 1, 2, 5, 9.5}).Draw(t, "speed"),
				Leaving: rapid.IntRange(0, 4).Draw(t, "leaving") == 0,
			}
			if !p.Leaving {
				stay++
			}
			processes = append(processes, p)
		}
		var parts []placement.Part
		for range rapid.IntRange(1, 20).Draw(t, "parts") {
			parts = append(parts, placement.Part{
				Points:  rapid.IntRange(1, 50).Draw(t, "points"),
				Process: rapid.IntRange(0, n-1).Draw(t, "process"),
			})
		}
		before := placement.Longest(parts, processes)
		after := slices.Clone(parts)
		for _, m := range placement.Even(parts, processes) {
			require.Equal(t, parts[m.Part].Process, m.From)
			require.NotEqual(t, m.From, m.To)
			require.False(t, processes[m.To].Leaving)
			after[m.Part].Process = m.To
		}
		now := placement.Longest(after, processes)
		require.LessOrEqual(t, now, before)
		if stay == 0 {
			return
		}
		require.False(t, math.IsInf(now, 1), "a leaving process has parts")
		for i := range after {
			for q := range processes {
				one := slices.Clone(after)
				if one[i].Process = q; processes[q].Leaving {
					continue
				}
				require.GreaterOrEqual(t, placement.Longest(one, processes), 0.95*now*(1-1e-9))
			}
		}
	})
}

func TestDecide(t *testing.T) {
	parts, slow := each(4, 4), speeds(1, 5)
	var b placement.Balancer
	require.Empty(t, b.Decide(100*time.Millisecond, 100*time.Millisecond, parts, slow), "a move would cost more than it saves")
	moves := b.Decide(time.Second, time.Second, parts, slow)
	require.Equal(t, []int{1, 7}, count(parts, moves, 2))
	b.Moved(time.Second, 200*time.Millisecond, moves)
	back := speeds(5, 1)
	after := each(1, 7)
	require.Empty(t, b.Decide(2*time.Second, 2*time.Second, after, back), "parts rest for 10 times as long as a move takes")
	moves = b.Decide(4*time.Second, 4*time.Second, after, back)
	require.NotEmpty(t, moves)
}

// Nothing moves while the speeds of some processes with parts are known and those of others are not: the first one that
// is known to be fast would get too many. A process without parts may be unknown.
func TestDecideWaitsForSpeeds(t *testing.T) {
	for name, c := range map[string]struct {
		parts []placement.Part
		speed []placement.Process
		moves bool
	}{
		"two of four known": {each(4, 4, 4, 4), speeds(1, 0, 0, 5), false},
		"all known":         {each(4, 4, 4, 4), speeds(1, 5, 5, 5), true},
		"a process joins":   {each(4, 4, 0), speeds(3, 3, 0), true},
		"none is known":     {each(4, 4, 0), speeds(0, 0, 0), true},
	} {
		var b placement.Balancer
		require.Equal(t, c.moves, len(b.Decide(time.Minute, time.Minute, c.parts, c.speed)) > 0, name)
	}
}

// Parts that move to and fro rest twice as long after each return.
func TestReturnsDoubleTheRest(t *testing.T) {
	var b placement.Balancer
	at := [][]placement.Part{each(1, 1, 0), {{Points: 100, Process: 0}, {Points: 100, Process: 2}}}
	fast := [][]placement.Process{speeds(1, 1, 3), speeds(1, 3, 1)}
	now, rests := 10*time.Second, []time.Duration{}
	b.Moved(now, 100*time.Millisecond, []placement.Move{{Part: 1, From: 1, To: 2}})
	for i := range 4 {
		moved := now
		for len(b.Decide(now, now, at[(i+1)%2], fast[(i+1)%2])) == 0 {
			now += 100 * time.Millisecond
		}
		rests = append(rests, now-moved)
		to := 1 + (i % 2)
		b.Moved(now, 100*time.Millisecond, []placement.Move{{Part: 1, From: 3 - to, To: to}})
	}
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, rests)
}

// A leaving process is emptied at once.
func TestLeavingNeedsNoGain(t *testing.T) {
	var b placement.Balancer
	p := speeds(1, 1)
	p[0].Leaving = true
	b.Moved(0, time.Hour, nil)
	require.Len(t, b.Decide(0, 0, each(3, 1), p), 3)
}

func TestMeter(t *testing.T) {
	var m placement.Meter
	add := func(points uint64, busy float64) float64 {
		d := time.Duration(busy * float64(time.Second))
		m.Add(d, points, d) // it relaxes all the time
		return m.Speed()
	}
	require.Zero(t, add(100, 1))
	require.Zero(t, add(110, 1.05), "a window is longer")
	require.Zero(t, add(200, 2))
	require.Equal(t, 100., add(300, 3), "of three windows")
	require.Equal(t, 100., add(301, 4), "one window does not count")
	require.Equal(t, 1., add(302, 5))
	require.Equal(t, 1., add(10, 0.5), "an epoch begins")
	require.Equal(t, 1., add(10, 0.7), "nothing was relaxed")
	require.Equal(t, 1., add(60, 1))
	require.Equal(t, 100., add(110, 1.5))
	require.Equal(t, 100., add(160, 2))
}

// The speed of a process that waits for others most of the time is known soon, too: in lockstep a fast one beside slow ones
// relaxes a hundredth of the time. Three windows last 1.5 s then, and longer if it relaxes a thousandth. One interruption
// changes nothing.
func TestMeterOfAProcessThatWaits(t *testing.T) {
	const interval = 100 * time.Millisecond
	for name, c := range map[string]struct {
		busy        time.Duration // of an interval
		interrupted int           // interval in which relaxing takes 20 ms longer; 0: none
		want        time.Duration
	}{
		"a hundredth of the time":  {time.Millisecond, 0, 1500 * time.Millisecond},
		"interrupted":              {time.Millisecond, 7, 1500 * time.Millisecond},
		"a thousandth of the time": {interval / 1000, 0, 3 * time.Second},
		"half of the time":         {interval / 2, 0, 600 * time.Millisecond},
	} {
		var m placement.Meter
		var now, busy time.Duration
		m.Add(now, 0, busy)
		for i := 1; m.Speed() == 0; i++ {
			now, busy = now+interval, busy+c.busy
			if i == c.interrupted {
				busy += 20 * time.Millisecond
			}
			m.Add(now, uint64(1000*i), busy)
			require.LessOrEqual(t, now, time.Minute, name)
		}
		require.Equal(t, c.want, now, name)
		require.InEpsilon(t, 1000/c.busy.Seconds(), m.Speed(), 1e-9, name)
	}
}
