// Package pin binds the peers of a host to processors of their own, so that the scheduler does not move them during a
// relaxation.
package pin

import (
	"cmp"
	"slices"
)

// Processor is a logical processor.
type Processor struct {
	ID      int // as in /sys/devices/system/cpu/cpuID
	Core    int // within its package; processors of one core share its units
	Package int
	Node    int // of memory (NUMA)
}

// Place returns the processors of each of so many peers, of so many threads each. Peers have whole cores as long as
// there are enough, and otherwise share them with each other rather than with nobody. The peers are spread evenly over
// the nodes of memory, neighbours in rank together, and each has its processors on one node if they fit there. Place
// returns nil if there are fewer processors than threads.
func Place(all []Processor, peers, threads int) [][]int {
	if peers < 1 || threads < 1 || peers*threads > len(all) {
		return nil
	}
	all = wholeCores(slices.Clone(all), peers*threads)
	slices.SortFunc(all, func(a, b Processor) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Core, b.Core),
			cmp.Compare(a.ID, b.ID))
	})
	nodes := byNode(all)
	room := 0
	for _, n := range nodes {
		room += len(n) / threads
	}
	if room < peers {
		nodes = [][]Processor{all} // some peer spans nodes
	}
	var out [][]int
	for i, k := range shares(nodes, peers, threads) {
		for peer := range k {
			var ids []int
			for _, p := range nodes[i][peer*threads : (peer+1)*threads] {
				ids = append(ids, p.ID)
			}
			out = append(out, ids)
		}
	}
	return out
}

// wholeCores returns one processor of each core if those are enough.
func wholeCores(all []Processor, want int) []Processor {
	type core struct{ pkg, core int }
	seen := map[core]bool{}
	slices.SortFunc(all, func(a, b Processor) int { return cmp.Compare(a.ID, b.ID) })
	first := slices.DeleteFunc(slices.Clone(all), func(p Processor) bool {
		c := core{p.Package, p.Core}
		again := seen[c]
		seen[c] = true
		return again
	})
	if len(first) >= want {
		return first
	}
	return all
}

// byNode returns the processors of each node of a sorted list.
func byNode(all []Processor) (out [][]Processor) {
	for i, p := range all {
		if i == 0 || p.Node != all[i-1].Node {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

// shares returns how many peers each node gets: the next one goes where the most room is left.
func shares(nodes [][]Processor, peers, threads int) []int {
	out := make([]int, len(nodes))
	for range peers {
		best, most := 0, -1
		for i, n := range nodes {
			if left := len(n) - (out[i]+1)*threads; left > most {
				best, most = i, left
			}
		}
		out[best]++
	}
	return out
}
