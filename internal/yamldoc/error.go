package yamldoc

import (
	"fmt"
	"strings"
)

// Error is an error in a file, formatted as FILE:LINE: KEY: REASON without unknown parts.
type Error struct {
	File   string
	Line   int    // 1-based; 0 for the whole file
	Key    string // for example "obstacle" or "time.end"
	Reason string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Key != "" {
		b.WriteString(": " + e.Key)
	}
	return b.String() + ": " + e.Reason
}
