// Package spelling suggests the intended name for a misspelt one.
package spelling

import (
	"strconv"
	"strings"
)

// Suggest returns ` (did you mean "x"?)` for the known name most similar to a wrong one, or "" if none is similar.
func Suggest(wrong string, known []string) string {
	best, distance := "", 1+min(len(wrong)/2, max(2, len(wrong)/3))
	for _, k := range known {
		if d := editDistance(strings.ToLower(wrong), strings.ToLower(k), distance); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + strconv.Quote(best) + "?)"
}

// editDistance returns the number of insertions, deletions, replacements and swaps of neighbours that turn a
// into b, at most bound for long names. If a is a prefix of b, it returns 1.
func editDistance(a, b string, bound int) int {
	if len(a) > 64 || len(b) > 64 {
		return bound
	}
	if a == b {
		return 0
	}
	if len(a) >= 3 && strings.HasPrefix(b, a) {
		return min(1, bound)
	}
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
