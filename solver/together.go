package solver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// together runs peers that are all in this process, each in a goroutine over a node of its own on the
// loopback interface. The first error ends the others. A single peer gets no node.
func together(ctx context.Context, peers int, links func(iterate.Rank) []iterate.Link, log zerolog.Logger,
	run func(ctx context.Context, r iterate.Rank, node runner.Node, names []string) error) error {
	names := make([]string, peers)
	for r := range names {
		names[r] = fmt.Sprintf("peer-%d", r)
	}
	if peers == 1 {
		return run(ctx, 0, nil, names)
	}
	// The end of ctx is an early end of the run, which the peers agree on over their nodes: these stay.
	failed, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	nodes, err := listen(names, log)
	defer func() {
		for _, n := range nodes {
			_ = n.Abort()
		}
	}()
	if err != nil {
		return err
	}
	context.AfterFunc(failed, func() {
		for _, n := range nodes {
			_ = n.Abort() // ends every call that waits for a peer
		}
	})
	errs := make([]error, peers)
	var all sync.WaitGroup
	for r, n := range nodes {
		all.Go(func() {
			err := connect(ctx, n, links(iterate.Rank(r)), nodes, names)
			if err == nil {
				err = run(ctx, iterate.Rank(r), runner.Over(n), names)
			}
			if err != nil {
				errs[r] = fmt.Errorf("peer %d: %w", r, err)
				fail(errs[r])
			}
		})
	}
	all.Wait()
	if cause := context.Cause(failed); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause // the others follow from the first one
	}
	return errors.Join(errs...)
}

// listen opens a node for every name. Only nodes that know a fresh key connect.
func listen(names []string, log zerolog.Logger) ([]*driver.Node, error) {
	key := driver.NewKey()
	var nodes []*driver.Node
	for _, name := range names {
		identity, err := driver.NewKeyIdentity(key, "solver")
		if err != nil {
			return nodes, err
		}
		link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
		if err != nil {
			return nodes, err
		}
		n, err := driver.New(driver.Config{
			Name: name, Identity: identity, Rails: []driver.Rail{{Network: p2psap.Ethernet, Link: link}}, Listen: "127.0.0.1:0",
			Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Run: "solver", Log: log,
		})
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// connect connects a node to the peers it exchanges anything with.
func connect(ctx context.Context, n *driver.Node, links []iterate.Link, nodes []*driver.Node, names []string) error {
	for _, l := range links {
		if err := n.Connect(ctx, names[l.Rank], nodes[l.Rank].ControlAddr().String()); err != nil {
			return err
		}
	}
	return nil
}
