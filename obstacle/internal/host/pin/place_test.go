package pin

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// machine returns the processors of a machine, numbered as Linux does it: the first thread of all cores, then the
// second ones.
func machine(nodes, cores, siblings int) (all []Processor) {
	for s := range siblings {
		for n := range nodes {
			for c := range cores {
				all = append(all, Processor{ID: (s*nodes+n)*cores + c, Core: c, Package: n, Node: n})
			}
		}
	}
	return all
}

func TestPlace(t *testing.T) {
	uneven := append(machine(1, 4, 1), Processor{ID: 9, Package: 1, Node: 1})
	for name, c := range map[string]struct {
		all            []Processor
		peers, threads int
		want           [][]int
	}{
		"two peers":                 {machine(1, 2, 1), 2, 1, [][]int{{0}, {1}}},
		"one of two":                {machine(1, 2, 1), 1, 1, [][]int{{0}}},
		"too many":                  {machine(1, 2, 1), 3, 1, nil},
		"too many threads":          {machine(1, 2, 1), 2, 2, nil},
		"whole cores":               {machine(1, 4, 2), 4, 1, [][]int{{0}, {1}, {2}, {3}}},
		"shared cores":              {machine(1, 2, 2), 3, 1, [][]int{{0}, {2}, {1}}},
		"a core for two threads":    {machine(1, 2, 2), 2, 2, [][]int{{0, 2}, {1, 3}}},
		"cores for two threads":     {machine(1, 4, 2), 2, 2, [][]int{{0, 1}, {2, 3}}},
		"over the nodes":            {machine(2, 4, 1), 4, 1, [][]int{{0}, {1}, {4}, {5}}},
		"threads on one node":       {machine(2, 4, 1), 2, 3, [][]int{{0, 1, 2}, {4, 5, 6}}},
		"one peer over two nodes":   {machine(2, 3, 1), 3, 2, [][]int{{0, 1}, {2, 3}, {4, 5}}},
		"a part of the machine":     {machine(2, 4, 1)[2:6], 2, 2, [][]int{{2, 3}, {4, 5}}},
		"nobody":                    {machine(1, 2, 1), 0, 1, nil},
		"no processor":              {nil, 1, 1, nil},
		"uneven nodes":              {uneven, 3, 1, [][]int{{0}, {1}, {2}}},
		"uneven nodes, all of them": {uneven, 5, 1, [][]int{{0}, {1}, {2}, {3}, {9}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Place(c.all, c.peers, c.threads))
		})
	}
}

// Whatever the machine, peers have as many processors as threads, all different, or there are too few. The order of
// the list does not matter.
func TestPlaceOnAnyMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := machine(rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 6).Draw(t, "cores"),
			rapid.IntRange(1, 3).Draw(t, "siblings"))
		all = rapid.SliceOfDistinct(rapid.SampledFrom(all), func(p Processor) int { return p.ID }).Draw(t, "allowed")
		peers, threads := rapid.IntRange(1, 9).Draw(t, "peers"), rapid.IntRange(1, 5).Draw(t, "threads")
		got := Place(all, peers, threads)
		if peers*threads > len(all) {
			require.Nil(t, got)
			return
		}
		require.Len(t, got, peers)
		used := map[int]bool{}
		for _, ids := range got {
			require.Len(t, ids, threads)
			for _, id := range ids {
				require.False(t, used[id])
				require.True(t, slices.ContainsFunc(all, func(p Processor) bool { return p.ID == id }))
				used[id] = true
			}
		}
		require.Equal(t, got, Place(rapid.Permutation(all).Draw(t, "order"), peers, threads))
	})
}
