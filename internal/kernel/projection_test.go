package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// With all coefficients 0 a relaxation is the projection alone: v keeps its bits unless φ > v or ψ < v,
// and a NaN stays NaN.
func TestProjectionKeepsTheSignOfZeroAndNaN(t *testing.T) {
	inf, nan, minus := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct{ u, phi, psi, want float64 }{
		{0, minus, inf, 0}, {minus, 0, inf, minus}, {minus, -inf, 0, minus}, {0, -inf, minus, 0},
		{nan, 1, 2, nan}, {1, nan, nan, 1}, {1, 2, inf, 2}, {1, -inf, -3, -3}, {1, 5, 4, 4}, {5e-324, 0, inf, 5e-324},
		{-1, minus, inf, minus},
	} {
		for _, width := range []int{1, 8, 21} {
			l, err := NewLayout(3, [3]int{width, 1, 1})
			require.NoError(t, err)
			src, phi, psi := make([]float64, l.Len()), filled(l.Points(), c.phi), filled(l.Points(), c.psi)
			for x := range width {
				src[l.Index(x, 0, 0)] = c.u
			}
			fields := []Field{{Array: psi}}
			if c.psi == inf {
				fields = append(fields, NoUpper())
			}
			for _, k := range All() {
				for _, upper := range fields {
					s, err := New(Config{Layout: l, Kernel: k, Step: 1, Source: Field{Value: minus},
						Lower: Field{Array: phi}, Upper: upper})
					require.NoError(t, err)
					dst := make([]float64, l.Len())
					s.Relax(dst, src, src, l.Interior())
					i := l.Index(0, 0, 0)
					sameBits(t, filled(width, c.want), dst[i:i+width], k.Name())
				}
			}
		}
	}
}

// If every value is −0, every sum is −0. Adding +0 for an unused axis would change that.
func TestUnusedAxesAddNothing(t *testing.T) {
	for dim := 1; dim <= 2; dim++ {
		n := [3]int{21, 1, 1}
		if dim == 2 {
			n[1] = 3
		}
		l, err := NewLayout(dim, n)
		require.NoError(t, err)
		src := filled(l.Len(), math.Copysign(0, -1))
		for _, form := range []Form{Isotropic, Constant, Variable} {
			op := Operator{Form: form, Diag: 4, Off: 1, Values: [Directions]float64{4, 1, 1, 1, 1, -1, -1}}
			for d := range op.Arrays {
				op.Arrays[d] = filled(l.Points(), 1)
			}
			var want []float64
			for _, k := range All() {
				s, err := New(Config{Layout: l, Kernel: k, Operator: op, Step: 0.25, Lower: NoLower(),
					Upper: NoUpper()})
				require.NoError(t, err)
				dst := make([]float64, l.Len())
				s.Relax(dst, src, src, l.Interior())
				if want == nil {
					want = dst
				}
				sameBits(t, want, dst, k.Name())
			}
		}
	}
}
