package method

import "math"

// Factor finds the relaxation factor ω of red-black SOR from the rate at which the
// residual falls. For a consistently ordered A, which ours is, the largest eigenvalue λ of
// a sweep and the spectral radius ρ of the Jacobi iteration are tied by
//
//	(λ + ω − 1)² = λ·ω²·ρ²,
//
// so a rate observed below the best ω gives ρ, and that gives the best ω,
// 2/(1 + √(1 − ρ²)) (Young, Iterative Solution of Large Linear Systems, 1971, chapters 5
// and 6; Hageman and Young, Applied Iterative Methods, 1981, chapter 9). With obstacles
// ρ is that of the points off contact, which settle as the iteration goes on: ρ is
// estimated again and again, from below, so ω only rises, unless the rate is then worse
// than before. Above the best ω the rate is ω − 1 whatever ρ, and nothing can be learnt.
//
// It is pure and depends on what it is told alone: peers that tell it exact norms at the
// same sweeps have the same ω.
type AdaptiveOmega struct {
	omega         float64
	fixed         bool
	lastSweep     int     // sweep of the last observation
	lastNorm      float64 // then
	hasLast       bool
	rate          float64 // between the last two observations with this ω; 0: there are none
	previousOmega float64 // ω before the last change
	previousRate  float64 // rate with that; 0: it was not changed
	worseCount    int     // observations in a row that were worse
}

const (
	// window is the fewest sweeps that make a rate, in units of 1/(2 − ω): what SOR has in
	// its memory.
	minWindow = 0.7
	// settled is by how much 1 − λ may differ between two windows.
	rateTolerance = 0.15
	// nearBest is how far below ω − 1, as a part of 2 − ω, the rate has to be above the best
	// for ω to be worth a change.
	optimumMargin = 0.15
)

// NewFactor starts with ω; fixed: it is what the user wants.
func NewAdaptiveOmega(omega float64, fixed bool) AdaptiveOmega {
	return AdaptiveOmega{omega: omega, fixed: fixed}
}

// Omega is the factor to relax with.
func (f *AdaptiveOmega) Omega() float64 { return f.omega }

// Forget begins the observation anew: the values or the system were changed.
func (f *AdaptiveOmega) Forget() { f.hasLast, f.rate, f.worseCount = false, 0, 0 }

// Observe tells ‖r‖₂ after so many sweeps, and whether ω is another one from now on.
func (f *AdaptiveOmega) Observe(sweep int, norm float64) bool {
	if f.fixed || !(norm > 0) || math.IsInf(norm, 1) {
		return false
	}
	if !f.hasLast || sweep < f.lastSweep {
		f.hasLast, f.lastSweep, f.lastNorm = true, sweep, norm
		return false
	}
	gone := float64(sweep - f.lastSweep)
	if gone*(2-f.omega) < minWindow || gone < 4 {
		return false
	}
	rate := math.Pow(norm/f.lastNorm, 1/gone)
	last := f.rate
	f.lastSweep, f.lastNorm, f.rate = sweep, norm, rate
	switch {
	case f.previousRate > 0 && rate > f.previousRate || rate >= 1:
		if f.worseCount++; f.worseCount >= 3 {
			return f.decrease()
		}
		return false
	case last == 0 || math.Abs(rate-last) > rateTolerance*(1-rate):
		f.worseCount = 0
		return false
	}
	f.worseCount = 0
	return f.increase(rate)
}

// rise takes the factor that the rate promises to be best, if it is a larger one.
func (f *AdaptiveOmega) increase(rate float64) bool {
	if rate < f.omega-1+optimumMargin*(2-f.omega) {
		return false
	}
	rho := (rate + f.omega - 1) / (f.omega * math.Sqrt(rate))
	if !(rho < 1) {
		return false
	}
	best := OptimalOmega(rho)
	if best <= f.omega {
		return false
	}
	f.previousOmega, f.previousRate = f.omega, rate
	f.setOmega(best)
	return true
}

// fall goes back: to the factor before, which is then kept, or towards 1.
func (f *AdaptiveOmega) decrease() bool {
	if f.previousRate > 0 {
		f.setOmega(f.previousOmega)
		f.fixed = true
		return true
	}
	if f.omega <= 1 {
		return false
	}
	f.setOmega(max(1, f.omega-max(0.1, (f.omega-1)/2)))
	return true
}

func (f *AdaptiveOmega) setOmega(omega float64) {
	f.omega, f.hasLast, f.rate, f.worseCount = omega, false, 0, 0
}

// Best is the best factor where the Jacobi iteration has the spectral radius rho.
func OptimalOmega(rho float64) float64 { return 2 / (1 + math.Sqrt(max(0, 1-float64(rho*rho)))) }
