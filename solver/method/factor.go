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
	omega  float64
	fixed  bool
	at     int     // sweep of the last observation
	norm   float64 // then
	known  bool
	rate   float64 // between the last two observations with this ω; 0: there are none
	before float64 // ω before the last change
	old    float64 // rate with that; 0: it was not changed
	poor   int     // observations in a row that were worse
}

const (
	// window is the fewest sweeps that make a rate, in units of 1/(2 − ω): what SOR has in
	// its memory.
	window = 0.7
	// settled is by how much 1 − λ may differ between two windows.
	settled = 0.15
	// nearBest is how far below ω − 1, as a part of 2 − ω, the rate has to be above the best
	// for ω to be worth a change.
	nearBest = 0.15
)

// NewFactor starts with ω; fixed: it is what the user wants.
func NewAdaptiveOmega(omega float64, fixed bool) AdaptiveOmega {
	return AdaptiveOmega{omega: omega, fixed: fixed}
}

// Omega is the factor to relax with.
func (f *AdaptiveOmega) Omega() float64 { return f.omega }

// Forget begins the observation anew: the values or the system were changed.
func (f *AdaptiveOmega) Forget() { f.known, f.rate, f.poor = false, 0, 0 }

// Observe tells ‖r‖₂ after so many sweeps, and whether ω is another one from now on.
func (f *AdaptiveOmega) Observe(sweep int, norm float64) bool {
	if f.fixed || !(norm > 0) || math.IsInf(norm, 1) {
		return false
	}
	if !f.known || sweep < f.at {
		f.known, f.at, f.norm = true, sweep, norm
		return false
	}
	gone := float64(sweep - f.at)
	if gone*(2-f.omega) < window || gone < 4 {
		return false
	}
	rate := math.Pow(norm/f.norm, 1/gone)
	last := f.rate
	f.at, f.norm, f.rate = sweep, norm, rate
	switch {
	case f.old > 0 && rate > f.old || rate >= 1:
		if f.poor++; f.poor >= 3 {
			return f.fall()
		}
		return false
	case last == 0 || math.Abs(rate-last) > settled*(1-rate):
		f.poor = 0
		return false
	}
	f.poor = 0
	return f.rise(rate)
}

// rise takes the factor that the rate promises to be best, if it is a larger one.
func (f *AdaptiveOmega) rise(rate float64) bool {
	if rate < f.omega-1+nearBest*(2-f.omega) {
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
	f.before, f.old = f.omega, rate
	f.change(best)
	return true
}

// fall goes back: to the factor before, which is then kept, or towards 1.
func (f *AdaptiveOmega) fall() bool {
	if f.old > 0 {
		f.change(f.before)
		f.fixed = true
		return true
	}
	if f.omega <= 1 {
		return false
	}
	f.change(max(1, f.omega-max(0.1, (f.omega-1)/2)))
	return true
}

func (f *AdaptiveOmega) change(omega float64) {
	f.omega, f.known, f.rate, f.poor = omega, false, 0, 0
}

// Best is the best factor where the Jacobi iteration has the spectral radius rho.
func OptimalOmega(rho float64) float64 { return 2 / (1 + math.Sqrt(max(0, 1-float64(rho*rho)))) }
