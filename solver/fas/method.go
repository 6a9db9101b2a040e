package fas

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Method is multigrid with a replicated coarse level.
type Method struct{}

// Name returns "fas".
func (Method) Name() string { return problem.FAS }

// Check returns an error for orders and kept iterates, and for grids and boxes that the method cannot use.
func (Method) Check(c *problem.Config) error {
	if err := c.CheckOrder(); err != nil {
		return err
	}
	switch peers := c.Partition.Peers(); {
	case c.KeepEvery > 0 || c.State != nil:
		return fmt.Errorf("fas: the method does not support exact recovery; use --recover local")
	case c.Balance:
		return fmt.Errorf("fas: the method does not move parts during a run; use --balance off")
	case peers > maxPeers:
		return fmt.Errorf("fas: %d peers; every peer sends to all others, so the method supports %d: use method %s",
			peers, maxPeers, problem.Schwarz)
	}
	g, err := newPlan(c)
	if err != nil {
		return err
	}
	if n := g.hierarchy.Grids[g.depth]; n[0]*n[1]*n[2] > maxReplicated {
		return fmt.Errorf("fas: the replicated grid of %v has more than %d points; use method %s", n, maxReplicated,
			problem.Schwarz)
	}
	return nil
}

const (
	// maxPeers bounds the peers of a run: each sends the right-hand side of its points to all others.
	maxPeers = 64
	// maxReplicated bounds the points of the replicated grid, which every peer stores and solves.
	maxReplicated = 1 << 27
)

// Links returns all other peers. Those that own points of the ring of rank r send two kinds of values.
func (Method) Links(c *problem.Config, r iterate.Rank) []iterate.Link {
	g, err := newPlan(c)
	if err != nil {
		return nil // New says why
	}
	faces := c.Partition.Neighbours(r)
	var out []iterate.Link
	for q := range iterate.Rank(c.Partition.Peers()) {
		if q == r {
			continue
		}
		s := c.Scheme.Between(r, q)
		l := iterate.Link{Rank: q, Asynchronous: s.Asynchronous()}
		x := newExchange(g, s, r, q)
		for range s.Slots() {
			l.Slots = append(l.Slots, x.tau.Bytes)
			if x.ring != nil {
				l.Slots = append(l.Slots, x.ring.Bytes)
			}
		}
		l.Sent = l.Slots
		if n := max(x.ownLayers.Points(), x.theirLayers.Points()); c.Problem.Steps() > 0 && n > 0 {
			l.Agreement = iterate.MessageHeader + 8 + 8*n
		}
		if i := slices.IndexFunc(faces, func(n problem.Neighbour) bool { return n.Rank == q }); i >= 0 {
			l.Agreement = max(l.Agreement, iterate.AgreementBytes(faces[i].FaceBytes))
		}
		out = append(out, l)
	}
	return out
}

// New creates a peer (see problem.Method).
func (Method) New(c problem.Config) (problem.Peer, error) { return newPeer(c) }
