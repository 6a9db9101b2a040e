package iterate

import "math"

// CheckSchedule determines when the residual is measured, because a sweep that measures costs as much as
// several that do not. If CheckEvery was set, the interval is fixed. Otherwise a line through the logarithms
// of the last two norms predicts the iterate that meets the target, and the next measurement is
// halfway, between 1 and maxIntervals check intervals ahead. So a run is measured a few times early and often
// near its end, and exceeds the necessary sweeps by at most one interval if convergence is linear. The
// schedule depends on exact norms only, so it is the same for every partition.
type CheckSchedule struct {
	have bool
	at   Iteration
	norm float64
}

// Fields implements State.
func (s *CheckSchedule) Fields(visit func(field any)) {
	visit(&s.have)
	visit(&s.at)
	visit(&s.norm)
}

const maxIntervals = 16

// Next returns the iterate to measure after iterate k, whose residual has the given norm.
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
	// The step is at most k: early slopes are too optimistic.
	return k + r.Every*min(gap, max(1, k/r.Every))
}
