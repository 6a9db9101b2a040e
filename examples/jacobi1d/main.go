// Command jacobi1d is a small distributed iterative method written by a user with
// Send, Receive and Wait only: Jacobi's method for −u″ = π² sin πx on (0, 1), the
// interval cut among peers that exchange the values at the cuts. One word of its
// command line turns it from synchronous to asynchronous:
//
//	go run ./examples/jacobi1d sync
//	go run ./examples/jacobi1d async
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

func main() {
	word := "sync"
	switch len(os.Args) {
	case 1:
	case 2:
		word = os.Args[1]
	default:
		fmt.Fprintln(os.Stderr, "usage: jacobi1d [sync|async]")
		os.Exit(2)
	}
	var mode microproto.Mode
	switch word {
	case "sync":
		mode = microproto.ModeSynchronous
	case "async":
		mode = microproto.ModeAsynchronous
	default:
		fmt.Fprintf(os.Stderr, "jacobi1d: %q is neither sync nor async\n", word)
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := solve(ctx, mode, 47, 3, 1e-6)
	if err != nil {
		fmt.Fprintln(os.Stderr, "jacobi1d:", err)
		os.Exit(1)
	}
	fmt.Printf("%v: %d points, %d peers, residual %.1e after %d sweeps; largest error %.1e\n",
		mode, len(r.u), 3, r.residual, r.sweeps, r.worstError())
}

// worstError is the distance to the exact solution, sin πx.
func (r result) worstError() float64 {
	worst := 0.0
	for i, v := range r.u {
		x := float64(i+1) / float64(len(r.u)+1)
		worst = max(worst, math.Abs(v-math.Sin(math.Pi*x)))
	}
	return worst
}
