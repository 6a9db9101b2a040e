package nullable

import (
	"encoding/json"
	"strconv"
)

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
	if string(b) == "null" {
		*c = Unknown
		return nil
	}
	return json.Unmarshal(b, (*int64)(c))
}

// Text is a string. An empty one is unknown and null in JSON.
type Text string

// MarshalJSON writes null for an unknown text.
func (w Text) MarshalJSON() ([]byte, error) {
	if w == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(w))
}
