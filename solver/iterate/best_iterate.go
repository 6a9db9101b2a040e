package iterate

import "math"

// BestIterate keeps a copy of the values with the smallest residual in a run in lockstep that may diverge. They are the
// answer if it does. Values are copied only after the residual has halved, which costs little. The decisions use the
// verdicts on checks, so all peers keep the same iterate. The zero value keeps none.
type BestIterate struct {
	Values    []float64 // in the order of the caller
	candidate []float64 // values at the open check
	taken     bool      // candidate holds them
	Residual  float64   // relative, of Values; +Inf: there are none
	At        Iteration
}

// Begin prepares for a run with that many values.
func (b *BestIterate) Begin(values int, allocate func(n int) []float64) {
	if b.taken, b.Residual = false, math.Inf(1); len(b.Values) != values {
		b.Values, b.candidate = allocate(values), allocate(values)
	}
}

// Offer returns an array for the values of a check that begins, or nil if they are not needed: residual, of the check
// before, rules out that they are much better.
func (b *BestIterate) Offer(residual float64) []float64 {
	if b.taken = b.Values != nil && !(residual > b.Residual/2); b.taken {
		return b.candidate
	}
	return nil
}

// Measured keeps the offered values of iterate k if their residual is the smallest.
func (b *BestIterate) Measured(k Iteration, residual float64) {
	if b.taken && residual < b.Residual {
		b.Values, b.candidate = b.candidate, b.Values
		b.Residual, b.At = residual, k
	}
	b.taken = false
}

// Better reports whether the kept values are much better than those with a residual.
func (b *BestIterate) Better(residual float64) bool {
	return b.Values != nil && b.Residual < math.Inf(1) && !(residual <= 2*b.Residual)
}
