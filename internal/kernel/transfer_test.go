package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawGrids draws two grids of one region.
func drawGrids(t *rapid.T) (fine, coarse Layout) {
	dim := rapid.IntRange(1, 3).Draw(t, "dim")
	nf, nc := [3]int{1, 1, 1}, [3]int{1, 1, 1}
	all := rapid.Bool().Draw(t, "all axes nested")
	for a := range dim {
		top := [3]int{40, 6, 6}[a]
		nc[a] = rapid.IntRange(1, top).Draw(t, "coarse")
		switch kind := rapid.IntRange(0, 2).Draw(t, "axis"); {
		case all || kind == 0:
			nf[a] = 2*nc[a] + 1
		case kind == 1:
			nf[a] = nc[a]
		default:
			nf[a] = rapid.IntRange(1, 2*top).Draw(t, "fine")
		}
	}
	fine, err := NewLayout(dim, nf)
	require.NoError(t, err)
	coarse, err = NewLayout(dim, nc)
	require.NoError(t, err)
	return fine, coarse
}

func drawBox(t *rapid.T, n [3]int) (b Box) {
	for a := range n {
		b.Lo[a] = rapid.OneOf(rapid.Just(0), rapid.IntRange(0, n[a]-1)).Draw(t, "lo")
		b.Hi[a] = rapid.OneOf(rapid.Just(n[a]), rapid.IntRange(b.Lo[a]+1, n[a])).Draw(t, "hi")
	}
	return b
}

func drawArray(t *rapid.T, l Layout) []float64 {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
	return cacheAligned(values(r, l.Len(), rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "odd")))
}

// Every variant computes the bits of the reference at every point of any box.
func TestTransferVariants(t *testing.T) {
	ref := All()[0]
	for _, k := range All()[1:] {
		t.Run(k.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				fine, coarse := drawGrids(t)
				want, err := NewTransfer(Whole(fine), Whole(coarse), ref)
				require.NoError(t, err)
				got, err := NewTransfer(Whole(fine), Whole(coarse), k)
				require.NoError(t, err)
				u, e, r := drawArray(t, fine), drawArray(t, coarse), rand.New(rand.NewPCG(1, 2))
				box := drawBox(t, coarse.N)
				a, b := cacheAligned(e), cacheAligned(e)
				want.Restrict(a, u, box)
				got.Restrict(b, u, box)
				sameBits(t, a, b, "restricted")
				lower, upper := drawField(t, "lower", r, fine.Points(), math.Inf(-1)), drawField(t, "upper", r,
					fine.Points(), math.Inf(1))
				box = drawBox(t, fine.N)
				c, d := cacheAligned(u), cacheAligned(u)
				want.Prolong(c, e, lower, upper, box)
				got.Prolong(d, e, lower, upper, box)
				sameBits(t, c, d, "prolonged")
				d = cacheAligned(u)
				kept, keep := drawArray(t, fine), []float64(nil)
				keep = cacheAligned(kept)
				each(box, func(x, y, z int) { kept[fine.Index(x, y, z)] = u[fine.Index(x, y, z)] })
				got.ProlongSaving(d, keep, e, lower, upper, box)
				sameBits(t, c, d, "prolonged with saving")
				sameBits(t, kept, keep, "kept")
			})
		})
	}
}

// Restriction is the transpose of prolongation times the ratio of the spacings. Prolongation preserves
// linear functions.
func TestRestrictionIsTheScaledTranspose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fine, coarse := drawGrids(t)
		tr, err := NewTransfer(Whole(fine), Whole(coarse), nil)
		require.NoError(t, err)
		r, e, pe, rr := make([]float64, fine.Len()), make([]float64, coarse.Len()), make([]float64,
			fine.Len()), make([]float64, coarse.Len())
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		each(fine.Interior(), func(x, y, z int) { r[fine.Index(x, y, z)] = rnd.Float64() - 0.5 })
		each(coarse.Interior(), func(x, y, z int) { e[coarse.Index(x, y, z)] = rnd.Float64() - 0.5 })
		tr.Prolong(pe, e, NoLower(), NoUpper(), fine.Interior())
		tr.Restrict(rr, r, coarse.Interior())
		var left, right float64
		for i := range r {
			left += r[i] * pe[i]
		}
		for i := range rr {
			right += rr[i] * e[i]
		}
		for a := range fine.Dim {
			right *= float64(fine.N[a]+1) / float64(coarse.N[a]+1)
		}
		require.InDelta(t, left, right, 1e-12*float64(fine.Points()))

		linear := func(n [3]int, x, y, z int) float64 {
			v := 0.25
			for a, i := range []int{x, y, z}[:fine.Dim] {
				v += float64(a+1) * float64(i+1) / float64(n[a]+1)
			}
			return v
		}
		ghosts := Box{[3]int{-1, -1, -1}, [3]int{coarse.N[0] + 1, coarse.N[1] + 1, coarse.N[2] + 1}}
		for a := fine.Dim; a < 3; a++ {
			ghosts.Lo[a], ghosts.Hi[a] = 0, 1
		}
		each(ghosts, func(x, y, z int) { e[coarse.Index(x, y, z)] = linear(coarse.N, x, y, z) })
		clear(pe)
		tr.Prolong(pe, e, NoLower(), NoUpper(), fine.Interior())
		each(fine.Interior(), func(x, y, z int) {
			require.InDelta(t, linear(fine.N, x, y, z), pe[fine.Index(x, y, z)], 1e-13)
		})
	})
}

// Blocks of two grids compute the bits of the whole grids for every partition that needs only one ghost layer.
func TestTransfersDoNotDependOnThePartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fine, coarse := drawGrids(t)
		whole, err := NewTransfer(Whole(fine), Whole(coarse), nil)
		require.NoError(t, err)
		f, c := Whole(fine), Whole(coarse)
		for a := range fine.Dim {
			if whole.axes[a].nested {
				c.Lo[a] = rapid.IntRange(0, coarse.N[a]-1).Draw(t, "first")
				c.Layout.N[a] = rapid.IntRange(1, coarse.N[a]-c.Lo[a]).Draw(t, "points")
				f.Lo[a] = 2*c.Lo[a] + rapid.IntRange(0, 1).Draw(t, "side")
				f.Layout.N[a] = min(2*c.Layout.N[a], fine.N[a]-f.Lo[a])
			}
		}
		f.Layout, err = NewLayout(fine.Dim, f.Layout.N)
		require.NoError(t, err)
		c.Layout, err = NewLayout(fine.Dim, c.Layout.N)
		require.NoError(t, err)
		part, err := NewTransfer(f, c, nil)
		require.NoError(t, err)
		u, e := drawArray(t, fine), drawArray(t, coarse)
		pu, pe := cut(fine, f, u), cut(coarse, c, e)
		part.Restrict(pe, pu, c.Layout.Interior())
		whole.Restrict(e, u, coarse.Interior())
		inner := cut(coarse, c, e)
		each(c.Layout.Interior(), func(x, y, z int) {
			i := c.Layout.Index(x, y, z)
			sameBits(t, inner[i:i+1], pe[i:i+1], "restricted")
		})
		pe = cut(coarse, c, e)
		part.Prolong(pu, pe, NoLower(), NoUpper(), f.Layout.Interior())
		whole.Prolong(u, e, NoLower(), NoUpper(), fine.Interior())
		inner = cut(fine, f, u)
		each(f.Layout.Interior(), func(x, y, z int) {
			i := f.Layout.Index(x, y, z)
			sameBits(t, inner[i:i+1], pu[i:i+1], "prolonged")
		})
	})
}

// cut copies a block and its ghosts from a whole grid.
func cut(l Layout, p Part, u []float64) []float64 {
	out := make([]float64, p.Layout.Len())
	b := Box{Lo: [3]int{-1, -1, -1}}
	for a := range b.Hi {
		b.Hi[a] = p.Layout.N[a] + 1
		if a >= l.Dim {
			b.Lo[a], b.Hi[a] = 0, 1
		}
	}
	each(b, func(x, y, z int) {
		out[p.Layout.Index(x, y, z)] = u[l.Index(x+p.Lo[0], y+p.Lo[1], z+p.Lo[2])]
	})
	return out
}

// Points in contact with an obstacle keep their value, the others are projected.
func TestCorrectionsLeaveTheContactSet(t *testing.T) {
	fine, err := NewLayout(1, [3]int{3, 1, 1})
	require.NoError(t, err)
	coarse, err := NewLayout(1, [3]int{1, 1, 1})
	require.NoError(t, err)
	tr, err := NewTransfer(Whole(fine), Whole(coarse), nil)
	require.NoError(t, err)
	u := []float64{9, 1, 2, 3, 9}
	e := []float64{0, 4, 0}
	tr.Prolong(u, e, Field{Array: []float64{1, 0, 0}}, Field{Array: []float64{9, 5, 4.5}}, fine.Interior())
	require.Equal(t, []float64{9, 1, 5, 4.5, 9}, u) // in contact; cut at 5 (2 + 4); cut at 4.5 (3 + 2)
	u = []float64{9, 1, 2, 3, 9}
	tr.Prolong(u, e, NoLower(), Field{Value: 3}, fine.Interior())
	require.Equal(t, []float64{9, 3, 3, 3, 9}, u)
	r := []float64{0, 1, 2, 4, 0}
	tr.Restrict(e, r, coarse.Interior())
	require.Equal(t, (1+2*2+4)/4.0, e[1])
}

func TestInvalidTransfersAreRefused(t *testing.T) {
	two, err := NewLayout(2, [3]int{5, 5, 1})
	require.NoError(t, err)
	three, err := NewLayout(3, [3]int{2, 2, 2})
	require.NoError(t, err)
	_, err = NewTransfer(Whole(two), Whole(three), nil)
	require.ErrorContains(t, err, "2 and 3 dimensions")
	_, err = NewTransfer(Part{Layout: two, Global: [3]int{5, 5, 1}, Lo: [3]int{1, 0, 0}}, Whole(two), nil)
	require.ErrorContains(t, err, "5 points from 1 on")
	coarse, err := NewLayout(2, [3]int{2, 2, 1})
	require.NoError(t, err)
	tr, err := NewTransfer(Whole(two), Whole(coarse), nil)
	require.NoError(t, err)
	u, e := make([]float64, two.Len()), make([]float64, coarse.Len())
	require.Panics(t, func() { tr.Restrict(e, u, Box{Hi: [3]int{3, 2, 1}}) })
	require.Panics(t, func() { tr.Restrict(e, u[1:], coarse.Interior()) })
	require.Panics(t, func() { tr.Prolong(u, e[1:], NoLower(), NoUpper(), two.Interior()) })
	// The block lacks a fine point that a coarse point needs.
	f, err := NewLayout(2, [3]int{2, 5, 1})
	require.NoError(t, err)
	part, err := NewTransfer(Part{Layout: f, Global: [3]int{5, 5, 1}}, Whole(coarse), nil)
	require.NoError(t, err)
	w := make([]float64, f.Len())
	require.Panics(t, func() { part.Restrict(e, w, coarse.Interior()) })
}

func TestTransfersAllocateNothing(t *testing.T) {
	for _, n := range []int{31, 32} {
		fine, err := NewLayout(3, [3]int{n, n, n})
		require.NoError(t, err)
		coarse, err := NewLayout(3, [3]int{15, 15, 15})
		require.NoError(t, err)
		u, r, e := make([]float64, fine.Len()), make([]float64, fine.Len()), make([]float64, coarse.Len())
		for _, k := range All()[1:] {
			tr, err := NewTransfer(Whole(fine), Whole(coarse), k)
			require.NoError(t, err)
			s, err := New(Config{Layout: fine, Kernel: k, Step: 0.1, Lower: NoLower(), Upper: NoUpper(),
				Operator: Operator{Diag: 6, Off: 1}})
			require.NoError(t, err)
			var sum Sum
			require.Zero(t, testing.AllocsPerRun(5, func() {
				s.RelaxColour(u, 0, 1.2, fine.Interior())
				s.RedBlack(u, 1.2, 2, descending{})
				s.Defect(r, u, fine.Interior())
				s.Apply(r, u, fine.Interior())
				s.Energy(&sum, u, r, fine.Interior())
				tr.Restrict(e, r, coarse.Interior())
				tr.Prolong(u, e, NoLower(), NoUpper(), fine.Interior())
			}), "%s, %d points", k.Name(), n)
		}
	}
}

// Grids whose rows are processed in several pieces.
func TestWideGrids(t *testing.T) {
	ref := All()[0]
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ fine, coarse [3]int }{
		{[3]int{2801, 9, 1}, [3]int{1400, 4, 1}}, // nested
		{[3]int{151, 101, 5}, [3]int{75, 50, 2}},
		{[3]int{2800, 9, 1}, [3]int{1402, 4, 1}}, // not
		{[3]int{9000, 9, 1}, [3]int{20, 9, 1}},
		{[3]int{150, 101, 5}, [3]int{77, 50, 5}},
	} {
		dim := 3
		if c.fine[2] == 1 {
			dim = 2
		}
		fine, err := NewLayout(dim, c.fine)
		require.NoError(t, err)
		coarse, err := NewLayout(dim, c.coarse)
		require.NoError(t, err)
		u, e := values(r, fine.Len(), 0), values(r, coarse.Len(), 0)
		lower := Field{Array: values(r, fine.Points(), 0)}
		box := fine.Interior()
		box.Lo[0] = 3
		var want [][]float64
		for _, k := range append([]*Kernel{ref}, All()[1:]...) {
			tr, err := NewTransfer(Whole(fine), Whole(coarse), k)
			require.NoError(t, err)
			s, err := New(Config{Layout: fine, Kernel: k, Step: 0.1, Lower: lower, Upper: NoUpper(),
				Source: Field{Value: 0.3}, Operator: Operator{Diag: 6, Off: 1}})
			require.NoError(t, err)
			restricted, defect, prolonged, relaxed := cacheAligned(e), cacheAligned(u), cacheAligned(u), cacheAligned(u)
			var sum Sum
			tr.Restrict(restricted, u, coarse.Interior())
			s.Defect(defect, u, fine.Interior())
			tr.Prolong(prolonged, e, lower, Field{Value: 1}, box)
			s.RedBlack(relaxed, 1.3, 3, concurrent{})
			s.Energy(&sum, u, relaxed, fine.Interior())
			got := [][]float64{restricted, defect, prolonged, relaxed, {sum.Float64()}}
			if want == nil {
				want = got
			}
			for i, what := range []string{"restricted", "defect", "prolonged", "relaxed", "energy"} {
				sameBits(t, want[i], got[i], k.Name()+" "+what)
			}
		}
	}
}
