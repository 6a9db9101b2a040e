// Command linear adds an iteration to the program obstacle: Jacobi's method for a dense system of linear equations. The
// commands that solve, compare and simulate obstacle problems do so with it:
//
//	go run ./examples/linear solve linear --peers 4 --scheme async
//	go run ./examples/linear compare linear --peers 4
//	go run ./examples/linear simulate linear --model grid-10ms --machines 4
package main

import (
	"errors"
	"log"
	"math/rand/v2"
	"os"

	"gonum.org/v1/gonum/mat"

	"github.com/p2pdc/p2pdc/obstacle"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

func main() {
	c := catalog.New()
	if err := c.Problems.AddIteration(problems.Builtin{
		Name: "linear", Summary: "Jacobi's method for a dense, diagonally dominant system",
		Parameters: []problems.Parameter{{Name: "unknowns", Value: 120, Summary: "their number, 1 to 20000"}},
	}, newJacobi); err != nil {
		log.Fatal(err)
	}
	os.Exit(obstacle.Main(c))
}

// newJacobi returns the iteration x_i ← (b_i − Σ a_ij·x_j)/a_ii, j ≠ i.
func newJacobi(v []float64) (iterate.FixedPoint, error) {
	if v[0] < 1 || v[0] > 20000 {
		return iterate.FixedPoint{}, errors.New("unknowns: want 1 to 20000")
	}
	a, b := system(int(v[0]))
	return iterate.FixedPoint{Unknowns: int(v[0]), Block: func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
		return &rows{a: a, b: b, cuts: cuts, lo: cuts[rank], hi: cuts[rank+1]}, nil
	}}, nil
}

// rows are the equations lo to hi−1 of a·x = b, solved for the unknowns of the same numbers. For a
// diagonally dominant matrix Jacobi's method is a contraction in the maximum norm, so every
// scheme converges (Chazan and Miranker, Linear Algebra Appl. 2, 1969).
type rows struct {
	a      *mat.Dense
	b      *mat.VecDense
	cuts   []int
	lo, hi int
}

func (r *rows) Values() int { return r.hi - r.lo }

// Neighbours are all other peers: a row of a dense matrix reads every unknown. Ghost j is unknown j.
func (r *rows) Neighbours() (out []iterate.Neighbour) {
	for q := range len(r.cuts) - 1 {
		if lo, hi := r.cuts[q], r.cuts[q+1]; lo != r.lo {
			n := iterate.Neighbour{Rank: iterate.Rank(q), Send: span(0, r.Values()), Receive: span(lo, hi)}
			out = append(out, n)
		}
	}
	return out
}

func (r *rows) Start([]float64) {} // from zeros

func (r *rows) Relax(next, x, ghosts []float64) {
	for i := range next {
		row := r.a.RawRowView(r.lo + i)
		sum := r.b.AtVec(r.lo + i)
		for j, v := range row {
			switch {
			case j < r.lo || j >= r.hi:
				sum -= v * ghosts[j]
			case j != r.lo+i:
				sum -= v * x[j-r.lo]
			}
		}
		next[i] = sum / row[r.lo+i]
	}
}

func span(lo, hi int) []int {
	out := make([]int, hi-lo)
	for i := range out {
		out[i] = lo + i
	}
	return out
}

// system returns a diagonally dominant matrix and a right-hand side.
func system(unknowns int) (*mat.Dense, *mat.VecDense) {
	r := rand.New(rand.NewPCG(1, 2))
	a, b := mat.NewDense(unknowns, unknowns, nil), mat.NewVecDense(unknowns, nil)
	for i := range unknowns {
		sum := 0.0
		for j := range unknowns {
			v := r.Float64() - 0.5
			a.Set(i, j, v)
			sum += max(v, -v)
		}
		a.Set(i, i, 1.25*sum)
		b.SetVec(i, r.NormFloat64())
	}
	return a, b
}
