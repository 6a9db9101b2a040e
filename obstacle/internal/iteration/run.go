// Package iteration runs an iteration of the catalog on peers of this process, which exchange their values over
// sockets.
package iteration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// Config describes a run.
type Config struct {
	Block     func(rank iterate.Rank) (iterate.Block, error)
	Peers     int
	Scheme    iterate.Scheme
	Tolerance float64       // of the residual, relative to that of the starting values
	MaxSweeps uint64        // 0: no bound
	MaxTime   time.Duration // 0: no bound
	Catalog   *microproto.Catalog
	Policy    p2psap.Policy
	Stop      <-chan struct{} // closed to end the run early
	Log       zerolog.Logger
}

// Result is what one peer reports.
type Result struct {
	runner.Result
	Values []float64 // of its block
}

// Run runs the iteration and returns the results of all peers, by rank.
func Run(ctx context.Context, c Config) ([]Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	identity, err := driver.NewKeyIdentity(driver.NewKey(), "iteration")
	if err != nil {
		return nil, err
	}
	nodes, names := make([]*driver.Node, c.Peers), make([]string, c.Peers)
	for rank := range nodes {
		names[rank] = fmt.Sprint("peer-", rank)
		if nodes[rank], err = c.listen(names[rank], identity); err != nil {
			return nil, err
		}
		defer nodes[rank].Close()
	}
	results, errs := make([]Result, c.Peers), make([]error, c.Peers)
	var all sync.WaitGroup
	for rank := range nodes {
		all.Go(func() {
			if errs[rank] = c.run(ctx, rank, nodes, names, &results[rank]); errs[rank] != nil {
				errs[rank] = fmt.Errorf("peer %d: %w", rank, errs[rank])
				cancel()
			}
		})
	}
	all.Wait()
	return results, errors.Join(errs...)
}

func (c *Config) listen(name string, identity *driver.Identity) (*driver.Node, error) {
	link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	if err != nil {
		return nil, err
	}
	return driver.New(driver.Config{
		Name: name, Identity: identity, Rails: []driver.Rail{{Network: p2psap.Ethernet, Link: link}},
		Listen: "127.0.0.1:0", Catalog: c.Catalog, Policy: c.Policy, Run: "iteration", Log: c.Log,
	})
}

// run runs one peer.
func (c *Config) run(ctx context.Context, rank int, nodes []*driver.Node, names []string, out *Result) error {
	m := method{c.Block, c.Peers}
	methods := solver.Methods()
	if err := methods.Add(m); err != nil {
		return err
	}
	config := problem.Config{
		Problem: &problem.Problem{}, Rank: iterate.Rank(rank), Scheme: c.Scheme, Tolerance: c.Tolerance,
		MaxSweeps: iterate.Iteration(c.MaxSweeps), Method: problem.MethodConfig{Name: m.Name()},
		Partition: problem.Partition{Cuts: [3][]int{make([]int, c.Peers+1), {0, 1}, {0, 1}}},
	}
	for _, l := range m.Links(&config, config.Rank) {
		if err := nodes[rank].Connect(ctx, names[l.Rank], nodes[l.Rank].ControlAddr().String()); err != nil {
			return err
		}
	}
	r, err := runner.New(ctx, runner.Config{
		Solver: config, Methods: methods, Node: runner.Over(nodes[rank]), Names: names,
		MaxTime: c.MaxTime, Stop: c.Stop, Log: c.Log,
	})
	if err != nil {
		return err
	}
	defer r.Close()
	if out.Result, err = r.Run(ctx); err != nil {
		return err
	}
	out.Values = make([]float64, r.Box().Points())
	r.Solution(out.Values)
	return nil
}

// method makes the peers of an iteration for the runner. Of the configuration it uses what is not about a problem.
type method struct {
	block func(rank iterate.Rank) (iterate.Block, error)
	peers int
}

// Name implements problem.Method.
func (method) Name() string { return "iteration" }

// Check implements problem.Method.
func (method) Check(*problem.Config) error { return nil }

// Links implements problem.Method.
func (m method) Links(c *problem.Config, r iterate.Rank) []iterate.Link {
	of := *c
	of.Rank = r
	p, err := m.New(of)
	if err != nil {
		return nil // New reports it
	}
	return p.Links()
}

// New implements problem.Method.
func (m method) New(c problem.Config) (problem.Peer, error) {
	b, err := m.block(c.Rank)
	if err != nil {
		return nil, err
	}
	p, err := iterate.NewPeer(iterate.Config{
		Rank: c.Rank, Peers: m.peers, Scheme: c.Scheme, Tolerance: c.Tolerance, MaxSweeps: c.MaxSweeps,
	}, b)
	return peer{p, b.Values()}, err
}

// peer is the peer of a block, whose values it reports as a box on a line.
type peer struct {
	iterate.Peer
	values int
}

// Box implements problem.Peer.
func (p peer) Box() problem.Box { return problem.Box{Hi: [3]int{p.values, 1, 1}} }

// Describe implements problem.Peer.
func (peer) Describe() string { return "" }
