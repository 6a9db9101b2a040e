package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// sweepsARound is how many sweeps pass between two checks of the residual.
const sweepsARound = 200

type result struct {
	u        []float64
	residual float64
	sweeps   int // of each peer
}

// solve runs the method on peers that communicate over UDP on the loopback interface.
// Here they are goroutines; nothing but addresses would change between machines.
func solve(ctx context.Context, mode microproto.Mode, points, peers int, tolerance float64) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key := driver.NewKey()
	nodes := make([]*driver.Node, peers)
	for i := range nodes {
		n, err := listen(i, key)
		if err != nil {
			return result{}, err
		}
		defer n.Close()
		nodes[i] = n
	}
	r := result{u: make([]float64, points)}
	errs := make([]error, peers)
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			lo, hi := i*points/peers, (i+1)*points/peers
			b := newBlock(points, lo, hi)
			residual, sweeps, err := b.run(ctx, mode, nodes, i, tolerance)
			copy(r.u[lo:hi], b.u[1:])
			if i == 0 {
				r.residual, r.sweeps = residual, sweeps
			}
			if err != nil {
				errs[i] = fmt.Errorf("peer %d: %w", i, err)
				cancel()
			}
		})
	}
	all.Wait()
	return r, errors.Join(errs...)
}

func name(i int) string { return fmt.Sprintf("peer-%d", i) }

// listen makes a node that takes only peers that have the key. Peers in processes of their
// own would read a secret from a file instead, and call driver.NewSaltedIdentity.
func listen(i int, key driver.Key) (*driver.Node, error) {
	identity, err := driver.NewKeyIdentity(key, "jacobi1d")
	if err != nil {
		return nil, err
	}
	link, err := ether.Open(ether.Config{Listen: "127.0.0.1"})
	if err != nil {
		return nil, err
	}
	return driver.New(driver.Config{
		Name: name(i), Identity: identity, Rails: []driver.Rail{{Link: link}}, Listen: "127.0.0.1:0",
		Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Run: "jacobi1d",
	})
}

func newBlock(points, lo, hi int) *block {
	n := hi - lo + 2
	b := &block{u: make([]float64, n), f: make([]float64, n), next: make([]float64, n), h: 1 / float64(points+1)}
	for i := range b.f {
		b.f[i] = math.Pi * math.Pi * math.Sin(math.Pi*b.h*float64(lo+i))
	}
	return b
}

// run opens two sessions with each neighbour and relaxes until all agree.
func (b *block) run(ctx context.Context, mode microproto.Mode, nodes []*driver.Node, i int, tolerance float64) (
	float64, int, error,
) {
	for _, j := range []int{i - 1, i + 1} {
		if j < 0 || j >= len(nodes) {
			continue
		}
		s := &side{ghost: 0, edge: 1, lower: true, in: p2psap.Slot{Tag: halo, Data: make([]byte, 8)}}
		if j > i {
			s.ghost, s.edge, s.lower = len(b.u)-1, len(b.u)-2, false
		}
		if err := nodes[i].Connect(ctx, name(j), nodes[j].ControlAddr().String()); err != nil {
			return 0, 0, err
		}
		var err error
		if s.halo, err = nodes[i].Open(ctx, name(j), p2psap.OpenOptions{
			Name: "halo", Mode: mode, Slots: []p2psap.SlotSpec{{Tag: halo, Length: 8}},
		}); err != nil {
			return 0, 0, err
		}
		if s.agreement, err = nodes[i].Open(ctx, name(j), p2psap.OpenOptions{
			Name: "agreement", Mode: microproto.ModeSynchronous,
			Slots: []p2psap.SlotSpec{{Tag: check, Length: 8}, {Tag: worst, Length: 8}},
		}); err != nil {
			return 0, 0, err
		}
		b.sides = append(b.sides, s)
	}
	for round := 1; ; round++ {
		if err := b.relaxFor(ctx, 1+(round-1)*sweepsARound, sweepsARound); err != nil {
			return 0, 0, err
		}
		residual, err := b.residual(ctx, round)
		if err != nil || residual <= tolerance {
			return residual, round * sweepsARound, err
		}
	}
}
