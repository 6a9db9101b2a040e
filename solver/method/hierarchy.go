package method

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// Hierarchy is the list of the grids of multigrid, finest first. It depends on the whole grid alone, so
// that all peers of a run compute the same.
type Hierarchy struct {
	Dim   int
	Grids [][3]int // interior points per axis; 1 on unused axes
}

const (
	// minCoarsenPoints is the number of points below which an axis is not coarsened.
	minCoarsenPoints = 3
	// weakCoupling is the coupling along an axis, relative to the strongest, below which the axis is not
	// coarsened: relaxation smooths little along it, and a coarser grid could not represent the error.
	weakCoupling = 0.3
)

// NewHierarchy returns the grids below one of n points. strength is the coupling strength of the
// operator along each axis in any unit (see Strength). An axis with weaker coupling is not
// coarsened until the others have become as weak. If n + 1 is odd, the next n is chosen near half
// of it so that it can be halved often.
func NewHierarchy(dim int, n [3]int, strength [3]float64) Hierarchy {
	h := Hierarchy{Dim: dim}
	for len(h.Grids) == 0 || n != h.Grids[h.Coarsest()] {
		h.Grids = append(h.Grids, n)
		strongest := 0.0
		for a := range dim {
			if n[a] >= minCoarsenPoints {
				strongest = max(strongest, strength[a])
			}
		}
		for a := range dim {
			if n[a] < minCoarsenPoints || strength[a] < weakCoupling*strongest {
				continue
			}
			next := coarsePoints(n[a])
			ratio := float64(next+1) / float64(n[a]+1)
			strength[a] *= ratio * ratio
			n[a] = next
		}
	}
	return h
}

// coarsePoints returns the number of points of the next coarser grid on an axis of n points: (n − 1)/2 if the coarse
// points then coincide with fine points, else the number near n/2 whose intervals can be halved most often. Four points
// become two: the interpolation from a single point would miss a region of another diffusion beside it.
func coarsePoints(n int) int {
	if n%2 == 1 {
		return (n - 1) / 2
	}
	middle := float64(n+1) / 2
	reach := max(0.5, middle/8)
	best, score := 0, 0.0
	for m := max(3, int(math.Ceil(middle-reach))); float64(m) <= middle+reach; m++ { // m intervals
		far := (float64(m) - middle) / middle
		s := float64(bits.TrailingZeros(uint(m))) - float64(40*far*far)
		if best == 0 || s > score {
			best, score = m, s
		}
	}
	return best - 1
}

// Nested reports whether the points of grid l+1 coincide with points of grid l.
func (h *Hierarchy) Nested(l int) bool { return nested(h.Grids[l], h.Grids[l+1]) }

func nested(fine, coarse [3]int) bool {
	for a, f := range fine {
		if c := coarse[a]; f != c && f != 2*c+1 {
			return false
		}
	}
	return true
}

// Coarsest returns the index of the last level.
func (h *Hierarchy) Coarsest() int { return len(h.Grids) - 1 }

// String returns the grids as text: "255³ 127³ … 1" or "64×64×9 31×31×9 …".
func (h *Hierarchy) String() string {
	var out []string
	for _, n := range h.Grids {
		out = append(out, gridName(h.Dim, n))
	}
	return strings.Join(out, " ")
}

func gridName(dim int, n [3]int) string {
	name, cube := fmt.Sprint(n[0]), true
	for a := 1; a < dim; a++ {
		cube = cube && n[a] == n[0]
		name += fmt.Sprint("×", n[a])
	}
	if cube {
		return fmt.Sprint(n[0]) + [4]string{2: "²", 3: "³"}[dim]
	}
	return name
}

func points(n [3]int) int { return n[0] * n[1] * n[2] }
