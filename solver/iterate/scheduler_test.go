package iterate

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestForecastOfAStraightLine checks that any two levels that are far enough apart predict the end of a residual that
// falls linearly in its logarithm.
func TestForecastOfAStraightLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		meets := time.Duration(rapid.Int64Range(1e6, 1e12).Draw(t, "meets"))
		slope := rapid.Float64Range(1e-9, 1e-3).Draw(t, "slope")
		var f forecast
		_, known := f.predict()
		require.False(t, known)
		at := time.Duration(0)
		for range rapid.IntRange(2, 20).Draw(t, "looks") {
			f.record(at, slope*float64(meets-at), rapid.SampledFrom([]float64{0, anchorDrop}).Draw(t, "drop"))
			at += time.Duration(rapid.Int64Range(1e3, 1e10).Draw(t, "gap"))
		}
		got, known := f.predict()
		if f.level > 0 && float64(meets-f.at) >= float64(maxForecast) {
			require.False(t, known)
			return
		}
		require.True(t, known)
		if f.level > 0 {
			require.InEpsilon(t, float64(meets), float64(got), 1e-6)
		} else {
			require.Equal(t, f.at, got, "it is met already")
		}
	})
}

// TestForecastWithoutAFall checks that a constant residual predicts no end, and that one that is not finite is
// examined at once.
func TestForecastWithoutAFall(t *testing.T) {
	var f forecast
	for i, level := range []float64{3, 3, 4, 5} {
		f.record(time.Duration(i)*time.Second, level, anchorDrop)
		_, known := f.predict()
		require.False(t, known, "level %v", level)
	}
	f.record(5*time.Second, 4, anchorDrop)
	at, known := f.predict()
	require.True(t, known)
	require.InDelta(t, 13*time.Second, at, 10, "the fall counts from the rise")
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		f.record(6*time.Second, levelOf(bad, 1), anchorDrop)
		at, known = f.predict()
		require.True(t, known)
		require.Equal(t, 6*time.Second, at)
	}
	require.Equal(t, math.Inf(-1), levelOf(0, 0))
	require.Equal(t, math.Inf(1), levelOf(1, 0))
}

// TestSnapshotScheduler checks that a snapshot begins one round trip before the predicted end. After a rejected
// snapshot the next ones approach the end that exact residuals predict; without a prediction the back-off grows.
func TestSnapshotScheduler(t *testing.T) {
	var s snapshotScheduler
	s.exact.record(0, 10, 0)
	s.recordEstimate(0, 10, 2*time.Second)
	s.recordEstimate(10*time.Second, 5, 2*time.Second) // 0 at 20 s
	require.False(t, s.due(17*time.Second, 7))
	require.InDelta(t, 3, s.remaining(17*time.Second), 1e-6)
	require.True(t, s.due(18*time.Second, 7))
	s.begin(18*time.Second, 7)
	require.False(t, s.due(21*time.Second, 7), "nobody has done anything since")
	s.rejected(20*time.Second, 4, false) // 10 at 0, 4 at 18 s: 0 at 30 s
	require.Equal(t, 2*time.Second, s.roundTrip)
	require.InDelta(t, 10, s.remaining(20*time.Second), 1e-6)
	require.True(t, s.due(20*time.Second, 8), "the first may be followed by another one at once")
	s.begin(20*time.Second, 8)
	s.rejected(22*time.Second, 4, false) // it does not fall
	rests := []time.Duration{}
	now := 22 * time.Second
	for range 9 {
		rests = append(rests, s.nextAt-now)
		now = s.nextAt
		s.begin(now, 8)
		now += 2 * time.Second
		s.rejected(now, 4, false)
	}
	require.IsIncreasing(t, rests[:5])
	require.Equal(t, maxBackOffRounds*s.roundTrip, rests[8])
	s.rejected(now, 1, true)
	require.Equal(t, now+s.roundTrip, s.nextAt, "a void snapshot says nothing")
}

// TestSnapshotAfterThePathHasBecomeFaster checks that a slow snapshot delays the next one by few round trips of the
// present path only.
func TestSnapshotAfterThePathHasBecomeFaster(t *testing.T) {
	var s snapshotScheduler
	s.exact.record(0, 10, 0)
	s.recordEstimate(0, 10, time.Second)
	s.begin(time.Second, 1)
	s.rejected(6*time.Second, 9, false) // 0 at 10 s: halfway is in the past
	s.begin(6*time.Second, 2)
	s.rejected(11*time.Second, 8.9, false)
	require.Equal(t, 16*time.Second, s.nextAt)
	s.recordEstimate(12*time.Second, -1, 20*time.Millisecond)
	require.False(t, s.due(12200*time.Millisecond, 3))
	require.True(t, s.due(12300*time.Millisecond, 3), "64 round trips after the verdict")
	s.recordEstimate(12400*time.Millisecond, -1, time.Second)
	require.False(t, s.due(12500*time.Millisecond, 3), "slow again")
}

// A peer measures at least twice per round trip or eight times while the age of the run grows by the factor e, and
// four times per round trip near the end.
func TestPace(t *testing.T) {
	var p samplingInterval
	require.Equal(t, Iteration(1), p.next(0, 0, 0))
	require.Equal(t, Iteration(9), p.next(4*time.Second, 4, 0), "no round is known")
	require.Equal(t, Iteration(18), p.next(8*time.Second, 8, 20*time.Second))
	require.Equal(t, Iteration(900), p.next(800*time.Second, 800, 20*time.Second))
	p.receive(800*time.Second, 60)
	require.InDelta(t, 50, p.remaining(810*time.Second), 1e-9)
	require.Equal(t, Iteration(830), p.next(800*time.Second, 800, 20*time.Second))
	require.Equal(t, Iteration(860), p.next(855*time.Second, 855, 20*time.Second), "four times a round")
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1, 1e300} {
		p.receive(time.Second, bad)
		require.Equal(t, math.Inf(1), p.remaining(0))
	}
	require.Zero(t, validSeconds(math.NaN()))
	require.Zero(t, validSeconds(-1))
	require.Zero(t, validSeconds(1e300))
	require.Equal(t, time.Second, validSeconds(1))
}
