// Package fixedpoint is the method of problems that are iterations x ← F(x) of a user's own; see problem.FromFixedPoint. A sweep
// relaxes the block of a peer once.
package fixedpoint

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Method is the method. Its zero value is ready for use.
type Method struct{}

var _ problem.Method = Method{}

// Name returns problem.FixedPoint.
func (Method) Name() string { return problem.FixedPoint }

// Check returns an error for a problem that is no iteration, for blocks whose neighbours do not agree, and for settings of problems on
// a grid. It builds every block once.
func (Method) Check(c *problem.Config) error {
	if err := check(c); err != nil {
		return err
	}
	if err := c.Problem.FixedPoint.CheckCuts(c.Partition.Cuts[0]); err != nil {
		return fmt.Errorf("fixedpoint: %q: %w", c.Problem.Name, err)
	}
	return nil
}

// check is the part of Check that builds no block.
func check(c *problem.Config) error {
	switch {
	case c.Problem.FixedPoint == nil:
		return fmt.Errorf("fixedpoint: the problem %q has no iteration of its own: choose another method", c.Problem.Name)
	case c.Order != problem.Jacobi:
		return fmt.Errorf("fixedpoint: order %v applies to %s only", c.Order, problem.Richardson)
	case c.Balance:
		return fmt.Errorf("fixedpoint: planes move with method %s only; parts can move (--parts)", problem.Richardson)
	}
	return nil
}

// Links returns the neighbours of the rank's block, and the peers beside it in the tree.
func (Method) Links(c *problem.Config, r iterate.Rank) []iterate.Link {
	return c.Problem.FixedPoint.Links(c.Scheme, c.Partition.Cuts[0], r)
}

// New creates the peer c.Rank. It calls the Block of the iteration, and, with Initial, those of its neighbours.
func (Method) New(c problem.Config) (problem.Peer, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	if err := check(&c); err != nil {
		return nil, err
	}
	i := problem.Coordination(&c)
	i.MaxSweeps, i.CheckEvery, i.Lag = c.MaxSweeps, c.CheckEvery, c.Lag
	p, err := c.Problem.FixedPoint.NewPeer(i, slices.Clone(c.Partition.Cuts[0]), c.Initial)
	if err != nil {
		return nil, fmt.Errorf("fixedpoint: %q: %w", c.Problem.Name, err)
	}
	return p, nil
}
