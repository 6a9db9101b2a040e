package problem_test

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// checkPartition checks the properties of a tensor product partition.
func checkPartition(t require.TestingT, p problem.Partition, n [3]int) {
	require.NoError(t, p.Validate(n))
	owner := map[[3]int]iterate.Rank{}
	for r := range p.Peers() {
		p.Box(iterate.Rank(r)).Each(func(_ int, idx [3]int) bool {
			_, twice := owner[idx]
			require.False(t, twice)
			owner[idx] = iterate.Rank(r)
			return true
		})
	}
	require.Len(t, owner, n[0]*n[1]*n[2])
	roots := 0
	for r := range p.Peers() {
		last := -1
		for _, nb := range p.Neighbours(iterate.Rank(r)) {
			at := 2*nb.Axis + (nb.Side+1)/2
			require.Greater(t, at, last, "in order")
			last = at
			face, points := p.Box(iterate.Rank(r)), 0
			if nb.Side < 0 {
				face.Hi[nb.Axis] = face.Lo[nb.Axis] + 1
			} else {
				face.Lo[nb.Axis] = face.Hi[nb.Axis] - 1
			}
			face.Each(func(_ int, idx [3]int) bool {
				idx[nb.Axis] += nb.Side
				require.Equal(t, nb.Rank, owner[idx])
				points++
				return true
			})
			require.Equal(t, 8*points, nb.FaceBytes)
		}
		t1 := problem.TreeOf(p, iterate.Rank(r))
		if t1.Parent < 0 {
			roots++
			require.Zero(t, r)
		} else {
			require.GreaterOrEqual(t, problem.TreeOf(p, t1.Parent).Child(iterate.Rank(r)), 0, "the parent knows its child")
			require.Less(t, t1.Parent, iterate.Rank(r))
		}
		for _, c := range t1.Children {
			require.Equal(t, iterate.Rank(r), problem.TreeOf(p, c).Parent)
		}
	}
	require.Equal(t, 1, roots)
}

func TestPartitionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := [3]int{1, 1, 1}
		for a := range rapid.IntRange(1, 3).Draw(t, "dimension") {
			n[a] = rapid.IntRange(1, 12).Draw(t, "n")
		}
		peers := rapid.IntRange(1, 12).Draw(t, "peers")
		var p problem.Partition
		var err error
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			p, err = problem.Slabs(n, peers, nil)
		case 1:
			w := rapid.SliceOfN(rapid.Float64Range(0.01, 100), peers, peers).Draw(t, "weights")
			p, err = problem.Slabs(n, peers, w)
		default:
			p, err = problem.Boxes(n, peers)
		}
		if err != nil {
			require.ErrorIs(t, err, problem.ErrPartition)
			return
		}
		require.Equal(t, peers, p.Peers())
		checkPartition(t, p, n)
	})
}

func TestBoxesHaveTheLeastSurface(t *testing.T) {
	for _, c := range []struct {
		n     [3]int
		peers int
		want  [3]int
	}{
		{[3]int{64, 64, 64}, 8, [3]int{2, 2, 2}},
		{[3]int{64, 64, 64}, 4, [3]int{1, 2, 2}},
		{[3]int{64, 64, 64}, 2, [3]int{1, 1, 2}},
		{[3]int{1000, 10, 1}, 4, [3]int{4, 1, 1}},
		{[3]int{7, 7, 1}, 6, [3]int{2, 3, 1}},
	} {
		p, err := problem.Boxes(c.n, c.peers)
		require.NoError(t, err)
		require.Equal(t, c.want, p.Parts())
	}
}

func TestSlabsFollowWeights(t *testing.T) {
	p, err := problem.Slabs([3]int{4, 4, 100}, 3, []float64{1, 2, 1})
	require.NoError(t, err)
	require.Equal(t, []int{0, 25, 75, 100}, p.Cuts[2])
	p, err = problem.Slabs([3]int{9, 1, 1}, 3, []float64{1000, 1, 1})
	require.NoError(t, err)
	require.Equal(t, []int{0, 7, 8, 9}, p.Cuts[0], "everyone has a plane")
}

func TestPartitionErrors(t *testing.T) {
	n := [3]int{5, 5, 5}
	for name, f := range map[string]func() (problem.Partition, error){
		"too many":    func() (problem.Partition, error) { return problem.Slabs(n, 6, nil) },
		"none":        func() (problem.Partition, error) { return problem.Slabs(n, 0, nil) },
		"boxes none":  func() (problem.Partition, error) { return problem.Boxes(n, -1) },
		"boxes prime": func() (problem.Partition, error) { return problem.Boxes(n, 7) },
		"weights":     func() (problem.Partition, error) { return problem.Slabs(n, 2, []float64{1}) },
		"weight sign": func() (problem.Partition, error) { return problem.Slabs(n, 2, []float64{1, -1}) },
		"weight nan":  func() (problem.Partition, error) { return problem.Slabs(n, 2, []float64{1, math.NaN()}) },
		"weight sum":  func() (problem.Partition, error) { return problem.Slabs(n, 2, []float64{1e308, 1e308}) },
		"parts":       func() (problem.Partition, error) { return problem.GridOf(n, [3]int{1, 9, 1}) },
		"parts zero":  func() (problem.Partition, error) { return problem.GridOf(n, [3]int{1, 0, 1}) },
		"no points":   func() (problem.Partition, error) { return problem.GridOf([3]int{0, 1, 1}, [3]int{1, 1, 1}) },
		"huge": func() (problem.Partition, error) {
			return problem.GridOf([3]int{1 << 12, 1 << 12, 1}, [3]int{1 << 12, 1 << 12, 1})
		},
		"boxes too big": func() (problem.Partition, error) { return problem.Boxes(n, problem.MaxPeers+1) },
	} {
		_, err := f()
		require.ErrorIs(t, err, problem.ErrPartition, name)
	}
	require.Error(t, problem.Partition{}.Validate(n))
	require.Error(t, problem.Partition{Cuts: [3][]int{{0, 3, 3, 5}, {0, 5}, {0, 5}}}.Validate(n))
	require.Error(t, problem.Partition{Cuts: [3][]int{{0, 6}, {0, 5}, {0, 5}}}.Validate(n))
}

func TestSchemes(t *testing.T) {
	for _, c := range []struct {
		s        iterate.Scheme
		name     string
		async    bool
		slots    int
		exact    bool
		admitted []iterate.Iteration // of 4..8 for relaxation 6
	}{
		{iterate.Synchronous(), "sync", false, 2, true, []iterate.Iteration{6}},
		{iterate.Asynchronous(), "async", true, 1, false, []iterate.Iteration{4, 5, 6, 7, 8}},
		{iterate.BoundedDelay(0), "delay:0", true, 2, true, []iterate.Iteration{6}},
		{iterate.BoundedDelay(-3), "delay:0", true, 2, true, []iterate.Iteration{6}},
		{iterate.BoundedDelay(1), "delay:1", true, 2, false, []iterate.Iteration{5, 6, 7, 8}},
	} {
		require.Equal(t, c.name, c.s.Name())
		require.Equal(t, c.async, c.s.Asynchronous())
		require.Equal(t, c.slots, c.s.Slots())
		require.Equal(t, c.exact, c.s.Lockstep())
		var got []iterate.Iteration
		for v := iterate.Iteration(4); v <= 8; v++ {
			if c.s.Admit(6, v, 0) {
				got = append(got, v)
			}
		}
		require.Equal(t, c.admitted, got, c.name)
	}
	require.True(t, iterate.BoundedDelay(9).Admit(3, 0, 0), "no wrap below 0")
}
