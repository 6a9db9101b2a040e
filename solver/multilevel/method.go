package multilevel

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Method is red-black SOR or multigrid.
type Method struct{ name string }

// SOR returns projected red-black SOR on the whole grid.
func SOR() problem.Method { return Method{problem.SOR} }

// Multigrid returns projected multigrid on the whole grid.
func Multigrid() problem.Method { return Method{problem.Multigrid} }

// Name returns "sor" or "multigrid".
func (m Method) Name() string { return m.name }

// Check returns an error for schemes without lockstep, for orders, and for boxes that are too thin for
// multigrid.
func (m Method) Check(c *problem.Config) error {
	if !c.Scheme.Lockstep() {
		return fmt.Errorf("multilevel: method %s needs all peers at the same iterate, which scheme %s does not "+
			"guarantee; use it as the local method of %s, or use a synchronous scheme",
			m.name, c.Scheme.Name(), problem.Schwarz)
	}
	if err := c.CheckOrder(); err != nil || m.name != problem.Multigrid && c.Method.Next != problem.Multigrid {
		return err
	}
	return checkGathered(c)
}

// Links returns the peers that rank r shares a face with, in the partition's order.
func (Method) Links(c *problem.Config, r iterate.Rank) []iterate.Link { return linksOf(c, r) }

// New creates a peer (see problem.Method).
func (Method) New(c problem.Config) (problem.Peer, error) {
	g, err := newPeer(c)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Describe returns the method's parameters (see problem.Peer).
func (g *peer) Describe() string {
	c := &g.driver
	if c.changedAt == 0 && c.alternation.Current() == 0 {
		return c.method.describe()
	}
	return fmt.Sprintf("from sweep %d on %s, which reduces the residual more per sweep: %s",
		c.changedAt, c.method.name(), c.method.describe())
}
