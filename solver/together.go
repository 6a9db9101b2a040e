package solver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// together runs all peers in this process, each in a goroutine over its own node on the loopback
// interface. The first error ends the other peers. A single peer has no node. The context of run, setup, ends
// with the first error, and not with ctx.
func together(ctx context.Context, peers int, links func(iterate.Rank) []iterate.Link, log *slog.Logger,
	run func(setup context.Context, r iterate.Rank, node runner.Node, names []string) error) error {
	names := make([]string, peers)
	for r := range names {
		names[r] = fmt.Sprintf("peer-%d", r)
	}
	if peers == 1 {
		return run(context.WithoutCancel(ctx), 0, nil, names)
	}
	// When ctx ends, the peers agree on an early end over their nodes, so these must be connected and stay open.
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
			_ = n.Abort() // ends all calls that wait for a peer
		}
	})
	var all sync.WaitGroup
	for r, n := range nodes {
		all.Go(func() {
			err := connect(failed, n, links(iterate.Rank(r)), nodes, names)
			if err == nil {
				err = run(failed, iterate.Rank(r), runner.Over(n), names)
			}
			if err != nil {
				fail(fmt.Errorf("peer %d: %w", r, err))
			}
		})
	}
	all.Wait()
	return context.Cause(failed) // the first error; the others are its consequences
}

// listen opens a node for every name. A fresh shared key authenticates them to each other.
func listen(names []string, log *slog.Logger) ([]*driver.Node, error) {
	key := driver.NewKey()
	var nodes []*driver.Node
	loopback, err := driver.Loopback()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		identity, err := driver.NewKeyIdentity(key, "solver")
		if err != nil {
			return nodes, err
		}
		link, err := ether.Open(ether.Config{Listen: loopback})
		if err != nil {
			return nodes, err
		}
		n, err := driver.New(driver.Config{
			Name: name, Identity: identity, Rails: []driver.Rail{{Network: p2psap.Ethernet, Link: link}}, Listen: net.JoinHostPort(loopback, "0"),
			Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Run: "solver", Log: log,
		})
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// connect connects a node to the peers of its links.
func connect(ctx context.Context, n *driver.Node, links []iterate.Link, nodes []*driver.Node, names []string) error {
	for _, l := range links {
		if err := n.Connect(ctx, names[l.Rank], nodes[l.Rank].ControlAddr().String()); err != nil {
			return err
		}
	}
	return nil
}
