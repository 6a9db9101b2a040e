// Package spelling suggests the intended name for a misspelt one.
package spelling

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxSuggested bounds the number of names that Suggest lists.
const maxSuggested = 3

// Suggest returns ` (did you mean "x"?)` for the known name most similar to a wrong one, or "" if none is similar. It
// lists several names that are equally similar: ` (did you mean "x" or "y"?)`.
func Suggest(wrong string, known []string) string {
	type candidate struct {
		name        string
		rank, edits int
	}
	bound := 1 + min(len(wrong)/2, max(2, len(wrong)/3))
	var near []candidate
	for _, k := range known {
		edits := editDistance(strings.ToLower(wrong), strings.ToLower(k))
		rank := edits
		if abbreviates(wrong, k) {
			rank = min(rank, 1)
		}
		if rank < bound {
			near = append(near, candidate{k, rank, edits})
		}
	}
	if len(near) == 0 {
		return ""
	}
	order := func(a, b candidate) int { return cmp.Or(a.rank-b.rank, a.edits-b.edits) }
	slices.SortStableFunc(near, order)
	var names []string
	for _, c := range near {
		if order(c, near[0]) == 0 && len(names) < maxSuggested && !slices.Contains(names, strconv.Quote(c.name)) {
			names = append(names, strconv.Quote(c.name))
		}
	}
	return " (did you mean " + strings.Join(names, " or ") + "?)"
}

// abbreviates reports whether one name begins with the other, which has at least three letters.
func abbreviates(a, b string) bool {
	a, b = strings.ToLower(strings.TrimLeft(a, "-")), strings.ToLower(strings.TrimLeft(b, "-"))
	short, long := min(len(a), len(b)), max(len(a), len(b))
	return short >= 3 && long <= maxLength && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// maxLength bounds the names whose distance is computed.
const maxLength = 64

// editDistance returns the number of insertions, deletions, replacements and swaps of neighbours that turn a into b. It
// returns math.MaxInt if one of them is longer than maxLength.
func editDistance(a, b string) int {
	if len(a) > maxLength || len(b) > maxLength {
		return math.MaxInt
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
