// Command pagerank ranks the pages of a random graph whose pages are divided unevenly among peers. One
// word turns the iteration from synchronous to asynchronous or hybrid; a second word, simulate, runs
// the same blocks on a simulated cluster of two sites:
//
//	go run ./examples/pagerank [sync|async|hybrid [simulate]]
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/p2pdc/p2pdc/examples/internal/run"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

const (
	pages   = 600
	damping = 0.85 // Page, Brin, Motwani and Winograd, 1999
)

// graph lists, for every page, the pages that it links to: at least one each.
type graph [][]int

// newGraph draws links that prefer pages of low number.
func newGraph() graph {
	r := rand.New(rand.NewPCG(3, 4))
	g := make(graph, pages)
	for i := range g {
		for range 1 + r.IntN(8) {
			if j := int(float64(pages) * r.Float64() * r.Float64()); j != i && !slices.Contains(g[i], j) {
				g[i] = append(g[i], j)
			}
		}
		if len(g[i]) == 0 {
			g[i] = []int{(i + 1) % pages}
		}
	}
	return g
}

// part is the pages lo to hi−1. x ← (1−d)/n + d·Pᵀx, P the matrix of the random surfer, is a contraction
// in a weighted maximum norm, since Pᵀ is not negative and d times its spectral radius is d < 1. So
// every scheme converges (Lubachevsky and Mitra, J. ACM 33, 1986).
type part struct {
	lo, hi     int
	in         [][]link // by own page: the pages that link to it
	neighbours []iterate.Neighbour
}

// link is a page that links to an own one: an own page, or a ghost.
type link struct {
	ghost bool
	at    int
	share float64 // d over the number of the page's links
}

func (p *part) Values() int                     { return p.hi - p.lo }
func (p *part) Neighbours() []iterate.Neighbour { return p.neighbours }

func (p *part) Start(x []float64) {
	for i := range x {
		x[i] = 1.0 / pages
	}
}

func (p *part) Relax(next, x, ghosts []float64) {
	for i, links := range p.in {
		sum := (1 - damping) / pages
		for _, l := range links {
			if l.ghost {
				sum += l.share * ghosts[l.at]
			} else {
				sum += l.share * x[l.at]
			}
		}
		next[i] = sum
	}
}

// parts divides the pages at the bounds. A peer sends another one only the ranks that its pages read.
func parts(g graph, bounds []int) []iterate.Block {
	owner := func(page int) int { // the last bound at or before the page
		i, _ := slices.BinarySearch(bounds, page+1)
		return i - 1
	}
	peers := len(bounds) - 1
	sent := make([][][]int, peers) // from, to: pages, ascending
	for q := range sent {
		sent[q] = make([][]int, peers)
	}
	for from, links := range g {
		for _, to := range links {
			if q, r := owner(from), owner(to); q != r && !slices.Contains(sent[q][r], from) {
				sent[q][r] = append(sent[q][r], from)
			}
		}
	}
	out := make([]iterate.Block, peers)
	for r := range out {
		p := &part{lo: bounds[r], hi: bounds[r+1]}
		p.in = make([][]link, p.Values())
		position := map[int]int{} // of a page among the ghosts
		for q := range peers {
			n := iterate.Neighbour{Rank: iterate.Rank(q)}
			for _, page := range sent[r][q] {
				n.Send = append(n.Send, page-p.lo)
			}
			for _, page := range sent[q][r] {
				position[page] = len(position)
				n.Receive = append(n.Receive, position[page])
			}
			if len(n.Send)+len(n.Receive) > 0 {
				p.neighbours = append(p.neighbours, n)
			}
		}
		for from, links := range g {
			for _, to := range links {
				if to < p.lo || to >= p.hi {
					continue
				}
				l := link{at: from - p.lo, share: damping / float64(len(links))}
				if from < p.lo || from >= p.hi {
					l.ghost, l.at = true, position[from]
				}
				p.in[to-p.lo] = append(p.in[to-p.lo], l)
			}
		}
		out[r] = p
	}
	return out
}

func main() {
	if err := show(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// show ranks the pages and prints the first ones.
func show(ctx context.Context, w io.Writer, words []string) error {
	x, err := run.Run(ctx, w, words, solver.Iteration{Blocks: parts(newGraph(), uneven), Tolerance: 1e-10})
	if err != nil {
		return err
	}
	order := make([]int, pages)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[b], x[a]) })
	for _, page := range order[:3] {
		fmt.Fprintf(w, "page %3d: %.5f\n", page, x[page])
	}
	return nil
}

// uneven are the bounds of the peers' parts: one has half of the pages, another one a twentieth.
var uneven = []int{0, 300, 330, 450, pages}
