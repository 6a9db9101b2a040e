package cli

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// partitionOf parses --partition and returns the reason for the partition. The value auto selects problem.SlabsOrBoxes.
func partitionOf(s string, p *problem.Problem, peers int, weights []float64) (_ problem.Partition, why string, err error) {
	if len(weights) > 0 && s != "auto" && s != "slabs" {
		return problem.Partition{}, "", fmt.Errorf("--weights needs slabs, not --partition %s", s)
	}
	if s == "auto" {
		return problem.SlabsOrBoxes(p.N, peers, weights)
	}
	out, err := partitionGiven(s, p, peers, weights)
	return out, "--partition " + s, err
}

// partitionGiven parses a --partition that is not auto.
func partitionGiven(s string, p *problem.Problem, peers int, weights []float64) (problem.Partition, error) {
	switch s {
	case "slabs":
		return problem.Slabs(p.N, peers, weights)
	case "boxes":
		return problem.Boxes(p.N, peers)
	}
	parts, err := numbers("partition", s)
	if err != nil {
		return problem.Partition{}, fmt.Errorf("--partition %q%s: want auto, slabs, boxes, or parts such as 1,2,2", s,
			spelling.Suggest(s, []string{"auto", "slabs", "boxes"}))
	}
	if len(parts) != p.Dimension {
		return problem.Partition{}, fmt.Errorf("--partition %q: %d numbers of parts for a %d-D problem",
			s, len(parts), p.Dimension)
	}
	grid := [3]int{1, 1, 1}
	copy(grid[:], parts)
	return problem.GridOf(p.N, grid)
}

// defaultWorkers returns the numbers of peers and threads for a method on that many processors, and the reason, from
// measurements (docs/cli.md, Defaults). onePass states that a single peer does several sweeps in one pass over memory.
func defaultWorkers(method string, onePass bool, points, cpus int) (peers, threads int, why string) {
	onePeer := fmt.Sprintf("one peer with a thread for each of %d processors: ", cpus)
	switch {
	case method == problem.Schwarz:
		return max(cpus, 2), 1, fmt.Sprintf("one peer of one thread for each of %d processors, at least two", cpus)
	case method == problem.FAS:
		return cpus, 1, fmt.Sprintf("one peer of one thread for each of %d processors", cpus)
	case cpus < 2:
		return 1, 1, "there is one processor"
	case method == problem.SOR || method == problem.Multigrid:
		if points < smallProblem {
			return 1, 1, "below 64³ points, more threads are not faster"
		}
		return 1, cpus, onePeer + "peers of " + method + " exchange faces many times per cycle"
	case onePass && points >= smallProblem:
		return 1, cpus, onePeer + "a single peer does several sweeps in one pass over memory"
	case points < smallProblem:
		return 1, 1, "below 64³ points, exchanging halos costs more than a second peer gains"
	}
	return cpus, 1, fmt.Sprintf("one peer of one thread for each of %d processors", cpus)
}

// smallProblem is the number of points from which several peers are at least about as fast as one.
const smallProblem = 64 * 64 * 64
