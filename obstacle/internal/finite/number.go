// Package finite writes floating-point numbers to JSON, which has no word for
// those that are not finite.
package finite

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a float64 that is null in JSON when it is infinite or not a number.
type Number float64

// NaN is null.
func NaN() Number { return Number(math.NaN()) }

// Is tells whether n is finite.
func (n Number) Is() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON writes null for what JSON cannot say.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Is() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// UnmarshalJSON reads null as not a number.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = NaN()
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}
