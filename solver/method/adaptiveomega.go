package method

import "math"

// AdaptiveOmega selects the relaxation factor ω of red-black SOR by the observed convergence rate. The
// matrix A is consistently ordered, so the largest eigenvalue λ of a sweep and the spectral radius ρ of
// the Jacobi iteration satisfy
//
//	(λ + ω − 1)² = λ·ω²·ρ².
//
// A rate observed below the optimal ω therefore determines ρ, and ρ determines the optimal ω, 2/(1 + √(1 − ρ²))
// (Young, Iterative Solution of Large Linear Systems, 1971, chapters 5 and 6; Hageman and Young, Applied Iterative
// Methods, 1981, chapter 9). With obstacles, ρ belongs to the points off contact, whose set settles during the
// iteration. ρ is therefore estimated repeatedly, from below, and ω increases only, unless the rate becomes worse.
// Above the optimal ω the rate is ω − 1 for any ρ and gives no information.
//
// Young's relation holds for real eigenvalues of the Jacobi iteration, and SOR converges for every ω below 2, where A is
// symmetric or becomes so by a diagonal scaling. For other matrices ω has a limit (see StableOmega) and a guard: where the
// residual grows, or has no new minimum for several windows, ω and its limit are moved towards 1. This happens only a few
// times before ω is 1. Then the sweeps are those of Gauss–Seidel, which converges for every M-matrix.
//
// A factor near 2 damps errors of every frequency slowly, also those that rounding makes at every sweep: their residual can
// exceed that of Gauss–Seidel sweeps a thousand times. Damp removes them.
//
// AdaptiveOmega depends on its inputs alone: peers that pass exact norms at the same sweeps get the same ω.
type AdaptiveOmega struct {
	omega         float64
	fixed         bool
	lastSweep     int     // sweep of the last observation
	lastNorm      float64 // norm of the last observation
	hasLast       bool
	rate          float64 // rate between the last two observations with this ω, or 0
	previousOmega float64 // ω before the last change
	previousRate  float64 // rate with previousOmega, or 0 if ω was not changed
	worseCount    int     // consecutive observations with a worse rate
	keepUntil     int     // sweep before which ω does not increase again, after it returned to the previous one; 0: it did not

	undamped  float64 // the factor after the sweeps that Damp began; 0: there are none
	dampUntil int

	limit    float64 // of ω; 0: none, and no guard
	scalable bool    // a diagonal scaling is expected to make A symmetric
	smallest float64 // smallest norm since the guard began to watch this ω, or 0
	windows  int     // observations since then without a smaller one
}

const (
	// minWindow is the least number of sweeps between two observations, in units of 1/(2 − ω), the number of
	// sweeps over which SOR damps an error.
	minWindow = 0.7
	// rateTolerance bounds the relative difference of 1 − λ between two windows of a settled rate.
	rateTolerance = 0.15
	// optimumMargin is the part of 2 − ω by which the rate must exceed ω − 1 to show that ω is below its optimum.
	optimumMargin = 0.15
	// growthBound and windowBound bound the growth of the residual and the number of windows without a new minimum
	// before the guard lowers ω. They are larger where A is expected to become symmetric by a diagonal scaling, since the
	// residual may grow by the condition of the scaling there before it falls, and where the limit exceeds weakLimit: A is
	// nearly symmetric, and a change of ω or of the method lets the residual grow where the diffusion jumps.
	growthBound       = 10
	windowBound       = 8
	scaledGrowthBound = 1e10
	scaledWindowBound = 256
	weakLimit         = 1.9
	// leastExcess is the least ω − 1 to which the guard lowers ω. Below it, ω becomes 1.
	leastExcess = 0.05
	// leastDamping is the least number of sweeps with ω = 1 that Damp begins, enough for several observations.
	leastDamping = 256
)

// NewAdaptiveOmega returns an estimator that begins with omega and keeps it if fixed.
func NewAdaptiveOmega(omega float64, fixed bool) AdaptiveOmega {
	return AdaptiveOmega{omega: omega, fixed: fixed}
}

// NewGuardedOmega returns an estimator for a matrix that is not symmetric. It begins with omega or, if that is smaller,
// with limit, which ω does not exceed. limit and scalable are those of StableOmega.
func NewGuardedOmega(omega, limit float64, scalable bool) AdaptiveOmega {
	return AdaptiveOmega{omega: min(omega, limit), limit: limit, scalable: scalable}
}

// Limit informs an estimator of a fixed ω of StableOmega.
func (f *AdaptiveOmega) Limit(limit float64, scalable bool) { f.limit, f.scalable = limit, scalable }

// Unstable reports whether a fixed ω exceeds its limit. Obstacles may bound such an iteration, which then cycles without
// end.
func (f *AdaptiveOmega) Unstable() bool {
	return f.fixed && f.limit > 0 && !f.scalable && f.omega > f.limit
}

// Omega returns the current factor.
func (f *AdaptiveOmega) Omega() float64 { return f.omega }

// Undamped returns the factor that is in use but for the sweeps that Damp began.
func (f *AdaptiveOmega) Undamped() float64 {
	if f.Damped() {
		return f.undamped
	}
	return f.omega
}

// Damped reports whether the present sweeps are those that Damp began.
func (f *AdaptiveOmega) Damped() bool { return f.undamped != 0 }

// CanDamp reports whether Damp has an effect.
func (f *AdaptiveOmega) CanDamp() bool { return !f.fixed && f.omega > 1 && !f.Damped() }

// Damp sets ω to 1 for an eighth of the sweeps so far, since nothing but amplified rounding errors is left in the residual.
func (f *AdaptiveOmega) Damp(sweep int) {
	if f.CanDamp() {
		f.undamped, f.omega, f.dampUntil = f.omega, 1, sweep+max(leastDamping, sweep/8)
	}
}

// Gain returns the bound of the factor by which sweeps amplify rounding errors: the number in which they damp an error.
func (f *AdaptiveOmega) Gain() float64 { return 1 / min(1, 2-f.omega) }

// Fields implements iterate.State.
func (f *AdaptiveOmega) Fields(visit func(field any)) {
	for _, v := range []*float64{&f.omega, &f.lastNorm, &f.rate, &f.previousOmega, &f.previousRate,
		&f.undamped, &f.limit, &f.smallest} {
		visit(v)
	}
	visit(&f.fixed)
	visit(&f.hasLast)
	visit(&f.scalable)
	visit(&f.lastSweep)
	visit(&f.worseCount)
	visit(&f.windows)
	visit(&f.keepUntil)
	visit(&f.dampUntil)
}

// Adopt goes on with the state of an earlier run of the same problem, unless the user has set the factor of one of them.
func (f *AdaptiveOmega) Adopt(e *AdaptiveOmega) {
	if valid := func(omega float64) bool { return omega > 0 && omega < 2 }; !f.fixed && !e.fixed && valid(e.omega) &&
		valid(e.Undamped()) {
		*f = *e
	}
}

// Forget restarts the observation, because the values or the system were changed.
func (f *AdaptiveOmega) Forget() {
	f.omega, f.undamped = f.Undamped(), 0
	f.hasLast = false
	f.rate = 0
	f.worseCount = 0
	f.watch()
}

// Resume is Forget after another method has changed the values: the residual grows at first, which does not show that the
// factor before was better.
func (f *AdaptiveOmega) Resume() {
	f.previousRate = 0
	f.Forget()
}

// watch restarts the guard.
func (f *AdaptiveOmega) watch() { f.smallest, f.windows = 0, 0 }

// Observe records the norm ‖r‖₂ after that many sweeps, and may change ω.
func (f *AdaptiveOmega) Observe(sweep int, norm float64) {
	if f.fixed || !(norm > 0) || math.IsInf(norm, 1) {
		return
	}
	if f.Damped() {
		if sweep >= f.dampUntil {
			f.Resume()
		}
		return
	}
	if f.limit > 0 && f.grows(norm) {
		f.lower()
		return
	}
	if !f.hasLast || sweep < f.lastSweep {
		f.hasLast = true
		f.lastSweep, f.lastNorm = sweep, norm
		return
	}
	window := float64(sweep - f.lastSweep)
	if window*(2-f.omega) < minWindow || window < 4 {
		return
	}
	rate := math.Pow(norm/f.lastNorm, 1/window)
	last := f.rate
	f.rate = rate
	f.windows++
	f.lastSweep, f.lastNorm = sweep, norm
	switch {
	case f.previousRate > 0 && rate > f.previousRate || rate >= 1 && f.keepUntil == 0:
		if f.worseCount++; f.worseCount >= 3 {
			f.decrease(sweep)
		}
		return
	case sweep >= f.keepUntil && last != 0 && math.Abs(rate-last) <= rateTolerance*(1-rate):
		f.increase(rate)
	}
	f.worseCount = 0
}

// increase sets the factor that is optimal according to the rate, if it is larger.
func (f *AdaptiveOmega) increase(rate float64) {
	if rate < f.omega-1+optimumMargin*(2-f.omega) {
		return
	}
	rho := (rate + f.omega - 1) / (f.omega * math.Sqrt(rate))
	best := OptimalOmega(rho)
	if f.limit > 0 {
		// Before the errors of a matrix that is not normal settle, the rate is misleading: 2 − ω at most halves.
		best = min(best, f.limit, 1+f.omega/2)
	}
	if rho < 1 && best > f.omega {
		f.previousOmega, f.previousRate = f.omega, rate
		f.setOmega(best)
	}
}

// decrease returns to the previous factor, which is kept until the number of sweeps has doubled, or moves ω towards 1, for
// good where the guard watches and the residual does not fall.
func (f *AdaptiveOmega) decrease(sweep int) {
	switch {
	case f.previousRate > 0 && (f.limit == 0 || f.rate < 1):
		f.setOmega(f.previousOmega)
		f.previousRate, f.keepUntil = 0, 2*sweep
	case f.limit > 0 && (!f.patient() || f.previousRate > 0):
		f.lower()
	case f.omega > 1:
		f.setOmega(max(1, f.omega-max(0.1, (f.omega-1)/2)))
	}
}

// patient reports whether the guard uses the larger bounds.
func (f *AdaptiveOmega) patient() bool { return f.scalable || f.limit > weakLimit }

// grows records a norm and reports whether the guard considers ω too large.
func (f *AdaptiveOmega) grows(norm float64) bool {
	if f.smallest == 0 || norm < f.smallest {
		f.smallest, f.windows = norm, 0
	}
	growth, windows := float64(growthBound), windowBound
	if f.patient() {
		growth, windows = scaledGrowthBound, scaledWindowBound
	}
	return f.omega > 1 && (norm > growth*f.smallest || f.windows > windows)
}

// lower lowers ω for good, to the previous one or halfway to 1.
func (f *AdaptiveOmega) lower() {
	omega := 1 + (f.omega-1)/2
	if f.previousRate > 0 {
		omega = f.previousOmega
	}
	if omega < 1+leastExcess {
		omega = min(1, f.omega)
	}
	// At a factor near 1 that was never larger the fault is not its size: the residual of Gauss–Seidel sweeps grows, too, while
	// regions of high diffusion fill.
	if f.previousRate > 0 || f.omega >= 1+leastExcess {
		f.limit = omega
	}
	f.scalable, f.previousRate = false, 0
	f.setOmega(omega)
}

func (f *AdaptiveOmega) setOmega(omega float64) {
	smallest, windows := f.smallest, f.windows
	f.omega = omega
	f.Forget()
	if f.patient() { // the growth is that of the run
		f.smallest, f.windows = smallest, windows
	}
}

// OptimalOmega returns the optimal factor for a Jacobi iteration of spectral radius rho.
func OptimalOmega(rho float64) float64 { return 2 / (1 + math.Sqrt(max(0, 1-float64(rho*rho)))) }
