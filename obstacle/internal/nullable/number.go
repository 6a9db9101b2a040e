// Package nullable provides values that are null in JSON when they are unknown.
package nullable

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a float64. One that is infinite or not a number is unknown and null in JSON.
type Number float64

// NaN returns the unknown number.
func NaN() Number { return Number(math.NaN()) }

// Known reports whether n is finite.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON writes null for an unknown number.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
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
