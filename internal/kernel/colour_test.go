package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A point of the colour moves by omega times its residual over its diagonal and is projected. All other
// points keep their bits.
func TestAColourIsRelaxedInPlace(t *testing.T) {
	for _, k := range All() {
		t.Run(k.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := drawBlock(t)
				c, box := b.config, Box{b.lo, b.hi}
				c.Kernel, c.Parity = k, rapid.IntRange(0, 1).Draw(t, "parity")
				colour := rapid.IntRange(0, 1).Draw(t, "colour")
				const omega = 1.3
				s, err := New(c)
				require.NoError(t, err)
				got := cacheAligned(b.src)
				s.RelaxColour(got, colour, omega, box)

				want := cacheAligned(b.src)
				each(box, func(x, y, z int) {
					if (x+y+z+c.Parity)%2 != colour {
						return
					}
					i, d := c.Layout.Index(x, y, z), c.Layout.Dense(x, y, z)
					change := s.defectAt(b.src, b.src, i, d)
					switch c.Operator.Form {
					case Isotropic:
						change *= omega / c.Operator.Diag
					case Constant:
						change *= omega / c.Operator.Values[Center]
					default:
						change = omega * float64(change/c.Operator.Arrays[Center][d])
					}
					v := b.src[i] - change
					if p := c.Lower.At(d); p > v {
						v = p
					}
					if p := c.Upper.At(d); p < v {
						v = p
					}
					want[i] = v
				})
				sameBits(t, want, got, "relaxed in place")
			})
		})
	}
}

func each(b Box, f func(x, y, z int)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				f(x, y, z)
			}
		}
	}
}

// threeThreads is an Executor with a Threads method.
type threeThreads struct{ concurrent }

func (threeThreads) Threads() int { return 3 }

func TestRedBlackIsColourAfterColour(t *testing.T) {
	ref := All()[0]
	for _, k := range All() {
		t.Run(k.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := drawBlock(t)
				if rapid.IntRange(0, 3).Draw(t, "tall") == 0 {
					b = drawTall(t)
				}
				c := b.config
				c.Kernel, c.Parity = k, rapid.IntRange(0, 1).Draw(t, "parity")
				s, err := New(c)
				require.NoError(t, err)
				c.Kernel = ref
				r, err := New(c)
				require.NoError(t, err)
				s.wavefront.cache = rapid.SampledFrom([]int{s.wavefront.cache, 1, 20000, 50000}).Draw(t, "cache")
				sweeps := rapid.IntRange(0, 4).Draw(t, "sweeps")
				got, want := cacheAligned(b.src), cacheAligned(b.src)
				s.RedBlack(got, 1.7, sweeps, rapid.SampledFrom([]Executor{Sequential{}, descending{}, concurrent{},
					threeThreads{}}).Draw(t, "executor"))
				for range sweeps {
					r.RelaxColour(want, 0, 1.7, c.Layout.Interior())
					r.RelaxColour(want, 1, 1.7, c.Layout.Interior())
				}
				sameBits(t, want, got, "relaxed")
			})
		})
	}
}

// drawTall draws a block with enough planes (rows in 2-D) for several slabs and tiles.
func drawTall(t *rapid.T) block {
	b := drawBlock(t)
	c := b.config
	dim := rapid.IntRange(2, 3).Draw(t, "tall dim")
	n := [3]int{rapid.IntRange(1, 20).Draw(t, "tall nx"), rapid.IntRange(1, 90).Draw(t, "tall ny"), 1}
	if dim == 3 {
		n[2] = rapid.IntRange(1, 60).Draw(t, "tall nz")
	}
	l, err := NewLayout(dim, n)
	require.NoError(t, err)
	tall := block{config: Config{Layout: l, Step: 1, Lower: NoLower(), Upper: NoUpper(),
		Operator: Operator{Diag: 6.1, Off: 0.97}},
		src: make([]float64, l.Len()), hi: n}
	if c.Operator.Form == Constant {
		tall.config.Operator = c.Operator
	}
	for i := range tall.src {
		tall.src[i] = b.src[i%len(b.src)]
	}
	if len(c.Lower.Array) > 0 {
		tall.config.Lower.Array = make([]float64, l.Points())
		for i := range tall.config.Lower.Array {
			tall.config.Lower.Array[i] = c.Lower.Array[i%len(c.Lower.Array)]
		}
	}
	return tall
}

func TestDefectApplyAndEnergy(t *testing.T) {
	for _, k := range All() {
		t.Run(k.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := drawBlock(t)
				c, box := b.config, Box{b.lo, b.hi}
				c.Kernel = k
				s, err := New(c)
				require.NoError(t, err)
				defect, image := cacheAligned(b.dst), cacheAligned(b.dst)
				s.Defect(defect, b.src, box)
				s.Apply(image, b.src, box)
				var e Sum
				s.Energy(&e, b.src, b.dst, box)

				wantDefect, wantImage := cacheAligned(b.dst), cacheAligned(b.dst)
				var want Sum
				each(box, func(x, y, z int) {
					i, d := c.Layout.Index(x, y, z), c.Layout.Dense(x, y, z)
					r := s.defectAt(b.src, b.src, i, d)
					wantDefect[i] = clampResidual(r, b.src[i], c.Lower.At(d), c.Upper.At(d))
					wantImage[i] = positiveZero(s.applyAt(b.src, b.src, i, d))
					want.Add(float64((b.dst[i] - b.src[i]) * (r + s.defectAt(b.dst, b.dst, i, d))))
				})
				sameBits(t, wantDefect, defect, "defect")
				sameBits(t, wantImage, image, "A·u")
				sameBits(t, []float64{want.Float64()}, []float64{e.Float64()}, "energy")
			})
		})
	}
}

// For a symmetric A the sum is twice the difference of the energies.
func TestEnergyIsTheDifference(t *testing.T) {
	l, err := NewLayout(2, [3]int{5, 4, 1})
	require.NoError(t, err)
	s, err := New(Config{Layout: l, Step: 1, Lower: NoLower(), Upper: NoUpper(), Source: Field{Value: 0.75},
		Operator: Operator{Diag: 4, Off: 1}})
	require.NoError(t, err)
	u, v, image := make([]float64, l.Len()), make([]float64, l.Len()), make([]float64, l.Len())
	each(l.Interior(), func(x, y, z int) {
		u[l.Index(x, y, z)], v[l.Index(x, y, z)] = float64(x*y)-1, float64(3*x-y*y)
	})
	energy := func(u []float64) (sum float64) {
		s.Apply(image, u, l.Interior())
		for i := range image {
			sum += u[i]*image[i] - 2*0.75*u[i]
		}
		return sum
	}
	var e Sum
	s.Energy(&e, u, v, l.Interior())
	require.Equal(t, energy(v)-energy(u), e.Float64()) // small integers: nothing is rounded
}
