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
// of it so that it can be halved often. most bounds the number of grids; 0 means no bound.
func NewHierarchy(dim int, n [3]int, strength [3]float64, most int) Hierarchy {
	h := Hierarchy{Dim: dim, Grids: [][3]int{n}}
	for most == 0 || len(h.Grids) < most {
		next, s := coarser(dim, n, strength)
		if next == n {
			break
		}
		h.Grids = append(h.Grids, next)
		n, strength = next, s
	}
	return h
}

// coarser returns the next grid and the strengths on it. It returns the same grid if there is none.
func coarser(dim int, n [3]int, strength [3]float64) ([3]int, [3]float64) {
	strongest := 0.0
	for a := range dim {
		if n[a] >= minCoarsenPoints {
			strongest = max(strongest, strength[a])
		}
	}
	next := n
	for a := range dim {
		if n[a] < minCoarsenPoints || strength[a] < weakCoupling*strongest {
			continue
		}
		next[a] = coarsePoints(n[a])
		ratio := float64(next[a]+1) / float64(n[a]+1)
		strength[a] *= ratio * ratio
	}
	return next, strength
}

// coarsePoints returns the number of points of the next coarser grid on an axis of n points: (n − 1)/2 if the coarse
// points then coincide with fine points, else the number near n/2 whose intervals can be halved most often.
func coarsePoints(n int) int {
	if n%2 == 1 {
		return (n - 1) / 2
	}
	middle := float64(n+1) / 2
	reach := max(0.5, middle/8)
	best, score := 0, 0.0
	for m := int(math.Ceil(middle - reach)); float64(m) <= middle+reach; m++ { // m intervals
		far := (float64(m) - middle) / middle
		s := float64(bits.TrailingZeros(uint(m))) - float64(40*far*far)
		if best == 0 || s > score {
			best, score = m, s
		}
	}
	return best - 1
}

// Nested reports whether the points of grid l+1 coincide with points of grid l.
func (h *Hierarchy) Nested(l int) bool {
	for a := range h.Dim {
		f, c := h.Grids[l][a], h.Grids[l+1][a]
		if f != c && f != 2*c+1 {
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
	power := [4]string{"", "", "²", "³"}[dim]
	cube := true
	parts := make([]string, dim)
	for a := range dim {
		cube = cube && n[a] == n[0]
		parts[a] = fmt.Sprint(n[a])
	}
	if cube {
		return fmt.Sprint(n[0]) + power
	}
	return strings.Join(parts, "×")
}

func points(n [3]int) int { return n[0] * n[1] * n[2] }
