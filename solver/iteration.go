package solver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// Iteration is the input of Iterate: the blocks of a fixed-point iteration and the settings of the run.
// Only Blocks is required.
type Iteration struct {
	Blocks    []iterate.Block   // by rank of their peers
	Scheme    iterate.Scheme    // if nil, iterate.Synchronous()
	Tolerance float64           // relative residual ‖x − F(x)‖₂; with 0 it is DefaultTolerance
	MaxSweeps iterate.Iteration // of each peer; 0 means no bound
	MaxTime   time.Duration     // 0 means no bound
	Log       *slog.Logger      // nil logs nothing
}

// Iterated is the result of Iterate.
type Iterated struct {
	X      [][]float64 // values of the blocks, by rank
	Reason iterate.Reason
	Peers  []runner.Result // by rank
}

// Peer returns the peer of a rank. Use it to run the iteration in a simulation or over several
// processes; Iterate calls it itself.
func (i Iteration) Peer(r iterate.Rank) (iterate.Peer, error) {
	if int(r) < 0 || int(r) >= len(i.Blocks) {
		return nil, fmt.Errorf("%w: rank %d; there are %d blocks", ErrOptions, r, len(i.Blocks))
	}
	if i.MaxTime < 0 {
		return nil, fmt.Errorf("%w: a time bound of %v; it must not be negative", ErrOptions, i.MaxTime)
	}
	p, err := iterate.NewPeer(iterate.Config{
		Rank: r, Peers: len(i.Blocks), Scheme: cmp.Or(i.Scheme, iterate.Synchronous()),
		Tolerance: cmp.Or(i.Tolerance, DefaultTolerance), MaxSweeps: i.MaxSweeps,
	}, i.Blocks[r])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return p, nil
}

// Iterate runs the blocks as peers of this process, which exchange halos over the loopback interface. It
// returns when the run has ended. The errors are those of Solve.
func Iterate(ctx context.Context, i Iteration) (*Iterated, error) {
	if len(i.Blocks) == 0 {
		return nil, fmt.Errorf("%w: no blocks", ErrOptions)
	}
	peers := make([]iterate.Peer, len(i.Blocks))
	for r := range peers {
		var err error
		if peers[r], err = i.Peer(iterate.Rank(r)); err != nil {
			return nil, err
		}
	}
	out := &Iterated{X: make([][]float64, len(peers)), Peers: make([]runner.Result, len(peers))}
	links := func(r iterate.Rank) []iterate.Link { return peers[r].Links() }
	run := func(setup context.Context, r iterate.Rank, node runner.Node, names []string) error {
		one, err := runner.New(setup, runner.Config{
			Peer: peers[r], Rank: r, Points: i.Blocks[r].Values(), Node: node, Names: names, MaxTime: i.MaxTime, Log: i.Log,
		})
		if err != nil {
			return err
		}
		defer one.Close()
		if out.Peers[r], err = one.Run(ctx); err != nil {
			return err
		}
		out.X[r] = make([]float64, i.Blocks[r].Values())
		if one.Solution(out.X[r]); out.Peers[r].Reason == iterate.Diverged {
			clear(out.X[r])
			i.Blocks[r].Start(out.X[r]) // no better values are known
		}
		return nil
	}
	if err := together(ctx, len(peers), links, i.Log, run); err != nil {
		return nil, err
	}
	out.Reason = out.Peers[0].Reason
	return out, ended(ctx, out.Reason)
}
