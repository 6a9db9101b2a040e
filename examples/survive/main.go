// Command survive loses one of its peers and goes on: go run ./examples/survive solve rod --peers 4 --scheme async
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

func main() {
	c := catalog.New()
	if err := c.Problems.AddIteration(problems.Builtin{Name: "rod", Summary: "heat along a rod"}, newRod); err != nil {
		log.Fatal(err)
	}
	code := obstacle.Main(c)
	_ = os.Remove(crashed(os.Getpid()))
	os.Exit(code)
}

// newRod returns 2.02·x_i = x_{i−1} + x_{i+1} + 1 on 48 points, with 0 beyond the ends: a contraction in the maximum norm.
func newRod([]float64) (iterate.FixedPoint, error) {
	return iterate.FixedPoint{Unknowns: 48, Block: func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
		p := &part{size: cuts[rank+1] - cuts[rank], crashes: rank == 1}
		for side, q := range []iterate.Rank{rank - 1, rank + 1} { // the left one sends ghost 0, the right one 1
			if q >= 0 && int(q) < len(cuts)-1 {
				p.beside = append(p.beside, iterate.Neighbour{Rank: q, Send: []int{side * (p.size - 1)}, Receive: []int{side}})
			}
		}
		return p, nil
	}}, nil
}

type part struct {
	size, relaxed int
	crashes       bool
	beside        []iterate.Neighbour
}

func (p *part) Values() int                     { return p.size }
func (p *part) Neighbours() []iterate.Neighbour { return p.beside }
func (p *part) Start([]float64)                 {} // from zeros
func (p *part) Relax(next, x, ghosts []float64) {
	all := append(append([]float64{0}, x...), 0)
	for _, q := range p.beside {
		all[q.Receive[0]*(p.size+1)] = ghosts[q.Receive[0]]
	}
	for i := range next {
		next[i] = (all[i] + all[i+2] + 1) / 2.02
	}
	if p.relaxed++; p.crashes && p.relaxed == 100 && os.Mkdir(crashed(os.Getppid()), 0o700) == nil {
		os.Exit(1)
	}
}

func crashed(launcher int) string { return fmt.Sprintf("%s/survive-%d", os.TempDir(), launcher) } // of a folder
