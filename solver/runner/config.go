package runner

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/solver/exchange"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// NeighbourError reports that the run cannot continue because of one neighbour.
type NeighbourError = exchange.NeighbourError

// ErrNoVerdict reports that the run was asked to end and did not within Config.Grace.
var ErrNoVerdict = errors.New("runner: the peers did not agree on the end in time")

// Config says what a peer runs and over what. Required are New with Solver, or Peer with Rank and Points;
// and Names and Node, which a peer without neighbours needs not.
type Config struct {
	// New makes a peer of an obstacle problem from Solver; see solver.New.
	New    func(problem.Config) (problem.Peer, error)
	Solver problem.Config // Executor: nil for one of Threads threads

	// Peer is a peer of any iteration, for a run without Solver; see iterate.NewPeer.
	Peer   iterate.Peer
	Rank   iterate.Rank // of Peer
	Points int          // that a sweep of Peer relaxes

	// Threads relax the peer's box; 0: 1. Not used when Solver.Executor is set.
	Threads int
	// Node is connected to every neighbour already.
	Node Node
	// Names are the peers' names by rank.
	Names []string
	// Allocate returns memory for faces that will be sent, from which the network sends
	// without a copy (see ib.Link.Allocate); nil, or where it fails: any. It must stay
	// after Run.
	Allocate func(n int) ([]byte, error)
	// Crowded: the peers of this machine have more threads than it has processors. A
	// peer then gives up its processor as soon as it has to wait, and an asynchronous one
	// also when it has relaxed its whole box without news.
	Crowded bool
	// Slow makes relaxations take this many times as long (the rest is waited,
	// while the sockets are served); below 1 counts as 1.
	Slow float64
	// MaxTime ends the run, from the first relaxation on; 0: no bound.
	MaxTime time.Duration
	// Stop, closed or sent to, ends the run with the best iterate, as the end of
	// Run's context does.
	Stop <-chan struct{}
	// Grace bounds the time from an early end, or from a neighbour's leaving, to
	// the verdict, beyond four times what the longest sweep took; 0: 10 s.
	Grace time.Duration
	// Progress is told how far the run is, at most every ProgressEvery (0: 200 ms),
	// on Run's goroutine; nil: nobody.
	Progress      func(Progress)
	ProgressEvery time.Duration
	// Step is told, on Run's goroutine, that a time step is complete; solution writes
	// the values of the peer's box at its end, as Solution does. An error of it ends the
	// run.
	Step func(s iterate.StepResult, box problem.Box, solution func(dst []float64)) error
	Log  zerolog.Logger // its zero value logs nothing
}

// Progress is how far this peer is.
type Progress struct {
	Elapsed  time.Duration // since the first relaxation
	Step     int           // time step in progress; 0: the problem is stationary
	Sweep    iterate.Iteration
	Residual float64 // relative, as iterate.Progress; NaN: not known yet
}

const (
	defaultGrace    = 10 * time.Second
	defaultProgress = 200 * time.Millisecond
	defaultRepeat   = 5 * time.Millisecond
)

func (c *Config) check() error {
	if err := c.checkPeer(); err != nil {
		return err
	}
	if c.Threads < 0 || c.Threads > MaxThreads {
		return fmt.Errorf("runner: %d threads: must be 1 to %d (--threads)", c.Threads, MaxThreads)
	}
	if math.IsNaN(c.Slow) || c.Slow > maxSlow {
		return fmt.Errorf("runner: slowness %v: must be 1 to %g (--slow)", c.Slow, float64(maxSlow))
	}
	if c.Threads == 0 {
		c.Threads = 1
	}
	if c.Slow < 1 {
		c.Slow = 1
	}
	if c.Grace <= 0 {
		c.Grace = defaultGrace
	}
	if c.ProgressEvery <= 0 {
		c.ProgressEvery = defaultProgress
	}
	if c.Solver.Repeat <= 0 {
		c.Solver.Repeat = defaultRepeat
	}
	return nil
}

// Bounds of Config.
const (
	MaxThreads = 1024 // of a peer
	maxSlow    = 1e6
)

// checkPeer refuses a configuration without a peer, or without what the peer needs.
func (c *Config) checkPeer() error {
	peers := len(c.Names)
	switch {
	case c.Peer != nil:
		if c.Points < 1 {
			return fmt.Errorf("runner: a sweep of %d points; it must have 1 or more", c.Points)
		}
	case c.New == nil || c.Solver.Problem == nil:
		return errors.New("runner: no problem: set New and Solver, or Peer")
	default:
		c.Rank = c.Solver.Rank
		if peers = c.Solver.Partition.Peers(); len(c.Names) != peers && peers > 1 {
			return fmt.Errorf("runner: %d names for %d peers", len(c.Names), peers)
		}
	}
	if c.Node == nil && peers > 1 {
		return errors.New("runner: peers with neighbours need a node")
	}
	return nil
}
