package schwarz

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Method is the restricted additive Schwarz method.
type Method struct{}

// Name returns "schwarz".
func (Method) Name() string { return problem.Schwarz }

// Check returns an error for orders, and for flexible exchange in schemes other than the asynchronous one.
func (Method) Check(c *problem.Config) error {
	if err := c.CheckOrder(); err != nil {
		return err
	}
	if c.Method.Flexible && c.Scheme.Name() != iterate.Asynchronous().Name() {
		return fmt.Errorf("schwarz: flexible exchange (--flexible) needs the asynchronous scheme; the scheme is %s",
			c.Scheme.Name())
	}
	return nil
}

// Links returns the peers whose regions intersect that of rank r, and those of the coarse correction.
func (Method) Links(c *problem.Config, r iterate.Rank) []iterate.Link { return linksOf(c, r) }

// New creates a peer (see problem.Method).
func (Method) New(c problem.Config) (problem.Peer, error) { return newPeer(c) }
