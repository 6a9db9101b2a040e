package solver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// checkPartition holds any partition to what a tensor product promises.
func checkPartition(t require.TestingT, p Partition, n [3]int) {
	require.NoError(t, p.Validate(n))
	owner := map[[3]int]Rank{}
	for r := range p.Peers() {
		p.Box(Rank(r)).each(func(_ int, idx [3]int) bool {
			_, twice := owner[idx]
			require.False(t, twice)
			owner[idx] = Rank(r)
			return true
		})
	}
	require.Len(t, owner, n[0]*n[1]*n[2])
	roots := 0
	for r := range p.Peers() {
		last := -1
		for _, nb := range p.Neighbours(Rank(r)) {
			at := 2*nb.Axis + (nb.Side+1)/2
			require.Greater(t, at, last, "in order")
			last = at
			face, points := p.Box(Rank(r)), 0
			if nb.Side < 0 {
				face.Hi[nb.Axis] = face.Lo[nb.Axis] + 1
			} else {
				face.Lo[nb.Axis] = face.Hi[nb.Axis] - 1
			}
			face.each(func(_ int, idx [3]int) bool {
				idx[nb.Axis] += nb.Side
				require.Equal(t, nb.Rank, owner[idx])
				points++
				return true
			})
			require.Equal(t, 8*points, nb.FaceBytes)
		}
		t1 := treeOf(p, Rank(r))
		if t1.parent < 0 {
			roots++
			require.Zero(t, r)
		} else {
			require.GreaterOrEqual(t, treeOf(p, t1.parent).child(Rank(r)), 0, "the parent knows its child")
			require.Less(t, t1.parent, Rank(r))
		}
		for _, c := range t1.children {
			require.Equal(t, Rank(r), treeOf(p, c).parent)
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
		var p Partition
		var err error
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			p, err = Slabs(n, peers, nil)
		case 1:
			w := rapid.SliceOfN(rapid.Float64Range(0.01, 100), peers, peers).Draw(t, "weights")
			p, err = Slabs(n, peers, w)
		default:
			p, err = Boxes(n, peers)
		}
		if err != nil {
			require.ErrorIs(t, err, ErrPartition)
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
		p, err := Boxes(c.n, c.peers)
		require.NoError(t, err)
		require.Equal(t, c.want, p.Parts())
	}
}

func TestWeightsAreFollowed(t *testing.T) {
	p, err := Slabs([3]int{4, 4, 100}, 3, []float64{1, 2, 1})
	require.NoError(t, err)
	require.Equal(t, []int{0, 25, 75, 100}, p.Cuts[2])
	p, err = Slabs([3]int{9, 1, 1}, 3, []float64{1000, 1, 1})
	require.NoError(t, err)
	require.Equal(t, []int{0, 7, 8, 9}, p.Cuts[0], "everyone has a plane")
}

func TestPartitionErrors(t *testing.T) {
	n := [3]int{5, 5, 5}
	for name, f := range map[string]func() (Partition, error){
		"too many":      func() (Partition, error) { return Slabs(n, 6, nil) },
		"none":          func() (Partition, error) { return Slabs(n, 0, nil) },
		"boxes none":    func() (Partition, error) { return Boxes(n, -1) },
		"boxes prime":   func() (Partition, error) { return Boxes(n, 7) },
		"weights":       func() (Partition, error) { return Slabs(n, 2, []float64{1}) },
		"weight sign":   func() (Partition, error) { return Slabs(n, 2, []float64{1, -1}) },
		"weight nan":    func() (Partition, error) { return Slabs(n, 2, []float64{1, math.NaN()}) },
		"weight sum":    func() (Partition, error) { return Slabs(n, 2, []float64{1e308, 1e308}) },
		"parts":         func() (Partition, error) { return GridOf(n, [3]int{1, 9, 1}) },
		"parts zero":    func() (Partition, error) { return GridOf(n, [3]int{1, 0, 1}) },
		"no points":     func() (Partition, error) { return GridOf([3]int{0, 1, 1}, [3]int{1, 1, 1}) },
		"huge":          func() (Partition, error) { return GridOf([3]int{1 << 12, 1 << 12, 1}, [3]int{1 << 12, 1 << 12, 1}) },
		"boxes too big": func() (Partition, error) { return Boxes(n, MaxPeers+1) },
	} {
		_, err := f()
		require.ErrorIs(t, err, ErrPartition, name)
	}
	require.Error(t, Partition{}.Validate(n))
	require.Error(t, Partition{Cuts: [3][]int{{0, 3, 3, 5}, {0, 5}, {0, 5}}}.Validate(n))
	require.Error(t, Partition{Cuts: [3][]int{{0, 6}, {0, 5}, {0, 5}}}.Validate(n))
}

func TestSchemes(t *testing.T) {
	for _, c := range []struct {
		s        Scheme
		name     string
		async    bool
		slots    int
		exact    bool
		admitted []Iteration // of 4..8 for relaxation 6
	}{
		{Synchronous(), "sync", false, 2, true, []Iteration{6}},
		{Asynchronous(), "async", true, 1, false, []Iteration{4, 5, 6, 7, 8}},
		{BoundedDelay(0), "delay:0", true, 2, true, []Iteration{6}},
		{BoundedDelay(-3), "delay:0", true, 2, true, []Iteration{6}},
		{BoundedDelay(1), "delay:1", true, 2, false, []Iteration{5, 6, 7, 8}},
	} {
		require.Equal(t, c.name, c.s.Name())
		require.Equal(t, c.async, c.s.Asynchronous())
		require.Equal(t, c.slots, c.s.Slots())
		require.Equal(t, c.exact, inLockstep(c.s))
		var got []Iteration
		for v := Iteration(4); v <= 8; v++ {
			if c.s.Admit(6, v, 0) {
				got = append(got, v)
			}
		}
		require.Equal(t, c.admitted, got, c.name)
	}
	require.True(t, BoundedDelay(9).Admit(3, 0, 0), "no wrap below 0")
}
