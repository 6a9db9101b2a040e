package iterate

import (
	"fmt"
	"slices"
)

// Hybrid returns the scheme that is synchronous within a cluster of peers and asynchronous between
// clusters. clusters[r] is the cluster of rank r. With one cluster the run has the bits of the synchronous
// scheme; with one peer per cluster it is the asynchronous scheme.
//
// Relaxation k reads iterate k of neighbours in the same cluster. So the iterates of a connected cluster
// stay close together, and a slow cluster does not delay the others. The run ends by a snapshot, unless
// there is only one cluster.
func Hybrid(clusters []int) Scheme { return hybrid{clusters: slices.Clone(clusters)} }

type hybrid struct{ clusters []int }

func (h hybrid) Name() string { return "hybrid" }

// Lockstep reports whether all peers are in one cluster.
func (h hybrid) Lockstep() bool {
	return !slices.ContainsFunc(h.clusters, func(c int) bool { return c != h.clusters[0] })
}

func (h hybrid) Asynchronous() bool { return !h.Lockstep() }

// Admit gives the rule between clusters, where any iterate may be read; within a cluster Synchronous applies.
func (h hybrid) Admit(k, v Iteration, _ Rank) bool { return h.Asynchronous() || v == k }

func (h hybrid) Slots() int { return Synchronous().Slots() }

func (h hybrid) Between(a, b Rank) Scheme {
	if known := int(max(a, b)) < len(h.clusters) && min(a, b) >= 0; known && h.clusters[a] == h.clusters[b] {
		return Synchronous()
	}
	return Asynchronous()
}

// Check returns an error unless every peer has a cluster.
func (h hybrid) Check(peers int) error {
	if len(h.clusters) != peers {
		return fmt.Errorf("iterate: the hybrid scheme has clusters for %d peers; the run has %d",
			len(h.clusters), peers)
	}
	return nil
}
