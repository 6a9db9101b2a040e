package richardson

import (
	"math"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// cuts returns the decision at every cut between peers with these speeds (planes per second) and planes.
func cuts(planes []int, speed []float64, sweeps iterate.Iteration) []int {
	total := 0
	for _, n := range planes {
		total += n
	}
	peer := func(r int) load {
		l := load{known: true, speed: speed[r], planes: planes[r]}
		if planes[r] > 1 {
			l.longest = float64(planes[r]) / speed[r]
		}
		return l
	}
	var out []int
	cut := 0
	for r := range len(planes) - 1 {
		cut += planes[r]
		below, above := load{known: true}, load{known: true}
		for q := range r + 1 {
			below = below.add(peer(q))
		}
		for q := len(planes) - 1; q > r; q-- {
			above = above.add(peer(q))
		}
		out = append(out, balance{planes: total, cut: cut, below: below, above: above, sweeps: sweeps}.move())
	}
	return out
}

func TestMoves(t *testing.T) {
	even := []float64{100, 100, 100, 100}
	for name, c := range map[string]struct {
		planes []int
		speed  []float64
		sweeps iterate.Iteration
		want   []int
	}{
		"even":                     {[]int{64, 64, 64, 64}, even, 1000, []int{0, 0, 0}},
		"noise":                    {[]int{64, 64, 64, 64}, []float64{100, 103, 97, 95}, 1000, []int{0, 0, 0}},
		"slow at the end":          {[]int{64, 64, 64, 64}, []float64{100, 100, 100, 20}, 1000, []int{-16, -32, -48}},
		"slow in the middle":       {[]int{64, 64, 64, 64}, []float64{100, 20, 100, 100}, 1000, []int{-16, 32, 16}},
		"at the start of a run":    {[]int{64, 64, 64, 64}, []float64{100, 100, 100, 20}, 4, []int{0, 0, 0}},
		"everybody keeps a plane":  {[]int{2, 2, 2, 2}, []float64{100, 100, 100, 1}, 1000, []int{0, -1, -1}},
		"a plane each":             {[]int{1, 1, 1, 1}, []float64{100, 100, 100, 1}, 1000, []int{0, 0, 0}},
		"does not divide":          {[]int{3, 2, 2, 2}, even, 1000, []int{0, 0, 0}},
		"as good as it can become": {[]int{80, 80, 16, 80}, []float64{100, 100, 20, 100}, 1000, []int{0, 0, 0}},
	} {
		require.Equal(t, c.want, cuts(c.planes, c.speed, c.sweeps), name)
	}
	require.Zero(
		t,
		balance{
			planes: 8,
			cut:    4,
			below:  load{known: true, speed: 1, planes: 4, longest: 4},
			above:  load{planes: 4},
			sweeps: 100,
		}.move(),
		"nothing is known of the other side",
	)
}

// For any speeds, repeated moves at all cuts leave a plane at every peer, end after finitely many, and lengthen no
// sweep.
func TestMovesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peers := rapid.IntRange(2, 9).Draw(t, "peers")
		planes, speed := make([]int, peers), make([]float64, peers)
		for r := range planes {
			planes[r] = rapid.IntRange(1, 60).Draw(t, "planes")
			speed[r] = rapid.Float64Range(1, 100).Draw(t, "speed")
		}
		longest := func() float64 {
			out := 0.0
			for r := range planes {
				out = math.Max(out, float64(planes[r])/speed[r])
			}
			return out
		}
		before := longest()
		for round := 0; ; round++ {
			require.Less(t, round, 3*peers, "it does not come to rest: %v of %v", planes, speed)
			still := true
			for r, m := range cuts(planes, speed, 1e6) {
				// As possible sees it when the cut below has moved.
				m = max(min(m, planes[r]-1), 1-planes[r+1])
				planes[r] -= m
				planes[r+1] += m
				still = still && m == 0
			}
			for _, n := range planes {
				require.Positive(t, n)
			}
			if still {
				break
			}
		}
		slowest := math.Inf(1)
		for _, v := range speed {
			slowest = math.Min(slowest, v)
		}
		require.LessOrEqual(t, longest(), math.Max(before, 0)+2/slowest)
	})
}

// TestSpeedSampler checks that only the time between a part and the next call of Next counts, as the median of three
// windows of four sweeps.
func TestSpeedSampler(t *testing.T) {
	var m speedSampler
	now := time.Duration(0)
	sweep := func(each time.Duration) {
		m.begin()
		for range 2 {
			m.requestedAt = now
			m.pendingPoints = 50
			now += each
			m.observe(now)
			now += time.Second // waiting for a neighbour
			m.observe(now)
		}
		m.end(true)
	}
	window := func(each time.Duration) {
		for range windowSweeps {
			sweep(each)
		}
	}
	window(time.Millisecond)
	require.True(t, m.updated)
	require.Zero(t, m.point(), "one window is not enough")
	window(time.Millisecond)
	window(80 * time.Millisecond) // the machine did something else
	require.InDelta(t, 20e-6, m.point(), 1e-12)
	window(10 * time.Millisecond) // now it is slow
	window(10 * time.Millisecond)
	require.InDelta(t, 200e-6, m.point(), 1e-12)

	m = speedSampler{minWindow: 10 * time.Second, now: now, windowBegan: now}
	window(time.Millisecond)
	require.False(t, m.updated, "eight seconds are not enough")
	sweep(time.Millisecond)
	require.True(t, m.updated)
	require.Equal(t, 1, m.windows)
}

// TestBackOff checks that moves that change their direction become rarer.
func TestBackOff(t *testing.T) {
	var r backOff
	require.True(t, r.expired(0, 0))
	sweeps, windows := iterate.Iteration(0), 0
	for n, up := range []bool{true, true, false, true, false} {
		times := []int{1, 1, 2, 4, 8}[n]
		r.begin(sweeps, windows, up)
		require.False(t, r.expired(sweeps+iterate.Iteration(times)*backOffSweeps-1, windows+1000))
		require.False(t, r.expired(sweeps+10000, windows+times*backOffWindows-1))
		require.True(t, r.expired(sweeps+iterate.Iteration(times)*backOffSweeps, windows+times*backOffWindows))
		sweeps, windows = sweeps+iterate.Iteration(times)*backOffSweeps, windows+times*backOffWindows
	}
}

func TestBalanceable(t *testing.T) {
	p := solvertest.Membrane([3]int{4, 4, 12}, 3)
	boxes, err := problem.Boxes([3]int{4, 4, 12}, 12)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		config problem.Config
		want   string
	}{
		"slabs": {problem.Config{Partition: solvertest.SlabsOf(t, p, 3), Scheme: iterate.Synchronous()},
			""},
		"one peer": {problem.Config{Partition: solvertest.SlabsOf(t, p, 1), Scheme: iterate.Synchronous()},
			"one peer"},
		"boxes": {problem.Config{Partition: boxes, Scheme: iterate.Synchronous()}, "slabs only"},
		"in turn": {problem.Config{Partition: solvertest.SlabsOf(t, p, 3), Scheme: iterate.Synchronous(),
			Order: problem.InTurn}, "depends on the partition"},
		"in turn, any time": {problem.Config{Partition: solvertest.SlabsOf(t, p, 3), Scheme: iterate.Asynchronous(),
			Order: problem.InTurn}, ""},
		"schwarz": {problem.Config{Partition: solvertest.SlabsOf(t, p, 3), Scheme: iterate.Synchronous(),
			Method: problem.MethodConfig{Name: problem.Schwarz}}, "richardson only"},
	} {
		c.config.Problem = p
		err := Balanceable(&c.config)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, ErrBalance, name)
		require.ErrorContains(t, err, c.want, name)
	}
	c := problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 3)}
	require.Equal(t, 8, MostPlanes(&c, 1))
	c.Partition = solvertest.SlabsOf(t, p, 2)
	require.Equal(t, 11, MostPlanes(&c, 1))
}
