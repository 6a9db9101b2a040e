package repair

import (
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Next returns the configuration with which a peer continues after a loss, in the next epoch of the run. c is its
// configuration in the epoch that ended. u holds the values of its box: those of Peer.Solution of a survivor, or the
// repaired ones. done is the largest number of sweeps that a survivor has made in the epoch. At least one sweep
// remains, so that the residual of the assembled vector is measured.
func Next(c problem.Config, u []float64, done iterate.Iteration) problem.Config {
	c.Initial = u
	if c.MaxSweeps > 0 {
		c.MaxSweeps -= min(done, c.MaxSweeps-1)
	}
	return c
}
