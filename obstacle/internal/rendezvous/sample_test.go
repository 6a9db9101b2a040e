package rendezvous

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// The boxes of a partition have each point of a sample once, with its value.
func TestSamplesOfAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n [3]int
		s := &Sample{}
		cut := [3][]int{}
		for a := range 3 {
			n[a] = rapid.IntRange(1, 9).Draw(t, "n")
			s.First[a] = rapid.IntRange(0, n[a]-1).Draw(t, "first")
			s.Stride[a] = rapid.IntRange(1, n[a]).Draw(t, "stride")
			s.Size[a] = rapid.IntRange(1, (n[a]-1-s.First[a])/s.Stride[a]+1).Draw(t, "size")
			cut[a] = []int{0, rapid.IntRange(0, n[a]).Draw(t, "cut"), n[a]}
		}
		require.True(t, s.Valid(n))
		value := func(x, y, z int) float64 { return float64(x + 100*y + 10000*z) }
		seen := make([]int, s.Points())
		for i := range 8 {
			b := problem.Box{}
			for a := range 3 {
				k := i >> a & 1
				b.Lo[a], b.Hi[a] = cut[a][k], cut[a][k+1]
			}
			if b.Empty() {
				continue
			}
			got := s.Read(b, func(dst []float64, part problem.Box) {
				at := 0
				for z := part.Lo[2]; z < part.Hi[2]; z++ {
					for y := part.Lo[1]; y < part.Hi[1]; y++ {
						for x := part.Lo[0]; x < part.Hi[0]; x++ {
							require.True(t, x >= b.Lo[0] && x < b.Hi[0] && y >= b.Lo[1] && y < b.Hi[1] && z >= b.Lo[2] && z < b.Hi[2])
							dst[at] = value(x, y, z)
							at++
						}
					}
				}
			})
			in, at := s.In(b), 0
			require.Len(t, got, in.Points())
			for z := in.Lo[2]; z < in.Hi[2]; z++ {
				for y := in.Lo[1]; y < in.Hi[1]; y++ {
					for x := in.Lo[0]; x < in.Hi[0]; x++ {
						require.Equal(t, value(s.First[0]+x*s.Stride[0], s.First[1]+y*s.Stride[1], s.First[2]+z*s.Stride[2]), got[at])
						seen[(z*s.Size[1]+y)*s.Size[0]+x]++
						at++
					}
				}
			}
		}
		for _, times := range seen {
			require.Equal(t, 1, times)
		}
	})
}

// A sample from another process may ask for anything.
func TestInvalidSamples(t *testing.T) {
	n := [3]int{8, 8, 8}
	for _, s := range []Sample{
		{}, {Stride: [3]int{1, 1, 1}, Size: [3]int{9, 1, 1}}, {Stride: [3]int{2, 1, 1}, Size: [3]int{5, 1, 1}},
		{First: [3]int{-1, 0, 0}, Stride: [3]int{1, 1, 1}, Size: [3]int{1, 1, 1}},
		{Stride: [3]int{1, 1, 1}, Size: [3]int{1 << 62, 1 << 62, 1}}, {Stride: [3]int{1 << 62, 1, 1}, Size: [3]int{3, 1, 1}},
	} {
		require.False(t, s.Valid(n), s)
	}
	require.False(t, (&Sample{Stride: [3]int{1, 1, 1}, Size: [3]int{64, 64, 64}}).Valid([3]int{64, 64, 64}), "too many")
}
