// Package run runs the blocks of an example as its command line says, and prints what came out.
package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Run runs an iteration over sockets, or with the second word "simulate" on a simulated cluster, in the
// scheme of the first word ("sync" without any), and returns the values of all blocks, one after the other.
func Run(ctx context.Context, w io.Writer, words []string, i solver.Iteration) ([]float64, error) {
	if len(words) == 0 {
		words = []string{"sync"}
	}
	if len(words) > 2 || len(words) == 2 && words[1] != "simulate" {
		return nil, fmt.Errorf("usage: [sync|async|delay:K|hybrid [simulate]]")
	}
	clusters := make([]string, len(i.Blocks))
	for r := range clusters {
		clusters[r] = []string{"north", "south"}[2*r/len(clusters)]
	}
	var err error
	if i.Scheme, err = catalog.New().Scheme(words[0], clusters); err != nil {
		return nil, err
	}
	if len(words) == 2 {
		return simulated(ctx, w, i)
	}
	out, err := solver.Iterate(ctx, i)
	if err != nil {
		return nil, err
	}
	var sweeps []iterate.Iteration
	for _, p := range out.Peers {
		sweeps = append(sweeps, p.Sweeps)
	}
	fmt.Fprintf(w, "%s over sockets: %s after %v sweeps by peer, residual %.1e\n",
		i.Scheme.Name(), out.Reason, sweeps, out.Peers[0].Residual)
	return slices.Concat(out.X...), nil
}

// simulated runs the iteration on two sites, half of the peers on each.
func simulated(ctx context.Context, w io.Writer, i solver.Iteration) ([]float64, error) {
	cluster, err := clusterfile.Open("grid-10ms")
	if err != nil {
		return nil, err
	}
	model, err := cluster.Model(len(i.Blocks))
	if err != nil {
		return nil, err
	}
	peers := make([]iterate.Peer, len(i.Blocks))
	r, err := simulate.Run(ctx, simulate.Config{
		Model: model, Peers: len(peers), New: func(r iterate.Rank) (simulate.Peer, int, error) {
			p, err := i.Peer(r)
			peers[r] = p
			return p, i.Blocks[r].Values(), err
		},
	})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "%s on a simulated cluster: %s after %.0f sweeps and %v, residual %.1e\n",
		i.Scheme.Name(), r.Reason, r.Sweeps(), r.Virtual.Round(time.Millisecond), r.Residual)
	var x []float64
	for r, p := range peers {
		v := make([]float64, i.Blocks[r].Values())
		p.Solution(v)
		x = append(x, v...)
	}
	return x, nil
}
