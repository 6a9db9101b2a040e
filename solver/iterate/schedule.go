package iterate

import "math"

// CheckSchedule says when a residual is worth measuring: a sweep that measures costs
// several that do not. Where CheckEvery was given, every so many sweeps; otherwise
// halfway to where a straight line through the logarithms of the last two norms
// meets the target, never nearer than the rhythm's interval, nor farther than
// farthest of them. So a run is measured a few times early and often near its end,
// and overshoots by an interval at most if convergence is linear. It depends on
// exact norms alone, so it is the same on every partition.
type CheckSchedule struct {
	have bool
	at   Iteration
	norm float64
}

const maxIntervals = 16

// Next is when to measure again after iterate k had this norm.
func (s *CheckSchedule) Next(r CheckInterval, k Iteration, norm, target float64) Iteration {
	old := *s
	*s = CheckSchedule{have: true, at: k, norm: norm}
	if r.Fixed {
		return k + r.Every
	}
	gap := Iteration(1)
	switch {
	case norm <= target:
		gap = 4
	case old.have && norm < old.norm && target > 0:
		slope := math.Log(old.norm/norm) / float64(k-old.at)
		left := math.Log(norm/target) / slope / 2 / float64(r.Every)
		gap = Iteration(math.Max(1, math.Min(left, maxIntervals)))
	case old.have:
		gap = 4
	}
	// Not farther than the run is old: early slopes promise too much.
	return k + r.Every*min(gap, max(1, k/r.Every))
}
