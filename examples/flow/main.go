// Command flow finds the cheapest flow through a network whose arcs have convex costs, by relaxation of
// the prices of its nodes: the dual method of Bertsekas and El Baz (SIAM J. Control Optim. 25,
// 1987), the first application that P2PSAP was written for. One word turns it from synchronous to
// asynchronous or hybrid; a second word, simulate, runs the same blocks on a simulated cluster:
//
//	go run ./examples/flow [sync|async|hybrid [simulate]]
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/p2pdc/p2pdc/examples/internal/run"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// arc carries a flow f with −capacity ≤ f ≤ capacity from one node to another at the cost
// resistance·f²/2.
type arc struct {
	from, to             int
	resistance, capacity float64
}

// flow returns the arc's cheapest flow at the prices of its ends: the derivative of the cost equals their
// difference, as far as the capacity allows.
func (a *arc) flow(from, to float64) float64 {
	return max(-a.capacity, min(a.capacity, (from-to)/a.resistance))
}

// network has nodes with supplies, which sum to 0. Node 0 is the ground: its price is 0.
type network struct {
	supply []float64
	arcs   []arc
	at     [][]int // arcs of each node
}

const side = 8

// newNetwork returns a square grid of nodes, whose arcs have capacities that hold some of them back.
func newNetwork(side int) *network {
	r := rand.New(rand.NewPCG(5, 6))
	n := &network{supply: make([]float64, side*side), at: make([][]int, side*side)}
	join := func(i, j int) {
		n.at[i], n.at[j] = append(n.at[i], len(n.arcs)), append(n.at[j], len(n.arcs))
		n.arcs = append(n.arcs, arc{i, j, 0.5 + r.Float64(), 0.4 + 0.8*r.Float64()})
	}
	for i := range n.supply {
		if i%side < side-1 {
			join(i, i+1)
		}
		if i+side < len(n.supply) {
			join(i, i+side)
		}
	}
	for i := 1; i < len(n.supply); i++ {
		n.supply[i] = 0.3 * r.NormFloat64()
		n.supply[0] -= n.supply[i]
	}
	n.supply[0], n.supply[len(n.supply)-1] = n.supply[0]+1, n.supply[len(n.supply)-1]-1
	return n
}

// surplus returns what a node gets in excess, from its supply and its arcs, at a price.
func (n *network) surplus(node int, price float64, prices func(int) float64) float64 {
	s := n.supply[node]
	for _, i := range n.at[node] {
		if a := &n.arcs[i]; a.from == node {
			s -= a.flow(price, prices(a.to))
		} else {
			s += a.flow(prices(a.from), price)
		}
	}
	return s
}

// relax returns the price at which the node's surplus is 0, given the prices of its neighbours. The
// surplus falls with the price, in straight lines between the prices at which an arc reaches its
// capacity.
func (n *network) relax(node int, prices func(int) float64) float64 {
	var breaks []float64
	for _, i := range n.at[node] {
		a := &n.arcs[i]
		other := prices(a.from + a.to - node)
		breaks = append(breaks, other-a.resistance*a.capacity, other+a.resistance*a.capacity)
	}
	slices.Sort(breaks)
	lo := breaks[0]
	below := n.surplus(node, lo, prices)
	for _, hi := range breaks[1:] {
		above := n.surplus(node, hi, prices)
		if below >= 0 && above <= 0 && below > above {
			return lo + (hi-lo)*below/(below-above)
		}
		lo, below = hi, above
	}
	return math.NaN() // no flow within the capacities meets the supplies
}

// region is the nodes lo to hi−1. The map of all relaxations is monotone, and does not enlarge the
// distance of prices in the maximum norm; with the ground's price fixed, asynchronous relaxation
// converges (Bertsekas and El Baz, section 4).
type region struct {
	n          *network
	lo, hi     int
	neighbours []iterate.Neighbour
	position   map[int]int // of a node among the ghosts
}

func (r *region) Values() int                     { return r.hi - r.lo }
func (r *region) Neighbours() []iterate.Neighbour { return r.neighbours }
func (r *region) Start([]float64)                 {}

func (r *region) Relax(next, x, ghosts []float64) {
	prices := func(node int) float64 {
		if node >= r.lo && node < r.hi {
			return x[node-r.lo]
		}
		return ghosts[r.position[node]]
	}
	for i := range next {
		if next[i] = 0; r.lo+i > 0 {
			next[i] = r.n.relax(r.lo+i, prices)
		}
	}
}

// regions divides the nodes among peers.
func regions(n *network, peers int) []iterate.Block {
	nodes := len(n.supply)
	owner := func(node int) int { return (node*peers + peers - 1) / nodes }
	bound := func(q int) int {
		for i := range nodes {
			if owner(i) >= q {
				return i
			}
		}
		return nodes
	}
	out := make([]iterate.Block, peers)
	for q := range out {
		r := &region{n: n, lo: bound(q), hi: bound(q + 1), position: map[int]int{}}
		for p := range peers {
			e := iterate.Neighbour{Rank: iterate.Rank(p)}
			var own, theirs []int
			for _, a := range n.arcs {
				i, j := a.from, a.to
				if owner(i) == p {
					i, j = j, i
				}
				if p != q && owner(i) == q && owner(j) == p {
					own, theirs = append(own, i), append(theirs, j)
				}
			}
			for _, i := range distinct(own) {
				e.Send = append(e.Send, i-r.lo)
			}
			for _, j := range distinct(theirs) {
				r.position[j] = len(r.position)
				e.Receive = append(e.Receive, r.position[j])
			}
			if len(own) > 0 {
				r.neighbours = append(r.neighbours, e)
			}
		}
		out[q] = r
	}
	return out
}

func distinct(nodes []int) []int {
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

func main() {
	if err := show(context.Background(), os.Stdout, os.Args[1:], newNetwork(side)); err != nil {
		log.Fatal(err)
	}
}

// show prints the cost of the flow and how well it meets the supplies.
func show(ctx context.Context, w io.Writer, words []string, n *network) error {
	prices, err := run.Run(ctx, w, words, solver.Iteration{Blocks: regions(n, 4), Tolerance: 1e-10})
	if err != nil {
		return err
	}
	cost, full, worst := 0.0, 0, 0.0
	for _, a := range n.arcs {
		f := a.flow(prices[a.from], prices[a.to])
		cost += a.resistance * f * f / 2
		if math.Abs(f) == a.capacity {
			full++
		}
	}
	for i := range n.supply {
		worst = max(worst, math.Abs(n.surplus(i, prices[i], func(j int) float64 { return prices[j] })))
	}
	_, err = fmt.Fprintf(w, "cost %.6f, %d of %d arcs at their capacity, largest surplus below 1e-6: %v\n",
		cost, full, len(n.arcs), worst < 1e-6)
	return err
}
