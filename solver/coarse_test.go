package solver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// TestRestrictionIsTheTransposeOfInterpolation: ⟨R·r, e⟩ = scale·⟨r, P·e⟩, added up over
// the pieces of any partition.
func TestRestrictionIsTheTransposeOfInterpolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		part := anyPartition(t, p)
		n, ok := coarseSize(p, 2, rapid.IntRange(1, 40).Draw(t, "most"))
		if !ok {
			return
		}
		g, err := newCoarseGrid(p, n)
		require.NoError(t, err)
		number := rapid.Float64Range(-1, 1)
		e := make([]float64, g.layout.Points())
		for i := range e {
			e[i] = number.Draw(t, "e")
		}
		fine, err := kernel.NewLayout(p.Dimension, p.N)
		require.NoError(t, err)
		r, pe := make([]float64, fine.Len()), make([]float64, p.N[0])
		whole := g.layout.Interior()
		line := make([]float64, n[0]+2)
		fineSide, sum := 0.0, make([]float64, len(e))
		for z := range p.N[2] {
			for y := range p.N[1] {
				g.row(pe, e, whole, 0, y, z, line)
				for x := range p.N[0] {
					v := number.Draw(t, "r")
					r[fine.Index(x, y, z)] = v
					fineSide += v * pe[x]
				}
			}
		}
		for q := range part.Peers() {
			box := part.Box(Rank(q))
			piece := g.piece(box)
			values := make([]float64, piece.Points())
			g.restrict(values, piece, r, fine, [3]int{}, box, line)
			eachPoint(piece, func(x, y, z int) {
				at := g.layout.Dense(x, y, z)
				sum[at] += values[denseIn(piece, x, y, z)]
			})
		}
		coarseSide := 0.0
		for i := range e {
			coarseSide += sum[i] * e[i]
		}
		require.InDelta(t, g.scale*fineSide, coarseSide, 1e-12*float64(len(r)))
	})
}

func TestCoarseGridsKeepTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Problem{Dimension: rapid.IntRange(1, 3).Draw(t, "dim"), N: [3]int{1, 1, 1}}
		for a := range p.Dimension {
			p.N[a] = rapid.IntRange(1, 300).Draw(t, "n")
		}
		most := rapid.IntRange(0, 5000).Draw(t, "most")
		n, ok := coarseSize(p, 2, most)
		if !ok {
			return
		}
		points := n[0] * n[1] * n[2]
		require.Less(t, points, p.Points())
		if most == 0 {
			require.LessOrEqual(t, points, max(1, p.Points()/coarsePart))
		} else {
			require.LessOrEqual(t, points, most)
		}
	})
	_, ok := coarseSize(&Problem{Dimension: 1, N: [3]int{50, 1, 1}}, 1, 0)
	require.False(t, ok, "one peer needs none")
	_, ok = coarseSize(&Problem{Dimension: 1, N: [3]int{50, 1, 1}}, 2, -1)
	require.False(t, ok, "none is wanted")
	for contrast, want := range map[float64]bool{100: true, 1000: false, 1e-3: false} {
		p := membrane([3]int{31, 31, 1}, 2)
		p.Diffusion.Of = func(q Point) float64 {
			if math.Hypot(q[0]-0.3, q[1]-0.4) < 0.1 {
				return contrast
			}
			return 1
		}
		part, err := GridOf(p.N, [3]int{2, 2, 1})
		require.NoError(t, err)
		c := Config{Problem: p, Partition: part, Scheme: Asynchronous()}
		_, ok = coarseGridOf(&c)
		require.Equal(t, want, ok, "contrast %v", contrast)
		c.Method.Coarse = 9
		_, ok = coarseGridOf(&c)
		require.True(t, ok, "asked for")
		c.Method.Coarse, c.Scheme = 0, Synchronous()
		_, ok = coarseGridOf(&c)
		require.True(t, ok, "in lockstep")
	}
}

// TestExchangesDoNotGrowWithPeers is the point of the coarse correction. With it 64 boxes
// take hardly more exchanges than 8; without it more than twice as many.
func TestExchangesDoNotGrowWithPeers(t *testing.T) {
	p := membrane([3]int{32, 32, 32}, 3)
	count := func(parts [3]int, s Scheme, coarse, overlap int) Iteration {
		part, err := GridOf(p.N, parts)
		require.NoError(t, err)
		c := Config{Problem: p, Partition: part, Scheme: s, Tolerance: 1e-6, MaxSweeps: 200,
			Method: MethodConfig{Name: Schwarz, Local: SOR, Work: 30, Overlap: overlap, Coarse: coarse}}
		peers := together(t, configsFor(c))
		e, err := Evaluate(p, collected(p, peers), nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, 1e-6)
		return peers[0].Outcome().Sweeps
	}
	few, many := count([3]int{2, 2, 2}, Synchronous(), 0, 2), count([3]int{4, 4, 4}, Synchronous(), 0, 2)
	without := count([3]int{4, 4, 4}, Synchronous(), -1, 2)
	t.Logf("overlap 2: 8 peers %d exchanges, 64 peers %d, without the correction %d", few, many, without)
	require.LessOrEqual(t, few, Iteration(8))
	require.LessOrEqual(t, many, Iteration(11))
	require.Greater(t, without, 2*many)
}

// TestCorrectionsThatDoNotHelp: with a coarse operator that is much too weak corrections
// overshoot. The run must end all the same, by the relaxation alone.
func TestCorrectionsThatDoNotHelp(t *testing.T) {
	p := membrane([3]int{24, 24, 1}, 2)
	part, err := GridOf(p.N, [3]int{3, 3, 1})
	require.NoError(t, err)
	for _, s := range []Scheme{Synchronous(), Asynchronous()} {
		t.Run(s.Name(), func(t *testing.T) {
			c := Config{Problem: p, Partition: part, Scheme: s, Tolerance: 1e-6, Method: MethodConfig{Name: Schwarz, Local: SOR, Work: 20, Overlap: 2, Coarse: 36}}
			n, err := newNetwork(3, configsFor(c))
			require.NoError(t, err)
			w := n.peers[0].(*schwarz)
			r := w.coarse.root
			r.operator.Diag, r.operator.Off = r.operator.Diag/40, r.operator.Off/40
			sweep, err := (&block{problem: w.block.problem, box: Box{Hi: w.coarse.grid.n}, layout: r.layout, operator: r.operator, diagonal: r.operator.Diag,
				source: kernel.Field{Array: r.source}, lower: kernel.Field{Array: r.lower}, upper: kernel.Field{Array: r.upper}}).sweep(1)
			require.NoError(t, err)
			r.sweep, r.solver = sweep, lifted{sweep, r.layout}
			r.forecast = nil // it would learn to expect little of them
			require.NoError(t, n.run())
			for _, q := range n.peers {
				require.Equal(t, Converged, q.Outcome().Reason)
			}
			t.Log(w.iterate, w.coarse.newest, w.coarse.in, r.guard, r.layout.N)
			require.Positive(t, r.guard.until, "the guard had to step in")
			e, err := Evaluate(p, n.assemble(p, part), nil)
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, 1e-6)
		})
	}
}

// lifted solves a coarse problem by Gauss–Seidel and keeps to its obstacles.
type lifted struct {
	*kernel.Sweep
	layout kernel.Layout
}

func (l lifted) Name() string            { return "lifted" }
func (l lifted) Start([]float64) float64 { return 0 }
func (l lifted) Changed()                {}
func (l lifted) Describe() string        { return "" }
func (l lifted) Bytes() int              { return 0 }

func (l lifted) Cycle(u []float64) float64 {
	l.RedBlack(u, 1, 60, kernel.Sequential{})
	return 60
}

// TestGuard: corrections stop when the residual does not fall for a number of rounds, for
// ever longer, and a round takes everybody's share.
func TestGuard(t *testing.T) {
	g := coarseGuard{seen: make([]bool, 2)}
	g.begin()
	members := []share{{square: 3, fresh: true}, {square: 1, fresh: true}}
	k := Iteration(0)
	admitted := func() (n int) {
		for g.admits(k, members) {
			n++
			k++
			require.Less(t, n, 1000)
		}
		return n
	}
	require.Equal(t, guardRounds, admitted())
	require.Equal(t, k+guardPause, g.until)
	require.False(t, g.grown)
	k = g.until
	require.Zero(t, admitted(), "relaxation has brought nothing since")
	require.Equal(t, k+2*guardPause, g.until)
	k = g.until
	members[0].square /= 2   // now it has
	members[1].fresh = false // nobody hears of it any more: no round ends
	for range 10 * guardRounds {
		require.True(t, g.admits(k, members))
		k++
	}
	members[1].fresh = true
	for range 100 { // it falls
		members[0].square *= 0.5
		members[1].square *= 0.5
		require.True(t, g.admits(k, members))
		k++
	}
	last := members[0].square
	members[0].square *= 1000
	require.False(t, g.admits(k, members), "it has grown")
	require.True(t, g.grown, "and the last one is taken back")
	k = g.until
	require.False(t, g.admits(k, members), "it is not yet where it was")
	require.False(t, g.grown, "there was none to take back")
	k = g.until
	members[0].square = last / 2
	require.True(t, g.admits(k, members))
}
