package cli

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// partitionOf reads the word of --partition; auto is problem.SlabsOrBoxes.
func partitionOf(s string, p *problem.Problem, peers int, weights []float64) (problem.Partition, error) {
	if len(weights) > 0 && s != "auto" && s != "slabs" {
		return problem.Partition{}, fmt.Errorf("--weights are for slabs, not for --partition %s", s)
	}
	switch s {
	case "slabs":
		return problem.Slabs(p.N, peers, weights)
	case "boxes":
		return problem.Boxes(p.N, peers)
	case "auto":
		return problem.SlabsOrBoxes(p.N, peers, weights)
	}
	parts, err := numbers("partition", s)
	if err != nil {
		return problem.Partition{}, fmt.Errorf("--partition %q: want auto, slabs, boxes, or the parts per axis, as 1,2,2", s)
	}
	if len(parts) != p.Dimension {
		return problem.Partition{}, fmt.Errorf("--partition %q: %d numbers of parts for a %d-D problem", s, len(parts), p.Dimension)
	}
	grid := [3]int{1, 1, 1}
	copy(grid[:], parts)
	return problem.GridOf(p.N, grid)
}

// defaultWorkers is how many peers and threads to take for a method on this many
// processors, as measured (docs/cli.md, Defaults). together tells that a peer alone does
// several sweeps in one pass over memory.
func defaultWorkers(method string, together bool, points, cpus int) (peers, threads int, why string) {
	switch {
	case method == problem.Schwarz:
		return max(cpus, 2), 1, fmt.Sprintf("Schwarz wants boxes: one peer of one thread for each of %d processors, two at least", cpus)
	case cpus < 2:
		return 1, 1, "there is one processor"
	case method == problem.SOR || method == problem.Multigrid:
		if points < smallProblem {
			return 1, 1, "below 64³ points, threads cost more than they gain"
		}
		return 1, cpus, fmt.Sprintf("one peer, and a thread for each of %d processors: the peers of %s exchange faces many times a cycle", cpus, method)
	case together && points >= smallProblem:
		return 1, cpus, fmt.Sprintf("one peer, and a thread for each of %d processors: a peer alone does several sweeps in one pass over memory", cpus)
	case points < smallProblem:
		return 1, 1, "below 64³ points, exchanging halos costs more than a second peer gains"
	}
	return cpus, 1, fmt.Sprintf("one peer of one thread for each of %d processors", cpus)
}

// smallProblem is the number of points from which several peers are about as fast
// as one, or faster.
const smallProblem = 64 * 64 * 64
