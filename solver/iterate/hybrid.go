package iterate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hybrid is the scheme that is synchronous within a cluster and asynchronous
// between clusters. clusters[r] is the cluster of rank r. With one cluster it is
// the synchronous scheme, bit by bit; with one peer per cluster the asynchronous
// one.
//
// Two neighbours of one cluster read exactly each other's iterate k, whatever
// either of them reads of other clusters; so all peers of a connected cluster are
// at most a distance apart, and a slow cluster holds up no other. The run ends by
// the asynchronous rule, a snapshot, unless there is one cluster only.
func Hybrid(clusters []int) Scheme { return hybrid{clusters: slices.Clone(clusters)} }

type hybrid struct{ clusters []int }

func (h hybrid) Name() string { return "hybrid" }

// Lockstep: everybody is in one cluster.
func (h hybrid) Lockstep() bool {
	for _, c := range h.clusters {
		if c != h.clusters[0] {
			return false
		}
	}
	return true
}

func (h hybrid) Asynchronous() bool { return !h.Lockstep() }

// Admit is that of the pair of neighbours that may read the oldest values.
func (h hybrid) Admit(k, v Iteration, _ Rank) bool { return h.Asynchronous() || v == k }

func (h hybrid) Slots() int { return Synchronous().Slots() }

func (h hybrid) Between(a, b Rank) Scheme {
	known := int(max(a, b)) < len(h.clusters) && min(a, b) >= 0
	if known && h.clusters[a] == h.clusters[b] {
		return Synchronous()
	}
	return Asynchronous()
}

// Check returns an error unless every peer has a cluster.
func (h hybrid) Check(peers int) error {
	if len(h.clusters) != peers {
		return fmt.Errorf("iterate: the hybrid scheme has clusters for %d peers; the run has %d", len(h.clusters), peers)
	}
	return nil
}

// ParseScheme returns the scheme of a word: "sync", "async", "delay:K" or "hybrid", for which clusters
// holds the cluster of every rank.
func ParseScheme(word string, clusters []int) (Scheme, error) {
	switch word {
	case "sync":
		return Synchronous(), nil
	case "async":
		return Asynchronous(), nil
	case "hybrid":
		if len(clusters) == 0 {
			return nil, errors.New("iterate: the hybrid scheme needs the cluster of every peer")
		}
		return Hybrid(clusters), nil
	}
	if k, ok := strings.CutPrefix(word, "delay:"); ok {
		if n, err := strconv.Atoi(k); err == nil && n >= 0 {
			return BoundedDelay(n), nil
		}
	}
	return nil, fmt.Errorf("iterate: no scheme %q; there are sync, async, delay:K and hybrid", word)
}
