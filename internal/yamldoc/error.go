package yamldoc

import (
	"fmt"
	"strings"
)

// Error is a refusal of a file: FILE:LINE: KEY: REASON. Parts that are
// not known are left out.
type Error struct {
	File   string
	Line   int    // 1-based; 0: the file as a whole
	Key    string // "obstacle", "time.end"
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
