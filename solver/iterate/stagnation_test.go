package iterate

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Sweeps that are made while values are under way are no work: the solution is not out of reach because they change nothing.
func TestSweepsOfARoundTrip(t *testing.T) {
	e := &snapshotRule{verdicts: verdicts{p: &Coordination{Spent: 1 << 20, Now: time.Second}}}
	require.Equal(t, float64(1<<20), e.work(0, 1), "the round trip is unknown")
	e.p.Spent, e.p.Now, e.scheduler.newestRound = 2<<20, 2*time.Second, 10*time.Millisecond
	require.Equal(t, float64(1<<20+100*sweepsPerRound), e.work(0, 1))
	e.p.Spent, e.p.Now, e.scheduler.newestRound = 3<<20, 3*time.Second, time.Nanosecond
	require.Equal(t, float64(2<<20+100*sweepsPerRound), e.work(0, 1))
	e.scheduler.newestRound = time.Second
	require.Equal(t, float64(2<<20+100*sweepsPerRound), e.work(0, 1), "a slow path takes no work back")
}

// Neither are sweeps that are made while a neighbour sends nothing. The round trip does not show that: a process that waits
// for a processor answers at once when it has one.
func TestSweepsWithoutHalos(t *testing.T) {
	slow, fast := &Channel{Rank: 1}, &Channel{Rank: 2}
	e := &snapshotRule{verdicts: verdicts{p: &Coordination{Halos: []*Channel{slow, fast}}}}
	counted := 0.0
	for _, c := range []struct{ made, slow, fast, more float64 }{
		{100, 1, 1, 1},
		{100, 0, 50, 0},
		{100, 2, 0, 2},
		{100, 100, 200, 100},
		{0, 5, 5, 0},
	} {
		e.p.Spent, slow.received, fast.received = e.p.Spent+c.made, slow.received+uint64(c.slow), fast.received+uint64(c.fast)
		counted += c.more
		require.Equal(t, counted, e.work(0, 1))
	}
	e.p.Spent += 1000
	require.Equal(t, counted+1000, e.work(0, grown), "a residual that has grown is to end as a divergence")
}

// standing returns the verdict on a residual as a function of the work, and the work at the verdict.
func standing(s Stagnation, from, most float64, residual func(work float64) float64) (why Reason, work float64) {
	for work = from; why == Running && work < most; work += 64 {
		why, _ = s.Evaluate(Iteration(work), work, residual(work-from), 1e-6, StagnantChecks, false, 0)
	}
	return why, work
}

// A residual that has risen, and falls slowly from there, does not stand still. One that stands on a height does, and one of
// an iteration that may diverge.
func TestRiseIsNoStandstill(t *testing.T) {
	rises := func(work float64) float64 { return math.Min(1+work/3, 1e4*math.Exp(-(work-3e4)/1e5)) }
	why, work := standing(Stagnation{}, 0, 5e5, rises)
	require.Equal(t, Running, why, work)
	why, _ = standing(Stagnation{MayDiverge: true}, 0, 5e5, rises)
	require.Equal(t, Diverged, why)
	late := func(work float64) float64 { return 1 + math.Min(work, 2e5)/10 }
	why, work = standing(Stagnation{}, 0, 1e7, late)
	require.Equal(t, Stagnated, why)
	require.InDelta(t, 2e6, work, 1e4)
	why, work = standing(Stagnation{}, 0, 1e7, func(work float64) float64 { return 1 + work })
	require.Equal(t, Diverged, why)
	require.InDelta(t, 1e7, work, 1e5, "it is grown at 1e6")
}

// The standstill of a late time step is found as soon as that of the first one.
func TestStandstillInALateTimeStep(t *testing.T) {
	for _, from := range []float64{0, 1e6, 1e9} {
		why, work := standing(Stagnation{}, from, from+1e6, func(float64) float64 { return 0.5 })
		require.Equal(t, Stagnated, why)
		require.Less(t, work-from, 1.1*standstillWork)
	}
}

// A residual of amplified rounding errors, which finds small new minima by chance, lowers the gain. The run stagnates after few
// checks if the residual then is that of rounding. It stagnates at once if the gain cannot be lowered, and goes on if the
// residual is too large for amplified rounding.
func TestAmplifiedRoundingLowersTheGain(t *testing.T) {
	const fell = 10000
	const unit = kernel.UnitRoundoff
	run := func(gain, level float64, lowers bool) (why Reason, lowered, end Iteration) {
		var s Stagnation
		asked := false
		for k := Iteration(0); k < 10*fell && why == Running; k += 8 {
			residual := max(level, math.Exp(-float64(k)/500)) * (1 + 0.05*math.Sin(float64(k)))
			s.Damping = Damping{Gain: gain}
			switch {
			case lowered > 0:
				residual, s.Damping = 2*unit, Damping{Gain: 1, Damped: true}
			case lowers:
				s.Damping.Lower = func() { lowered = k }
			}
			why, asked = s.Evaluate(k, float64(k), residual, 1e-300, StagnantChecks, asked, 1)
			end = k
		}
		return why, lowered, end
	}
	why, lowered, end := run(1e4, 1e3*unit, true)
	require.Equal(t, Stagnated, why)
	require.Positive(t, lowered)
	require.Less(t, lowered, Iteration(3*fell))
	require.LessOrEqual(t, end, lowered+8*(StagnantChecks+2))
	why, _, _ = run(1e4, 1e3*unit, false)
	require.Equal(t, Stagnated, why)
	for _, gain := range []float64{0, 1, 10} {
		why, lowered, _ = run(gain, 1e3*unit, true)
		require.Equal(t, Running, why)
		require.Zero(t, lowered)
	}
}

// A factor that the user has set, and that is too slow by far, ends the run; one that is slow does not, nor does a rise at first.
func TestTooSlowAFactorStagnates(t *testing.T) {
	for sweeps, want := range map[float64]Reason{1e6: Running, 1e8: Stagnated, math.Inf(1): Stagnated} { // to the tolerance
		falls := func(work float64) float64 { return min(1+work, 1e4*math.Exp(-work/sweeps*math.Log(1e10))) }
		why, work := standing(Stagnation{Given: true}, 0, 9e5, falls)
		require.Equal(t, want, why, sweeps)
		require.Less(t, work, 9.1e5)
		if !math.IsInf(sweeps, 1) {
			why, _ = standing(Stagnation{}, 0, 9e5, falls)
			require.Equal(t, Running, why, "no factor was set")
		}
	}
}
