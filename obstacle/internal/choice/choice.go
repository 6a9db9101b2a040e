// Package choice parses the flag values that launcher and peers share.
package choice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// maxDelay bounds K of delay:K.
const maxDelay = 1 << 20

// Scheme parses --scheme. clusters are the labels of the peers, by rank, for hybrid; a peer without a label is its own
// cluster.
func Scheme(s string, clusters []string) (iterate.Scheme, error) {
	switch s {
	case "sync":
		return iterate.Synchronous(), nil
	case "async":
		return iterate.Asynchronous(), nil
	case "hybrid":
		return iterate.Hybrid(numbered(clusters)), nil
	}
	if bound, is := strings.CutPrefix(s, "delay:"); is {
		k, err := strconv.Atoi(bound)
		if err != nil || k < 0 || k > maxDelay {
			return nil, fmt.Errorf("--scheme %q: want delay:K with a whole number K from 0 to %d", s, maxDelay)
		}
		return iterate.BoundedDelay(k), nil
	}
	return nil, fmt.Errorf("--scheme %q%s: want sync, async, delay:K or hybrid", s,
		spelling.Suggest(s, []string{"sync", "async", "hybrid", "delay:1"}))
}

// numbered replaces labels by numbers, equal ones by equal numbers.
func numbered(labels []string) []int {
	out := make([]int, len(labels))
	for r, l := range labels {
		out[r] = r
		if i := slices.Index(labels, l); l != "" {
			out[r] = i
		}
	}
	return out
}

// Order parses --order.
func Order(s string) (problem.Order, error) {
	for _, o := range []problem.Order{problem.Jacobi, problem.InTurn} {
		if s == o.String() {
			return o, nil
		}
	}
	return 0, fmt.Errorf("--order %q: want jacobi or in-turn", s)
}
