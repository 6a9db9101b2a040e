package repair

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// relax computes the values of lost blocks of an iteration, one after the other, by relaxing each with the known values around it.
// A block that reads one that is repaired later reads its starting values. Blocks that cannot be repaired keep theirs.
func (h *Hole) relax() (Repaired, error) {
	out := Repaired{Residual: math.NaN(), ErrorBound: math.NaN()}
	out.Box, out.Points = enclosing(h.Boxes)
	out.u = make([]float64, out.Box.Points())
	cuts := h.Partition.Cuts[0]
	done := map[iterate.Rank][]float64{}
	var all []error
	for _, b := range h.Boxes {
		rank := iterate.Rank(slices.Index(cuts, b.Lo[0]))
		if rank < 0 || int(rank) >= len(cuts)-1 || cuts[rank+1] != b.Hi[0] {
			return out, fmt.Errorf("repair: box %v is no part of the partition %v", b, cuts)
		}
		x, sweeps, residual, err := h.relaxBlock(cuts, rank, done)
		if err != nil {
			all = append(all, fmt.Errorf("repair: relaxing the block of %d unknowns from %d: %w", b.Points(), b.Lo[0], err))
			block, err := h.Problem.FixedPoint.Part(cuts, rank)
			if err != nil {
				return out, err
			}
			x = make([]float64, b.Points())
			block.Start(x)
		} else {
			if out.Method == "" || residual > out.Residual {
				out.Residual = residual
			}
			out.Method = problem.FixedPoint
			out.Sweeps = max(out.Sweeps, sweeps)
			out.Work += float64(sweeps) * float64(b.Points()) / float64(out.Points)
		}
		done[rank] = x
		insert(out.Box, out.u, b, x)
	}
	return out, errors.Join(all...)
}

// relaxBlock repairs one block. done holds those that were repaired before.
func (h *Hole) relaxBlock(cuts []int, rank iterate.Rank, done map[iterate.Rank][]float64) (
	x []float64, sweeps iterate.Iteration, residual float64, err error,
) {
	f := h.Problem.FixedPoint
	block, err := f.Part(cuts, rank)
	if err != nil {
		return nil, 0, 0, err
	}
	halos := map[iterate.Rank][]float64{}
	for _, q := range block.Neighbours() {
		other, err := f.Part(cuts, q.Rank)
		if err != nil {
			return nil, 0, 0, err
		}
		values := done[q.Rank]
		if values == nil {
			values = make([]float64, other.Values())
			other.Start(values)
			for i := range values {
				idx := [3]int{cuts[q.Rank] + i + 1, 1, 1}
				if v, known := h.Value(idx); known && !contains(h.Boxes, idx) {
					values[i] = v
				}
			}
		}
		halos[q.Rank] = iterate.Halo(other, rank, values)
	}
	tolerance := max(toleranceFraction*h.Tolerance, leastTolerance)
	return iterate.Repair(block, halos, tolerance, maxSweeps, h.Stop)
}
