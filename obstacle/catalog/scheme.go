package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Scheme returns the scheme of --scheme NAME:ARGUMENT, or of --scheme NAME with an empty argument. clusters[r] is the
// cluster of rank r; it is nil as long as the peers are unknown.
type Scheme func(argument string, clusters []int) (iterate.Scheme, error)

// Scheme parses --scheme. clusters are the labels of the peers, by rank. A peer without a label is its own cluster.
func (s *Set) Scheme(word string, clusters []string) (iterate.Scheme, error) {
	name, argument, _ := strings.Cut(word, ":")
	scheme, err := s.Schemes.Lookup("scheme", name)
	if err != nil {
		return nil, err
	}
	made, err := scheme(argument, numbered(clusters))
	if err != nil {
		return nil, fmt.Errorf("--scheme %q: %w", word, err)
	}
	return made, nil
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

func fixed(s iterate.Scheme) Scheme {
	return func(argument string, _ []int) (iterate.Scheme, error) {
		if argument != "" {
			return nil, fmt.Errorf("%s takes no argument", s.Name())
		}
		return s, nil
	}
}

const maxDelay = 1 << 20

func delay(argument string, _ []int) (iterate.Scheme, error) {
	k, err := strconv.Atoi(argument)
	if err != nil || k < 0 || k > maxDelay {
		return nil, fmt.Errorf("want delay:K with a whole number K from 0 to %d", maxDelay)
	}
	return iterate.BoundedDelay(k), nil
}

func hybrid(argument string, clusters []int) (iterate.Scheme, error) {
	return fixed(iterate.Hybrid(clusters))(argument, nil)
}
