package method

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHierarchiesEndWithFewPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 3).Draw(t, "dim")
		n, strength := [3]int{1, 1, 1}, [3]float64{}
		for a := range dim {
			n[a] = rapid.IntRange(1, 300).Draw(t, "n")
			strength[a] = rapid.Float64Range(1e-3, 1e3).Draw(t, "strength")
		}
		h := NewHierarchy(dim, n, strength)
		require.Equal(t, n, h.Grids[0])
		for l := range h.Coarsest() {
			f, c := h.Grids[l], h.Grids[l+1]
			require.Less(t, points(c), points(f), "%v", h.String())
			for a := range 3 {
				require.GreaterOrEqual(t, c[a], 1)
				if c[a] != f[a] {
					require.GreaterOrEqual(t, f[a], minCoarsenPoints)
					ratio := float64(f[a]+1) / float64(c[a]+1)
					require.True(t, ratio >= 1.6 && ratio <= 2.5, "%d to %d points", f[a], c[a])
				}
				if f[a]%2 == 1 && c[a] != f[a] {
					require.Equal(t, (f[a]-1)/2, c[a])
				}
			}
		}
		for a := range 3 {
			require.Less(t, h.Grids[h.Coarsest()][a], minCoarsenPoints, "%v", h.String())
		}
	})
}

func TestHierarchiesOfKnownGrids(t *testing.T) {
	even := [3]float64{1, 1, 1}
	for _, c := range []struct {
		dim      int
		n        [3]int
		strength [3]float64
		want     string
	}{
		{3, [3]int{255, 255, 255}, even, "255³ 127³ 63³ 31³ 15³ 7³ 3³ 1³"},
		{3, [3]int{256, 256, 256}, even, "256³ 127³ 63³ 31³ 15³ 7³ 3³ 1³"},
		{3, [3]int{64, 64, 64}, even, "64³ 31³ 15³ 7³ 3³ 1³"},
		{2, [3]int{100, 100, 1}, even, "100² 47² 23² 11² 5² 2²"},
		{2, [3]int{63, 63, 1}, [3]float64{4, 1}, "63² 31×63 15×31 7×15 3×7 1×3 1²"},
		{3, [3]int{31, 31, 1}, even, "31×31×1 15×15×1 7×7×1 3×3×1 1³"},
		{1, [3]int{9, 1, 1}, even, "9 4 2"},
		{1, [3]int{2, 1, 1}, even, "2"},
	} {
		h := NewHierarchy(c.dim, c.n, c.strength)
		require.Equal(t, c.want, h.String())
	}
}
