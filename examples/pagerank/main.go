// Command pagerank adds an iteration to the program obstacle: it ranks the pages of a random graph. The commands that solve,
// compare and simulate obstacle problems do so with it:
//
//	go run ./examples/pagerank solve pagerank --peers 4 --scheme async --out ranks.npy
//	go run ./examples/pagerank compare pagerank --peers 4
//	go run ./examples/pagerank simulate pagerank --model grid-10ms --machines 4 --scheme async
package main

import (
	"errors"
	"log"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

const damping = 0.85 // Page, Brin, Motwani and Winograd, 1999

func main() {
	c := catalog.New()
	if err := c.Problems.AddIteration(problems.Builtin{
		Name: "pagerank", Summary: "the ranks of the pages of a random graph",
		Reference: "Page, Brin, Motwani, Winograd, The PageRank citation ranking, 1999",
		Parameters: []problems.Parameter{
			{Name: "pages", Value: 600, Summary: "the number of pages, 2 to 1e7"},
			{Name: "seed", Value: 3, Summary: "the graph's"},
		},
	}, newRanks); err != nil {
		log.Fatal(err)
	}
	os.Exit(obstacle.Main(c))
}

// newRanks returns the iteration x ← (1−d)/n + d·Pᵀx on the pages of a graph. P is the matrix of the random surfer. The
// iteration is a contraction in a weighted maximum norm, since Pᵀ is not negative and d times its spectral radius is d < 1.
// So every scheme converges (Lubachevsky and Mitra, J. ACM 33, 1986).
func newRanks(v []float64) (iterate.FixedPoint, error) {
	pages := int(v[0])
	if v[0] < 2 || v[0] > 1e7 {
		return iterate.FixedPoint{}, errors.New("pages: want 2 to 1e7")
	}
	g := newGraph(pages, uint64(v[1]))
	return iterate.FixedPoint{Unknowns: pages, Block: func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
		return newPart(g, cuts, int(rank)), nil
	}}, nil
}

// graph lists, for every page, the pages that it links to: at least one each.
type graph [][]int

// newGraph draws links that prefer pages of low number.
func newGraph(pages int, seed uint64) graph {
	r := rand.New(rand.NewPCG(seed, 4))
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

// part is the pages that one peer owns.
type part struct {
	pages, values int
	in            [][]link // by own page: the pages that link to it
	neighbours    []iterate.Neighbour
}

// link is a page that links to an own one: an own page, or a ghost.
type link struct {
	ghost bool
	at    int
	share float64 // d over the number of the page's links
}

func (p *part) Values() int                     { return p.values }
func (p *part) Neighbours() []iterate.Neighbour { return p.neighbours }

func (p *part) Start(x []float64) {
	for i := range x {
		x[i] = 1 / float64(p.pages)
	}
}

func (p *part) Relax(next, x, ghosts []float64) {
	for i, links := range p.in {
		sum := (1 - damping) / float64(p.pages)
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

// newPart returns the part of a rank. A peer sends another one only the ranks that its pages read.
func newPart(g graph, cuts []int, rank int) *part {
	owner := func(page int) int { // the last cut at or before the page
		i, _ := slices.BinarySearch(cuts, page+1)
		return i - 1
	}
	p := &part{pages: len(g), values: cuts[rank+1] - cuts[rank]}
	p.in = make([][]link, p.values)
	sent, received := map[int][]int{}, map[int][]int{} // by other rank: pages, ascending
	position := map[int]int{}                          // of a page among the ghosts
	for from, links := range g {
		for _, to := range links {
			q, r := owner(from), owner(to)
			if q == rank && r != rank && !slices.Contains(sent[r], from) {
				sent[r] = append(sent[r], from)
			}
			if r != rank {
				continue
			}
			l := link{at: from - cuts[rank], share: damping / float64(len(links))}
			if q != rank {
				if _, known := position[from]; !known {
					position[from] = len(position)
					received[q] = append(received[q], from)
				}
				l.ghost, l.at = true, position[from]
			}
			p.in[to-cuts[rank]] = append(p.in[to-cuts[rank]], l)
		}
	}
	for q := range len(cuts) - 1 {
		n := iterate.Neighbour{Rank: iterate.Rank(q)}
		for _, page := range sent[q] {
			n.Send = append(n.Send, page-cuts[rank])
		}
		for _, page := range received[q] {
			n.Receive = append(n.Receive, position[page])
		}
		if len(n.Send)+len(n.Receive) > 0 {
			p.neighbours = append(p.neighbours, n)
		}
	}
	return p
}
