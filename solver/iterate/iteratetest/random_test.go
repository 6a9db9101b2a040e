package iteratetest

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

var networks = flag.Int("networks", 2, "networks for each scheme of a drawn iteration")

// affine is x ← M·x + b with a sparse M whose rows sum to at most 0.95 in magnitude: a contraction in
// the maximum norm, however it is divided.
type affine struct {
	own        int
	rows       [][]term
	b          []float64
	neighbours []iterate.Neighbour
}

type term struct {
	ghost bool
	at    int
	v     float64
}

func (a *affine) Values() int                     { return a.own }
func (a *affine) Neighbours() []iterate.Neighbour { return a.neighbours }
func (a *affine) Start(x []float64)               { copy(x, a.b) }

func (a *affine) Relax(next, x, ghosts []float64) {
	for i, row := range a.rows {
		next[i] = a.b[i]
		for _, t := range row {
			if t.ghost {
				next[i] += t.v * ghosts[t.at]
			} else {
				next[i] += t.v * x[t.at]
			}
		}
	}
}

// drawAffine draws blocks of different sizes. Some peers read others that do not read them, and
// some exchange nothing with any.
func drawAffine(t *rapid.T) []iterate.Block {
	peers := rapid.IntRange(1, 6).Draw(t, "peers")
	blocks := make([]*affine, peers)
	for r := range blocks {
		n := rapid.IntRange(1, 5).Draw(t, "values")
		blocks[r] = &affine{own: n, rows: make([][]term, n), b: make([]float64, n)}
	}
	reads := make([][]map[int]int, peers) // by reader and owner: own index → ghost
	ghosts := make([]int, peers)
	for r, a := range blocks {
		reads[r] = make([]map[int]int, peers)
		for q := range reads[r] {
			reads[r][q] = map[int]int{}
		}
		for i := range a.rows {
			a.b[i] = rapid.Float64Range(-5, 5).Draw(t, "b")
			left := 0.95
			for range rapid.IntRange(0, 4).Draw(t, "terms") {
				q := rapid.IntRange(0, peers-1).Draw(t, "owner")
				x := term{
					at: rapid.IntRange(0, blocks[q].own-1).Draw(t, "column"),
					v:  left * rapid.Float64Range(-0.9, 0.9).Draw(t, "v"),
				}
				left -= max(x.v, -x.v)
				if q != r {
					at, ok := reads[r][q][x.at]
					if !ok {
						at = ghosts[r]
						reads[r][q][x.at] = at
						ghosts[r]++
					}
					x.ghost, x.at = true, at
				}
				a.rows[i] = append(a.rows[i], x)
			}
		}
	}
	out := make([]iterate.Block, peers)
	for r, a := range blocks {
		for q := range peers {
			n := iterate.Neighbour{Rank: iterate.Rank(q)}
			for i := range a.own {
				if _, ok := reads[q][r][i]; ok {
					n.Send = append(n.Send, i)
				}
			}
			for i := range blocks[q].own {
				if at, ok := reads[r][q][i]; ok {
					n.Receive = append(n.Receive, at)
				}
			}
			if len(n.Send)+len(n.Receive) > 0 {
				a.neighbours = append(a.neighbours, n)
			}
		}
		out[r] = a
	}
	return out
}

// Every run of every scheme ends, and none ends with a residual above its tolerance, for any network.
func TestDrawnContractionsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Suite{
			Blocks:    drawAffine(t),
			Tolerance: rapid.SampledFrom([]float64{1e-2, 1e-6, 1e-10}).Draw(t, "tolerance"),
			Seeds:     *networks,
		}
		require.NoError(t, s.Check())
	})
}
