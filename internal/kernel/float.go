package kernel

import "math"

// Finite reports whether v is neither infinite nor NaN.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// UnitRoundoff is the unit round-off of float64 rounded to nearest, 2⁻⁵³.
const UnitRoundoff = 0x1p-53
