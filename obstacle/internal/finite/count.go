package finite

import (
	"encoding/json"
	"strconv"
)

// Count is a number of things, or of bytes, that is null in JSON when it is not known: below 0.
type Count int64

// Unknown is null.
const Unknown Count = -1

// Measured is n, or Unknown where 0 stands for what could not be measured.
func Measured(n int64) Count {
	if n == 0 {
		return Unknown
	}
	return Count(n)
}

// MarshalJSON writes null for what is not known.
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

// Word is a text that is null in JSON when it is not known: empty.
type Word string

// MarshalJSON writes null for what is not known.
func (w Word) MarshalJSON() ([]byte, error) {
	if w == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(w))
}
