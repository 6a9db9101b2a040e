package solver

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// Iteration says how Iterate runs an iteration of any kind.
type Iteration struct {
	Blocks    []iterate.Block   // of the peers, by rank
	Scheme    iterate.Scheme    // nil: iterate.Synchronous()
	Tolerance float64           // relative residual ‖x − F(x)‖₂; 0: DefaultTolerance
	MaxSweeps iterate.Iteration // of a peer; 0: no bound
	MaxTime   time.Duration     // 0: no bound
	Log       zerolog.Logger    // its zero value logs nothing
}

// Iterated is the result of Iterate.
type Iterated struct {
	X      [][]float64 // values of the blocks, by rank
	Reason iterate.Reason
	Peers  []runner.Result // by rank
}

// Peer returns the peer of a rank, for a run that Iterate does not make: in a simulation or over several
// processes.
func (i Iteration) Peer(r iterate.Rank) (iterate.Peer, error) {
	if int(r) < 0 || int(r) >= len(i.Blocks) {
		return nil, fmt.Errorf("%w: rank %d of %d blocks", ErrOptions, r, len(i.Blocks))
	}
	if i.Scheme == nil {
		i.Scheme = iterate.Synchronous()
	}
	if i.Tolerance == 0 {
		i.Tolerance = DefaultTolerance
	}
	c := iterate.Config{Rank: r, Peers: len(i.Blocks), Scheme: i.Scheme, Tolerance: i.Tolerance, MaxSweeps: i.MaxSweeps}
	p, err := iterate.NewPeer(c, i.Blocks[r])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return p, nil
}

// Iterate runs the blocks as peers of this process, which exchange halos over the loopback interface.
// It returns when the run has ended; see Solve for the errors.
func Iterate(ctx context.Context, i Iteration) (*Iterated, error) {
	peers := make([]iterate.Peer, len(i.Blocks))
	for r := range peers {
		p, err := i.Peer(iterate.Rank(r))
		if err != nil {
			return nil, err
		}
		peers[r] = p
	}
	if len(peers) == 0 {
		return nil, fmt.Errorf("%w: no blocks", ErrOptions)
	}
	out := &Iterated{X: make([][]float64, len(peers)), Peers: make([]runner.Result, len(peers))}
	links := func(r iterate.Rank) []iterate.Link { return peers[r].Links() }
	err := together(ctx, len(peers), links, i.Log, func(ctx context.Context, r iterate.Rank, node runner.Node, names []string) error {
		one, err := runner.New(ctx, runner.Config{
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
		one.Solution(out.X[r])
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Reason = out.Peers[0].Reason
	return out, ended(ctx, out.Reason)
}
