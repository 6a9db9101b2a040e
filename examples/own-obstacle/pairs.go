package main

import "github.com/p2pdc/p2pdc/solver/iterate"

// pairs is the scheme that is synchronous between ranks 2i and 2i+1 and asynchronous between others.
type pairs struct{ iterate.Scheme }

func newPairs(_ string, clusters []int) (iterate.Scheme, error) {
	pair := make([]int, len(clusters))
	for rank := range pair {
		pair[rank] = rank / 2
	}
	return pairs{iterate.Hybrid(pair)}, nil
}

// Name implements iterate.Scheme.
func (pairs) Name() string { return "pairs" }
