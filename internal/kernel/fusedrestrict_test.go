package kernel

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A pass that corrects rows, changes relaxed points and restricts the final defect has the bits of
// separate calls over the whole block.
func TestFusedPassesMatchSeparateCalls(t *testing.T) {
	ref := All()[0]
	for _, k := range All() {
		t.Run(k.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := drawBlock(t)
				if rapid.IntRange(0, 2).Draw(t, "tall") == 0 {
					b = drawTall(t)
				}
				c := b.config
				c.Kernel, c.Parity = k, rapid.IntRange(0, 1).Draw(t, "parity")
				fine := c.Layout
				nc := [3]int{1, 1, 1}
				for a := range fine.Dim {
					nc[a] = max(1, (fine.N[a]-1)/2)
					if rapid.IntRange(0, 3).Draw(t, "other") == 0 {
						nc[a] = rapid.IntRange(1, fine.N[a]).Draw(t, "coarse")
					}
				}
				coarse, err := NewLayout(fine.Dim, nc)
				require.NoError(t, err)
				s, err := New(c)
				require.NoError(t, err)
				tr, err := NewTransfer(Whole(fine), Whole(coarse), k)
				require.NoError(t, err)
				c.Kernel = ref
				r, err := New(c)
				require.NoError(t, err)
				reference, err := NewTransfer(Whole(fine), Whole(coarse), ref)
				require.NoError(t, err)
				s.wavefront.cache = rapid.SampledFrom([]int{s.wavefront.cache, 1, 20000, 50000}).Draw(t, "cache")
				sweeps := rapid.IntRange(0, 4).Draw(t, "sweeps")
				executor := rapid.SampledFrom([]Executor{Sequential{}, descending{}, concurrent{},
					threeThreads{}}).Draw(t, "executor")

				halve := func(u []float64, colour, lo, hi, z int) {
					for y := lo; y < hi; y++ {
						for x := s.firstOfColour(colour, 0, y, z); x < fine.N[0]; x += 2 {
							if (x+2*y+z)%5 == 0 {
								u[fine.Index(x, y, z)] /= 2
							}
						}
					}
				}
				corrected := rapid.Bool().Draw(t, "corrected")
				correct := func(u []float64, lo, hi, z int) {
					for y := lo; y < hi; y++ {
						for x := range fine.N[0] {
							u[fine.Index(x, y, z)] += float64(1 + (x+y+3*z)%7)
						}
					}
				}
				got, want := cacheAligned(b.src), cacheAligned(b.src)
				sums, seen := make([]float64, tr.PartialLen()), make([]int, fine.N[1]*fine.N[2])
				var at sync.Mutex
				var first func(lo, hi, z int)
				if corrected {
					first = func(lo, hi, z int) { correct(got, lo, hi, z) }
				}
				for z := 0; z < fine.N[2] && corrected && sweeps > 0; z++ {
					correct(want, 0, fine.N[1], z)
				}
				s.RedBlackPass(got, &Pass{
					Omega: 1.7, Sweeps: sweeps, Prepare: first,
					AfterColour: func(colour, lo, hi, z int) { halve(got, colour, lo, hi, z) },
					Final: func(worker, lo, hi, z int) {
						at.Lock()
						defer at.Unlock()
						if worker < 0 || worker >= Workers(executor) {
							panic("worker out of range")
						}
						for y := lo; y < hi; y++ {
							seen[y+fine.N[1]*z]++
						}
						_, _, first := tr.RestrictedRows(lo, hi)
						rows, room := make([]float64, (hi-first)*fine.N[0]), make([]float64, fine.N[0])
						s.DefectRows(rows, got, first, hi, z)
						tr.RestrictRows(sums, rows, room, lo, hi, z)
					},
				}, executor)
				for half := range 2 * sweeps {
					r.RelaxColour(want, half%2, 1.7, fine.Interior())
					for z := range fine.N[2] {
						halve(want, half%2, 0, fine.N[1], z)
					}
				}
				sameBits(t, want, got, "relaxed")
				for i, n := range seen {
					require.Equal(t, 1, n, "row %d", i)
				}
				defect, box := make([]float64, fine.Len()), drawBox(t, nc)
				r.Defect(defect, want, fine.Interior())
				down, expected := drawArray(t, coarse), []float64(nil)
				expected = cacheAligned(down)
				reference.Restrict(expected, defect, box)
				tr.RestrictPlanes(down, sums, box)
				sameBits(t, expected, down, "restricted")
			})
		})
	}
}

// The marks distinguish −0 from similar values in rows of any length.
func TestHeldPointsAreMarked(t *testing.T) {
	odd := []float64{0, math.Copysign(0, -1), math.NaN(), math.Copysign(math.NaN(), -1), -5e-324, 5e-324,
		math.Inf(-1), 1}
	for _, k := range All() {
		rapid.Check(t, func(t *rapid.T) {
			n, rows := rapid.IntRange(1, 200).Draw(t, "n"), rapid.IntRange(1, 4).Draw(t, "rows")
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			step := (n+63)/64 + rapid.IntRange(0, 2).Draw(t, "gap")
			in, want, got := make([]float64, n*rows), make([]uint64, step*rows), make([]uint64, step*rows)
			for i := range want {
				if got[i] = r.Uint64(); i%step >= (n+63)/64 {
					want[i] = got[i] // stays
				}
			}
			for i := range in {
				if in[i] = odd[r.IntN(len(odd))]; r.IntN(2) == 0 {
					in[i] = odd[1]
				}
				if math.Float64bits(in[i]) == 1<<63 {
					want[i/n*step+i%n/64] |= 1 << (i % n % 64)
				}
			}
			k.MarkHeld(got, step, in, n)
			require.Equal(t, want, got, "%s, n = %d", k.Name(), n)
		})
	}
}

// The marks distinguish values strictly between two obstacles from all others, in rows of any length.
func TestScanContactMarksTouchingPoints(t *testing.T) {
	odd := []float64{0, math.Copysign(0, -1), math.NaN(), -5e-324, 5e-324, math.Inf(-1), math.Inf(1), 1, -1}
	for _, k := range All() {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(0, 200).Draw(t, "n")
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			var rows [3][]float64
			for a := range rows {
				rows[a] = make([]float64, n)
				for i := range rows[a] {
					if rows[a][i] = odd[r.IntN(len(odd))]; r.IntN(2) == 0 {
						rows[a][i] = []float64{0, -1, 1}[a]
					}
				}
			}
			u, phi, psi := rows[0], rows[1], rows[2]
			want, got := make([]uint64, (n+63)/64+1), make([]uint64, (n+63)/64+1)
			for i := range got {
				got[i] = r.Uint64()
			}
			want[len(want)-1] = got[len(want)-1] // stays
			for i := range n {
				if !(phi[i] < u[i]) || !(u[i] < psi[i]) {
					want[i/64] |= 1 << (i % 64)
				}
			}
			k.ScanContact(got, u, phi, psi)
			require.Equal(t, want, got, "%s, n = %d", k.Name(), n)
		})
	}
}
