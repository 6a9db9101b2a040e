package runner

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/trace"
)

// NeighbourError reports that the run cannot continue because of one neighbour.
type NeighbourError = exchange.NeighbourError

// ErrNoVerdict reports that the run did not end within Config.Grace after a request for an early end.
var ErrNoVerdict = errors.New("runner: the peers did not agree on the end in time")

// Config describes a peer and its network. Required are New with Solver, or Peer with Rank and Points.
// Names and Node are required unless the peer has no neighbours.
type Config struct {
	// New makes a peer of an obstacle problem from Solver; see solver.New.
	New    func(problem.Config) (problem.Peer, error)
	Solver problem.Config // Executor nil: one of Threads threads

	// Peer is a peer of any iteration, for a run without Solver; see iterate.NewPeer.
	Peer   iterate.Peer
	Rank   iterate.Rank // of Peer
	Points int          // that a sweep of Peer relaxes

	// Threads is the number of threads that relax the peer's box; 0: 1. It is not used if Solver.Executor is set.
	Threads int
	// Node must be connected to every neighbour.
	Node Node
	// Names are the peers' names by rank.
	Names []string
	// Crowded reports that the peers of this machine have more threads than it has processors. Then a peer yields its
	// processor as soon as it has to wait, and an asynchronous one also after a sweep without news.
	Crowded bool
	// Slow multiplies the time of relaxations. The peer waits for the additional time and serves its
	// sockets meanwhile. Below 1 counts as 1.
	Slow float64
	// Turn, if not nil, is locked while the peer relaxes, and for the additional time of Slow. The peers of one process
	// that share it relax one after the other, each with all threads of the process.
	Turn sync.Locker
	// MaxTime ends the run that long after the first relaxation; 0: no bound.
	MaxTime time.Duration
	// Stop ends the run with the best iterate when it is closed or receives a value, as the end of
	// Run's context does.
	Stop <-chan struct{}
	// Grace bounds the time from an early end, or from the leaving of a neighbour, to the verdict.
	// Four times the longest sweep is added. 0: 10 s.
	Grace time.Duration
	// Survive makes a lost neighbour no error: the peer goes on with the neighbour's newest values, or waits, until Do
	// ends the run.
	Survive bool
	// Lost, if not nil, is called on Run's goroutine when Survive makes the peer go on without a neighbour: it was silent
	// for too long, or has closed its sessions for longer than Grace without a verdict.
	Lost func(q iterate.Rank, why error)
	// Progress is called on Run's goroutine, at most every ProgressEvery (0: 200 ms), and at the end; nil: never.
	Progress      func(Progress)
	ProgressEvery time.Duration
	CountReads    bool // sets Progress.Reads
	// Step is called on Run's goroutine at the end of a time step. solution writes the values of the
	// peer's box, as Solution does. An error ends the run.
	Step func(s iterate.StepResult, box problem.Box, solution func(dst []float64)) error
	// Keep stores a copy of iterate k of the peer's box, and of its state, with another peer; see iterate.OpKeep. values
	// writes a part of the iterate; it returns false, and writes nothing, once Close has begun. Keep runs on its own
	// goroutine and may block. Meanwhile the peer serves its sockets and does not relax. If Keep returns an error, Run
	// returns it; with Survive, Run does not, and waits until Do ends the run.
	Keep func(k iterate.Iteration, state []byte, values func(dst []float64, part problem.Box) bool) error
	// Kept is called on Run's goroutine when every peer has stored its copy of iterate k. Solution returns its values.
	Kept func(k iterate.Iteration)
	// Record takes the begin and the end of every relaxation, for traces: the sweep and the points; nil: nothing is
	// recorded. See driver.Node.Record.
	Record func(k trace.Kind, sweep uint64, points int)
	Log    *slog.Logger // nil logs nothing
}

// Progress is the progress of this peer.
type Progress struct {
	Elapsed  time.Duration // since the first relaxation
	Step     int           // time step in progress; 0: the problem is stationary
	Sweep    iterate.Iteration
	Residual float64 // relative, as in iterate.Progress; NaN: not known yet

	Relaxed uint64        // points relaxed, by all sweeps
	Busy    time.Duration // that this has taken
	Waiting time.Duration // for other peers, or for the turn of this one, since the first relaxation
	Reads   []Reads       // with Config.CountReads
}

const (
	defaultGrace    = 10 * time.Second
	defaultProgress = 200 * time.Millisecond
)

func (c *Config) check() error {
	if err := c.checkPeer(); err != nil {
		return err
	}
	if c.Threads < 0 || c.Threads > MaxThreads {
		return fmt.Errorf("runner: %d threads: must be 1 to %d (--threads)", c.Threads, MaxThreads)
	}
	if math.IsNaN(c.Slow) || c.Slow > maxSlow {
		return fmt.Errorf("runner: slowness %v: must be 1 to %g (--slowdown)", c.Slow, float64(maxSlow))
	}
	c.Threads, c.Slow = max(c.Threads, 1), max(c.Slow, 1)
	if c.Grace <= 0 {
		c.Grace = defaultGrace
	}
	if c.ProgressEvery <= 0 {
		c.ProgressEvery = defaultProgress
	}
	if c.Solver.Repeat <= 0 {
		c.Solver.Repeat = iterate.DefaultRepeat
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
	if c.Solver.KeepEvery > 0 && (c.Keep == nil || c.Kept == nil) {
		return errors.New("runner: iterates are to be kept: set Keep and Kept")
	}
	if c.Node == nil && peers > 1 {
		return errors.New("runner: peers with neighbours need a node")
	}
	return nil
}
