package main

import (
	"context"
	"fmt"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

type node = *driver.Node

// newEpoch opens a node for every peer. Its name and its run contain the number of the epoch, so nothing that a peer of a
// former epoch sends is accepted.
func (s *supervisor) newEpoch(ctx context.Context, number int) (*epoch, error) {
	e := &epoch{supervisor: s, number: number}
	e.ctx, e.end = context.WithCancel(ctx)
	key := driver.NewKey()
	for r := range s.blocks {
		e.names = append(e.names, fmt.Sprintf("peer-%d.%d", r, number))
		n, err := listen(e.names[r], fmt.Sprintf("survive epoch %d", number), key)
		if err != nil {
			e.close()
			return nil, err
		}
		e.nodes = append(e.nodes, n)
	}
	return e, nil
}

func listen(name, run string, key driver.Key) (node, error) {
	identity, err := driver.NewKeyIdentity(key, "survive")
	if err != nil {
		return nil, err
	}
	link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	if err != nil {
		return nil, err
	}
	return driver.New(driver.Config{
		Name: name, Identity: identity, Rails: []driver.Rail{{Link: link}}, Listen: "127.0.0.1:0",
		Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Run: run,
	})
}

func (e *epoch) close() {
	e.end()
	for _, n := range e.nodes {
		_ = n.Abort()
	}
}
