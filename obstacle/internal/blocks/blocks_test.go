package blocks

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Cut into boxes, sent in pieces of any length and put together, an array is the
// same, for every partition.
func TestCutAndAssemble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axis := rapid.IntRange(1, 7)
		n := [3]int{axis.Draw(t, "nx"), axis.Draw(t, "ny"), axis.Draw(t, "nz")}
		parts := [3]int{}
		for a := range parts {
			parts[a] = rapid.IntRange(1, n[a]).Draw(t, "parts")
		}
		cut, err := problem.GridOf(n, parts)
		require.NoError(t, err)
		u := make([]float64, n[0]*n[1]*n[2])
		for i := range u {
			u[i] = float64(i) + 0.5
		}
		whole := make([]float64, len(u))
		for r := range cut.Peers() {
			box := cut.Box(iterate.Rank(r))
			for offset := int64(0); offset < Bytes(box); {
				piece := make([]byte, 8*rapid.Int64Range(1, (Bytes(box)-offset)/8).Draw(t, "piece"))
				require.NoError(t, Get(piece, u, n, box, offset))
				require.NoError(t, Put(whole, n, box, offset, piece))
				offset += int64(len(piece))
			}
		}
		require.Equal(t, u, whole)
	})
}

func TestPutKeepsToTheBox(t *testing.T) {
	n := [3]int{4, 4, 4}
	box := problem.Box{Lo: [3]int{1, 1, 1}, Hi: [3]int{3, 3, 3}}
	u := make([]float64, 64)
	for _, c := range []struct {
		offset int64
		length int
	}{{-8, 8}, {0, 7}, {4, 8}, {0, 72}, {64, 8}, {1 << 62, 8}} {
		require.Error(t, Put(u, n, box, c.offset, make([]byte, c.length)), c)
	}
	require.Equal(t, make([]float64, 64), u)
}

func TestEncodeDecode(t *testing.T) {
	data, back := make([]byte, 16), make([]float64, 2)
	Encode(data, []float64{1.5, -2})
	Decode(back, data)
	require.Equal(t, []float64{1.5, -2}, back)
}

// A box is placed where the pieces of it would be, and is one piece only where it looks so.
func TestPlaceIsPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n [3]int
		var b problem.Box
		for a := range n {
			n[a] = rapid.IntRange(1, 4).Draw(t, "n")
			b.Lo[a] = rapid.IntRange(0, n[a]-1).Draw(t, "lo")
			b.Hi[a] = rapid.IntRange(b.Lo[a]+1, n[a]).Draw(t, "hi")
		}
		values := make([]float64, b.Points())
		for i := range values {
			values[i] = float64(i + 1)
		}
		data := make([]byte, Bytes(b))
		Encode(data, values)
		want, got := make([]float64, n[0]*n[1]*n[2]), make([]float64, n[0]*n[1]*n[2])
		require.NoError(t, Put(want, n, b, 0, data))
		Copy(got, n, b, values)
		require.Equal(t, want, got)
		require.Equal(t, float64(len(values)), MaxAbs(got, n, b))
		if piece := Slice(got, n, b); piece != nil {
			require.Equal(t, values, piece)
		} else {
			first, last := 0, 0
			for i, v := range got {
				if v == 1 {
					first = i
				}
				if v == float64(len(values)) {
					last = i
				}
			}
			require.Greater(t, last-first+1, len(values))
		}
	})
}
