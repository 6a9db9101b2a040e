// Package nullable provides values that are null in JSON when they are unknown.
package nullable

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Number is a float64. One that is infinite or not a number is unknown and null in JSON.
type Number float64

// NaN returns the unknown number.
func NaN() Number { return Number(math.NaN()) }

// Time returns a time in seconds, unknown if it is 0, which stands for no measurement.
func Time(seconds float64) Number {
	if seconds == 0 {
		return NaN()
	}
	return Number(seconds)
}

// Known reports whether n is finite.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// Text formats n, or returns the text for an unknown number.
func (n Number) Text(format, unknown string) string {
	if !n.Known() {
		return unknown
	}
	return fmt.Sprintf(format, float64(n))
}

// MarshalJSON writes null for an unknown number.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// UnmarshalJSON reads null as not a number.
func (n *Number) UnmarshalJSON(b []byte) error {
	*n = NaN() // null leaves it
	return json.Unmarshal(b, (*float64)(n))
}

// Count is a number of things or bytes. A negative one is unknown and null in JSON.
type Count int64

// Unknown is the count that is null in JSON.
const Unknown Count = -1

// Measured returns n, or Unknown if n is 0, which stands for a failed measurement.
func Measured(n int64) Count {
	if n == 0 {
		return Unknown
	}
	return Count(n)
}

// MarshalJSON writes null for an unknown count.
func (c Count) MarshalJSON() ([]byte, error) {
	if c < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}

// UnmarshalJSON reads null as Unknown.
func (c *Count) UnmarshalJSON(b []byte) error {
	*c = Unknown // null leaves it
	return json.Unmarshal(b, (*int64)(c))
}
