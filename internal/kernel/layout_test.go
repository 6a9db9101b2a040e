package kernel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawLayout(t *rapid.T) Layout {
	dim := rapid.IntRange(1, 3).Draw(t, "dim")
	n := [3]int{1, 1, 1}
	for a := range dim {
		n[a] = rapid.IntRange(1, 40).Draw(t, "n")
	}
	l, err := NewLayout(dim, n)
	require.NoError(t, err)
	return l
}

func TestLayoutMapsPointsToDistinctIndices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		ghost := [3]int{1, 0, 0}
		for a := 1; a < l.Dim; a++ {
			ghost[a] = 1
		}
		seen := make([]bool, l.Len())
		for z := -ghost[2]; z < l.N[2]+ghost[2]; z++ {
			for y := -ghost[1]; y < l.N[1]+ghost[1]; y++ {
				for x := -1; x <= l.N[0]; x++ {
					i := l.Index(x, y, z)
					require.False(t, seen[i], "%d,%d,%d shares its index", x, y, z)
					seen[i] = true
				}
				if l.N[0] >= alignFrom {
					require.Zero(t, l.Index(0, y, z)%lineFloats)
				}
			}
		}
		require.True(t, seen[l.Len()-1], "the array is not longer than needed")
		require.Equal(t, l.Points()-1, l.Dense(l.N[0]-1, l.N[1]-1, l.N[2]-1))
	})
}

func TestLayoutCostsLittleMemory(t *testing.T) {
	l, err := NewLayout(3, [3]int{256, 256, 128})
	require.NoError(t, err)
	require.Less(t, float64(l.Len())/float64(l.Points()), 1.06)
}

func TestBadLayoutsAreRefused(t *testing.T) {
	for _, c := range []struct {
		dim int
		n   [3]int
	}{
		{0, [3]int{1, 1, 1}},
		{4, [3]int{1, 1, 1}},
		{3, [3]int{1, 0, 1}},
		{2, [3]int{4, 4, 4}},
		{3, [3]int{1 << 30, 1 << 30, 1 << 30}},
		{2, [3]int{-1, 4, 1}},
	} {
		_, err := NewLayout(c.dim, c.n)
		require.Error(t, err, "%+v", c)
	}
}

func TestUnpackInvertsPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		var b Box
		for a := range b.Lo {
			g := 0
			if a < l.Dim {
				g = 1
			}
			b.Lo[a] = rapid.IntRange(-g, l.N[a]-1).Draw(t, "lo")
			b.Hi[a] = rapid.IntRange(b.Lo[a]+1, l.N[a]+g).Draw(t, "hi")
		}
		u := values(rand.New(rand.NewPCG(3, rapid.Uint64().Draw(t, "seed"))), l.Len(), 0.1)
		face := make([]byte, 8*b.Points())
		require.Equal(t, len(face), l.Pack(face, u, b))
		v := make([]float64, l.Len())
		require.Equal(t, len(face), l.Unpack(v, face, b))
		copied := 0
		for z := b.Lo[2]; z < b.Hi[2]; z++ {
			for y := b.Lo[1]; y < b.Hi[1]; y++ {
				lo, hi := l.Index(b.Lo[0], y, z), l.Index(b.Hi[0], y, z)
				sameBits(t, u[lo:hi], v[lo:hi], "row")
				copied += hi - lo
				clear(v[lo:hi])
			}
		}
		require.Equal(t, b.Points(), copied)
		sameBits(t, make([]float64, l.Len()), v, "outside the box")
		require.Panics(t, func() { l.Pack(face[1:], u, b) })
	})
}
