// Command survive runs an iteration that goes on when one of its peers is lost. The survivors keep their values, and the
// block of the lost peer is computed again from the values around it:
//
//	go run ./examples/survive [sync|async|hybrid]
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := show(ctx, os.Stdout, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// show compares a run without a loss with two that lose a peer: one repairs its block, the other one begins it again.
func show(ctx context.Context, w io.Writer, words []string) error {
	if len(words) == 0 {
		words = []string{"sync"}
	}
	if len(words) != 1 {
		return fmt.Errorf("usage: survive [sync|async|hybrid]")
	}
	scheme, err := catalog.New().Scheme(words[0], []string{"north", "north", "south", "south"})
	if err != nil {
		return err
	}
	middle := []kill{{epoch: 0, rank: 1, sweeps: 800}}
	for _, c := range []struct {
		what string
		run  supervisor
	}{
		{"no loss", supervisor{}},
		{"a lost block, repaired", supervisor{kills: middle}},
		{"a lost block, begun again", supervisor{kills: middle, forget: true}},
	} {
		s := c.run
		s.scheme, s.blocks = scheme, parts(4)
		if err := s.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		fmt.Fprintf(w, "%-26s lost %v, %d sweeps, hottest point %.4f\n", c.what+":", s.lost, s.sweeps, hottest(s.x))
	}
	return nil
}

func hottest(x [][]float64) (most float64) {
	for _, block := range x {
		for _, v := range block {
			most = max(most, v)
		}
	}
	return most
}
