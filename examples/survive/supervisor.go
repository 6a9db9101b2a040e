package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// tolerance is that of ‖x − F(x)‖₂. It is not relative to the start of an epoch, so it is the same in all of them.
const tolerance = 1e-8

// supervisor runs an iteration whose peers may be lost. The set of peers is fixed within an epoch. A loss ends the epoch:
// the survivors stop and keep their values, the lost blocks are repaired, and the next epoch goes on from there.
//
// Here peers are goroutines with nodes of their own. If they are processes, the supervisor starts them, notices their
// ends, and sends messages instead of writing to x.
type supervisor struct {
	scheme iterate.Scheme
	blocks []iterate.Block
	kills  []kill
	forget bool // lost blocks begin with starting values again, for a comparison

	x      [][]float64       // newest values, by rank
	sweeps iterate.Iteration // of the slowest peer of each epoch
	lost   []iterate.Rank    // of all epochs
}

// kill closes the node of a peer after some sweeps of an epoch, as the end of its process does.
type kill struct {
	epoch  int
	rank   iterate.Rank
	sweeps iterate.Iteration
}

// run iterates until the tolerance is met.
func (s *supervisor) run(ctx context.Context) error {
	for _, b := range s.blocks {
		s.x = append(s.x, start(b))
	}
	for number := 0; ; number++ {
		e, err := s.newEpoch(ctx, number)
		if err != nil {
			return err
		}
		lost, err := e.run(ctx)
		if err != nil || len(lost) == 0 {
			return err
		}
		if s.lost = append(s.lost, lost...); s.forget {
			s.reset(lost)
		} else if err := s.repair(lost); err != nil {
			return err
		}
	}
}

func start(b iterate.Block) []float64 {
	x := make([]float64, b.Values())
	b.Start(x)
	return x
}

// reset sets lost blocks to their starting values.
func (s *supervisor) reset(lost []iterate.Rank) {
	for _, r := range lost {
		s.x[r] = start(s.blocks[r])
	}
}

// repair computes lost blocks from the values around them, one after the other. If peers are processes, the new one
// calls Repair, and each of its neighbours sends the Halo.
func (s *supervisor) repair(lost []iterate.Rank) error {
	s.reset(lost) // a lost neighbour that is not repaired yet
	for _, r := range lost {
		halos := map[iterate.Rank][]float64{}
		for q, b := range s.blocks {
			halos[iterate.Rank(q)] = iterate.Halo(b, r, s.x[q])
		}
		var err error
		if s.x[r], _, err = iterate.Repair(s.blocks[r], halos, tolerance, 10_000); err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return nil
}

// epoch is one epoch of a run.
type epoch struct {
	*supervisor
	number   int
	names    []string
	nodes    []node
	ctx      context.Context // ends with the first loss
	end      context.CancelFunc
	reported []iterate.Rank // that a neighbour has lost
	mu       sync.Mutex     // guards reported
}

// run runs all peers until they agree on the end, or until the first loss. It returns the ranks of the lost peers.
func (e *epoch) run(ctx context.Context) (lost []iterate.Rank, err error) {
	defer e.close()
	errs, results := make([]error, len(e.blocks)), make([]runner.Result, len(e.blocks))
	var all sync.WaitGroup
	for r := range e.blocks {
		all.Go(func() {
			if results[r], errs[r] = e.peer(ctx, iterate.Rank(r)); errs[r] != nil {
				e.end() // it was lost, or another one was
			}
		})
	}
	all.Wait()
	sweeps := results[0].Sweeps
	for r := range errs {
		sweeps = min(sweeps, results[r].Sweeps)
		if errors.Is(errs[r], p2psap.ErrClosed) || slices.Contains(e.reported, iterate.Rank(r)) {
			lost = append(lost, iterate.Rank(r))
		}
	}
	if e.sweeps += sweeps; len(lost) > 0 {
		return lost, nil // other errors are consequences
	}
	for r, err := range errs {
		if err == nil && results[r].Reason != iterate.Converged {
			err = fmt.Errorf("the run %s", results[r].Reason)
		}
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return nil, nil
}

// peer runs one peer. It returns runner.ErrAbandoned if another one is lost.
func (e *epoch) peer(ctx context.Context, r iterate.Rank) (runner.Result, error) {
	n := e.nodes[r]
	p, err := iterate.NewPeer(iterate.Config{
		Rank: r, Peers: len(e.blocks), Scheme: e.scheme, Tolerance: tolerance,
		Reference: func(float64) float64 { return 1 },
	}, iterate.StartFrom(e.blocks[r], e.x[r]))
	if err != nil {
		return runner.Result{}, err
	}
	for _, l := range p.Links() {
		if err := n.Connect(e.ctx, e.names[l.Rank], e.nodes[l.Rank].ControlAddr().String()); err != nil {
			return runner.Result{}, err
		}
	}
	one, err := runner.New(e.ctx, runner.Config{
		Peer: p, Rank: r, Points: len(e.x[r]), Node: runner.Over(n), Names: e.names,
		Survive: true, Lost: func(q iterate.Rank, _ error) { e.report(q) },
		Progress: func(p runner.Progress) { e.killAt(r, p.Sweep) }, ProgressEvery: 1,
	})
	if err != nil {
		return runner.Result{}, err
	}
	defer one.Close()
	abandon := context.AfterFunc(e.ctx, one.Abandon)
	defer abandon()
	out, err := one.Run(ctx)
	if err != nil {
		_ = n.Abort() // no other peer needs its messages any more
	}
	one.Solution(e.x[r]) // what is lost is overwritten by the repair
	return out, err
}

// report ends the epoch because a neighbour has lost a peer whose end the supervisor has not noticed. Later reports may be of peers that have
// stopped because of the first one.
func (e *epoch) report(lost iterate.Rank) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() == nil {
		e.reported = append(e.reported, lost)
		e.end()
	}
}

func (e *epoch) killAt(r iterate.Rank, sweep iterate.Iteration) {
	for _, k := range e.kills {
		if k.epoch == e.number && k.rank == r && sweep >= k.sweeps {
			_ = e.nodes[r].Abort()
		}
	}
}
