// Command linear solves a dense system of linear equations by Jacobi's method, its rows divided among
// peers. One word turns the iteration from synchronous to asynchronous or hybrid; a second word,
// simulate, runs the same blocks on a simulated cluster of two sites:
//
//	go run ./examples/linear [sync|async|hybrid [simulate]]
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"gonum.org/v1/gonum/mat"

	"github.com/p2pdc/p2pdc/examples/internal/run"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

const (
	unknowns = 120
	peers    = 4
)

// rows are the equations lo to hi−1 of a·x = b, solved for the unknowns of the same numbers. For a
// diagonally dominant matrix Jacobi's method is a contraction in the maximum norm, so every
// scheme converges (Chazan and Miranker, Linear Algebra Appl. 2, 1969).
type rows struct {
	a      *mat.Dense
	b      *mat.VecDense
	lo, hi int
	bounds []int // of all blocks
}

func (r *rows) Values() int { return r.hi - r.lo }

// Neighbours are all other peers: a row of a dense matrix reads every unknown. Ghost j is unknown j.
func (r *rows) Neighbours() (out []iterate.Neighbour) {
	for q := range len(r.bounds) - 1 {
		if lo, hi := r.bounds[q], r.bounds[q+1]; lo != r.lo {
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
func system() (*mat.Dense, *mat.VecDense) {
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

// blocks divides the rows of a system.
func blocks(a *mat.Dense, b *mat.VecDense) (out []iterate.Block) {
	bounds := []int{0}
	for q := range peers {
		bounds = append(bounds, unknowns*(q+1)/peers)
	}
	for q := range peers {
		out = append(out, &rows{a: a, b: b, lo: bounds[q], hi: bounds[q+1], bounds: bounds})
	}
	return out
}

func main() {
	if err := show(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// show solves the system and compares the answer with a direct solution.
func show(ctx context.Context, w io.Writer, words []string) error {
	a, b := system()
	x, err := run.Run(ctx, w, words, solver.Iteration{Blocks: blocks(a, b), Tolerance: 1e-10})
	if err != nil {
		return err
	}
	var direct, difference mat.VecDense
	if err := direct.SolveVec(a, b); err != nil {
		return err
	}
	difference.SubVec(mat.NewVecDense(unknowns, x), &direct)
	_, err = fmt.Fprintf(w, "largest difference from LU: %.1e\n", mat.Norm(&difference, math.Inf(1)))
	return err
}
