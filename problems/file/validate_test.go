package file

import (
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An inspection checks every point of the boundary and one of every thin points of the interior. The points do
// not depend on the distribution of the layers.
func TestThinInspection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &problem.Problem{Dimension: rapid.IntRange(1, 3).Draw(t, "dimension"), N: [3]int{1, 1, 1},
			Diffusion: problem.Coefficient{Value: 1}}
		for a := range p.Dimension {
			p.N[a] = rapid.IntRange(1, 9).Draw(t, "n")
			p.Hi[a] = float64(p.N[a] + 1) // coordinates are indices
		}
		thin := rapid.IntRange(1, 20).Draw(t, "thin")
		seen := map[problem.Point]int{}
		p.Obstacle = func(q problem.Point) float64 { seen[q]++; return 0 }
		p.Boundary = func(problem.Point) float64 { return 0 }
		layers := p.N[p.Dimension-1] + 2
		cut := rapid.IntRange(0, layers).Draw(t, "cut")
		for _, r := range [][2]int{{0, cut}, {cut, layers}} {
			s := inspection{p: p, thin: thin}
			s.layers(r[0], r[1])
			require.NoError(t, s.err)
		}
		want := map[problem.Point]int{}
		lo, hi := [3]int{1, 1, 1}, [3]int{1, 1, 1}
		for a := range p.Dimension {
			lo[a], hi[a] = 0, p.N[a]+1
		}
		for k := lo[2]; k <= hi[2]; k++ {
			for j := lo[1]; j <= hi[1]; j++ {
				for i := lo[0]; i <= hi[0]; i++ {
					q, boundary := p.At(i, j, k), false
					for a := range p.Dimension {
						boundary = boundary || q[a] == 0 || q[a] == p.Hi[a]
					}
					if boundary || (i+3*j+5*k)%thin == 0 {
						want[q]++
					}
				}
			}
		}
		require.Equal(t, want, seen)
	})
}
