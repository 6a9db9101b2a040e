package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// block is a random problem on a block; all arrays have values, ghosts included.
type block struct {
	config   Config
	src, dst []float64
	lo, hi   [3]int
	inTurn   bool
}

var special = []float64{
	0, math.Copysign(0, -1), 5e-324, -5e-324, 1e-310, 1, -1, 0.1, math.Inf(1), math.Inf(-1), math.NaN(), 1e308, -1e308,
}

// values draws n values, a few of them special.
func values(r *rand.Rand, n int, odd float64) []float64 {
	a := make([]float64, n)
	for i := range a {
		switch {
		case r.Float64() < odd:
			a[i] = special[r.IntN(len(special))]
		default:
			a[i] = float64(r.IntN(9)-4) / 3
		}
	}
	return a
}

// cacheAligned copies an array to an address that is a multiple of 64, like those of large arrays.
func cacheAligned(a []float64) []float64 {
	room := make([]float64, len(a)+2*lineFloats)
	skip := int(-uintptr(unsafe.Pointer(&room[0])) % 64 / 8)
	return append(room[skip:skip:skip+len(a)], a...)
}

func drawField(t *rapid.T, name string, r *rand.Rand, n int, none float64) Field {
	switch rapid.IntRange(0, 2).Draw(t, name) {
	case 0:
		return Field{Array: values(r, n, 0.05)}
	case 1:
		return Field{Value: values(r, 1, 0.3)[0]}
	default:
		return Field{Value: none}
	}
}

func drawBlock(t *rapid.T) block { return drawBlockUpTo(t, 7) }

// drawBlockUpTo draws a block of at most most points along y and z.
func drawBlockUpTo(t *rapid.T, most int) block {
	dim := rapid.SampledFrom([]int{3, 3, 2, 1}).Draw(t, "dim")
	n := [3]int{rapid.OneOf(rapid.IntRange(1, 70), rapid.Just(64)).Draw(t, "nx"), 1, 1}
	for a := 1; a < dim; a++ {
		n[a] = rapid.IntRange(1, most).Draw(t, "n")
	}
	l, err := NewLayout(dim, n)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	odd := rapid.SampledFrom([]float64{0, 0.02, 0.2}).Draw(t, "odd")
	b := block{src: cacheAligned(values(r, l.Len(), odd)), dst: cacheAligned(values(r, l.Len(), odd))}
	b.config = Config{
		Layout: l, Step: rapid.SampledFrom([]float64{1, 0.16, 1e-3}).Draw(t, "step"),
		Source:    drawField(t, "source", r, l.Points(), 0),
		Lower:     drawField(t, "lower", r, l.Points(), math.Inf(-1)),
		Upper:     drawField(t, "upper", r, l.Points(), math.Inf(1)),
		TileBytes: rapid.SampledFrom([]int{0, 1}).Draw(t, "tile"), StreamFrom: rapid.SampledFrom([]int{0, 1,
			-1}).Draw(t, "stream"),
		Operator: Operator{Form: Form(rapid.IntRange(0, 2).Draw(t, "form")), Diag: 6.1, Off: 0.97},
	}
	if rapid.Bool().Draw(t, "common") { // the case with specialised loops
		b.config.Operator.Form = Isotropic
		b.config.Source, b.config.Upper = Field{Value: 0.3}, NoUpper()
		b.config.Lower = Field{Array: values(r, l.Points(), odd)}
	}
	if b.config.Operator.Form == Constant {
		copy(b.config.Operator.Values[:], values(r, Directions, 0))
	}
	if b.config.Operator.Form == Variable {
		for d := range 1 + 2*dim {
			b.config.Operator.Arrays[d] = values(r, l.Points(), 0.02)
		}
	}
	for a := range n {
		b.lo[a] = rapid.OneOf(rapid.Just(0), rapid.IntRange(0, n[a]-1)).Draw(t, "lo")
		b.hi[a] = rapid.IntRange(b.lo[a]+1, n[a]).Draw(t, "hi")
	}
	b.inTurn = rapid.Bool().Draw(t, "in turn")
	return b
}

// result holds all results of a variant for a block.
type result struct {
	relaxed, fused []float64
	norm, alone    Norm
}

func (b block) run(t require.TestingT, k *Kernel) result {
	c := b.config
	c.Kernel = k
	s, err := New(c)
	require.NoError(t, err)
	box := Box{b.lo, b.hi}
	out := result{relaxed: cacheAligned(b.dst), fused: cacheAligned(b.dst)}
	below := b.src
	if b.inTurn {
		below = out.relaxed
	}
	src := cacheAligned(b.src)
	s.Relax(out.relaxed, below, b.src, box)
	s.RelaxResidual(&out.norm, out.fused, b.src, box)
	s.Residual(&out.alone, b.src, box)
	sameBits(t, src, b.src, "the old iterate is not written")
	return out
}

// sameBits compares bit by bit; any NaN equals any other.
func sameBits(t require.TestingT, want, got []float64, what string) {
	require.Equal(t, len(want), len(got))
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) && !(want[i] != want[i] && got[i] != got[i]) {
			require.Failf(t, "not the same bits", "%s: at %d want %v (%#x), got %v (%#x)", what, i,
				want[i], math.Float64bits(want[i]), got[i], math.Float64bits(got[i]))
		}
	}
}

func TestEveryVariantComputesTheSameBits(t *testing.T) {
	ref := All()[0]
	for _, k := range All()[1:] {
		t.Run(k.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := drawBlock(t)
				want, got := b.run(t, ref), b.run(t, k)
				sameBits(t, want.relaxed, got.relaxed, "relaxed")
				sameBits(t, want.fused, got.fused, "relaxed with residual")
				for _, n := range [][2]*Norm{{&want.norm, &got.norm}, {&want.alone, &got.alone},
					{&got.norm, &got.alone}} {
					require.True(t, n[0].Squares.Equal(&n[1].Squares), "sum of squares %v, %v",
						n[0].Squares.Float64(), n[1].Squares.Float64())
					sameBits(t, []float64{n[0].Max}, []float64{n[1].Max}, "largest")
				}
			})
		})
	}
}

// The reference itself is compared with the contract written out by hand.
func TestReferenceFollowsTheWrittenOrder(t *testing.T) {
	l, err := NewLayout(3, [3]int{1, 1, 1})
	require.NoError(t, err)
	u := make([]float64, l.Len())
	at := func(x, y, z int) *float64 { return &u[l.Index(x, y, z)] }
	*at(0, 0, 0), *at(-1, 0, 0), *at(1, 0, 0) = 0.3, 0.1, 1e16
	*at(0, -1, 0), *at(0, 1, 0), *at(0, 0, -1), *at(0, 0, 1) = -1e16, 0.7, 0.9, 1.1
	k := All()[0]
	for _, c := range []struct{ phi, psi, want float64 }{
		{math.Inf(-1), math.Inf(1), 0},
		{5, math.Inf(1), 5},
		{math.Inf(-1), -7, -7},
	} {
		s, err := New(Config{Layout: l, Kernel: k, Step: 0.125, Source: Field{Value: 0.2},
			Lower: Field{Value: c.phi}, Upper: Field{Value: c.psi}, Operator: Operator{Diag: 6, Off: 1}})
		require.NoError(t, err)
		dst := make([]float64, l.Len())
		s.Relax(dst, u, u, l.Interior())
		if c.want == 0 {
			sum := ((0.1 + *at(1, 0, 0)) + (*at(0, -1, 0) + 0.7)) + (0.9 + *at(0, 0, 1))
			r := (float64(6**at(0, 0, 0)) - float64(1*sum)) - 0.2
			c.want = *at(0, 0, 0) - float64(0.125*r)
		}
		require.Equal(t, c.want, dst[l.Index(0, 0, 0)])
	}
}

func TestInTurnReadsTheNewPlane(t *testing.T) {
	for dim := 1; dim <= 3; dim++ {
		n := [3]int{1, 1, 1}
		n[dim-1] = 4
		l, err := NewLayout(dim, n)
		require.NoError(t, err)
		for _, k := range All() {
			s, err := New(Config{Layout: l, Kernel: k, Step: 1, Lower: NoLower(), Upper: NoUpper(),
				Operator: Operator{Diag: 1, Off: 1}})
			require.NoError(t, err)
			src, dst := make([]float64, l.Len()), make([]float64, l.Len())
			ghost := [3]int{}
			ghost[dim-1] = -1
			dst[l.Index(ghost[0], ghost[1], ghost[2])] = 1
			s.Relax(dst, dst, src, l.Interior()) // u = sum of neighbours: the 1 propagates
			last := [3]int{}
			last[dim-1] = 3
			require.Equal(t, 1.0, dst[l.Index(last[0], last[1], last[2])], "%s in %d-D", k.Name(), dim)
		}
	}
}

func TestResidualRulesAtObstacles(t *testing.T) {
	l, err := NewLayout(1, [3]int{1, 1, 1})
	require.NoError(t, err)
	src := make([]float64, l.Len()) // u = 0, so r = −f
	for _, k := range All() {
		for _, c := range []struct{ f, phi, psi, want float64 }{
			{3, -1, 1, 3}, {-3, -1, 1, 3}, // free
			{3, 0, 1, 3}, {-3, 0, 1, 0}, // on φ: min(r, 0)
			{3, -1, 0, 0}, {-3, -1, 0, 3}, // on ψ: max(r, 0)
			{3, 0, 0, 0}, {-3, 0, 0, 0},
		} {
			s, err := New(Config{Layout: l, Kernel: k, Step: 1, Source: Field{Value: c.f},
				Lower: Field{Value: c.phi}, Upper: Field{Value: c.psi}, Operator: Operator{Diag: 2, Off: 1}})
			require.NoError(t, err)
			var n Norm
			s.Residual(&n, src, l.Interior())
			require.Equal(t, c.want, n.Max, "%s %+v", k.Name(), c)
			require.Equal(t, c.want, n.L2(), "%s %+v", k.Name(), c)
		}
	}
}

func TestSweepsAllocateNothing(t *testing.T) {
	l, err := NewLayout(3, [3]int{33, 9, 9})
	require.NoError(t, err)
	src, dst := make([]float64, l.Len()), make([]float64, l.Len())
	for _, k := range All() {
		s, err := New(Config{Layout: l, Kernel: k, Step: 0.1, Lower: NoLower(), Upper: NoUpper(),
			Operator: Operator{Diag: 6, Off: 1}})
		require.NoError(t, err)
		var n Norm
		require.Zero(t, testing.AllocsPerRun(10, func() {
			n.Reset()
			s.Relax(dst, src, src, l.Interior())
			s.RelaxResidual(&n, dst, src, l.Interior())
			s.Residual(&n, src, l.Interior())
		}), k.Name())
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	l, err := NewLayout(2, [3]int{3, 4, 1})
	require.NoError(t, err)
	ok := Config{Layout: l, Step: 0.1, Lower: NoLower(), Upper: NoUpper()}
	for _, c := range []struct {
		change func(*Config)
		says   string
	}{
		{func(c *Config) { c.Layout = Layout{} }, "layout"},
		{func(c *Config) { c.Step = 0 }, "step"},
		{func(c *Config) { c.Step = math.NaN() }, "step"},
		{func(c *Config) { c.Source.Array = make([]float64, 3) }, "source has 3 values; the block has 12 points"},
		{func(c *Config) { c.Operator.Form = Variable }, "coefficient 0 has 0 values"},
		{func(c *Config) { c.Operator.Form = 9 }, "unknown form"},
	} {
		bad := ok
		c.change(&bad)
		_, err := New(bad)
		require.ErrorContains(t, err, c.says)
	}
	s, err := New(ok)
	require.NoError(t, err)
	u := make([]float64, l.Len())
	require.Panics(t, func() { s.Relax(u, u, u, Box{Hi: [3]int{4, 4, 1}}) })
	require.Panics(t, func() { s.Relax(u[1:], u, u, l.Interior()) })
	s.Relax(u, u, u, Box{}) // an empty box is a no-op
}
