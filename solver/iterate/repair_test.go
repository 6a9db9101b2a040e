package iterate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// line is the points lo to hi−1 of x_i = (x_{i−1} + x_{i+1})/c + b_i on a line of several blocks.
type line struct {
	b      []float64 // of all points
	c      float64
	bounds []int
	rank   int
}

func (l line) Values() int       { return l.bounds[l.rank+1] - l.bounds[l.rank] }
func (l line) Start(x []float64) { x[0] = 1 }

func (l line) Neighbours() (out []iterate.Neighbour) {
	if l.rank > 0 {
		out = append(out, iterate.Neighbour{Rank: iterate.Rank(l.rank - 1), Send: []int{0}, Receive: []int{1}})
	}
	if l.rank < len(l.bounds)-2 {
		out = append(out, iterate.Neighbour{Rank: iterate.Rank(l.rank + 1), Send: []int{l.Values() - 1}, Receive: []int{0}})
	}
	return out
}

func (l line) Relax(next, x, ghosts []float64) {
	for i := range next {
		sum := 0.0
		if i > 0 {
			sum += x[i-1]
		} else if l.rank > 0 {
			sum += ghosts[1]
		}
		if i < len(x)-1 {
			sum += x[i+1]
		} else if l.rank < len(l.bounds)-2 {
			sum += ghosts[0]
		}
		next[i] = sum/l.c + l.b[l.bounds[l.rank]+i]
	}
}

// solve returns the fixed point on all points: that of one block.
func (l line) solve(t *testing.T) []float64 {
	l.bounds, l.rank = []int{0, len(l.b)}, 0
	x, _, _, err := iterate.Repair(l, nil, 0, 10_000, nil)
	require.NoError(t, err)
	return x
}

// drawLine returns one of three blocks of 4, 5 and 6 points.
func drawLine(r *rand.Rand, c float64, rank int) line {
	l := line{b: make([]float64, 15), c: c, bounds: []int{0, 4, 9, 15}, rank: rank}
	for i := range l.b {
		l.b[i] = r.NormFloat64()
	}
	return l
}

func distance(x, y []float64) (d float64) {
	for i := range x {
		d = max(d, math.Abs(x[i]-y[i]))
	}
	return d
}

// The values around a block with an error of ε give values of the block with an error below ε, at its edges ε·2/c at most.
func TestRepairedBlockIsNoWorseThanItsHalos(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		for rank := range 3 {
			l := drawLine(r, 2.1, rank)
			want := l.solve(t)
			own, halos, worst := want[l.bounds[rank]:l.bounds[rank+1]], map[iterate.Rank][]float64{}, 0.0
			for q := range 3 {
				other, values := l, append([]float64(nil), want[l.bounds[q]:l.bounds[q+1]]...)
				for i := range values {
					e := r.NormFloat64() / 10
					values[i], worst = values[i]+e, max(worst, math.Abs(e))
				}
				other.rank = q
				halos[iterate.Rank(q)] = iterate.Halo(other, iterate.Rank(rank), values)
			}
			x, sweeps, _, err := iterate.Repair(l, halos, 1e-12, 10_000, nil)
			require.NoError(t, err)
			require.Less(t, sweeps, iterate.Iteration(10_000))
			require.Positive(t, distance(x, own))
			require.LessOrEqual(t, distance(x, own), worst*2/2.1+1e-11)
		}
	}
}

// With exact values around it, the block is repaired exactly. Too few sweeps do not raise the error of the start.
func TestRepairFromExactValues(t *testing.T) {
	l := drawLine(rand.New(rand.NewPCG(3, 4)), 2.1, 1)
	want := l.solve(t)
	halos := map[iterate.Rank][]float64{0: {want[3]}, 2: {want[9]}}
	x, _, _, err := iterate.Repair(l, halos, 1e-14, 10_000, nil)
	require.NoError(t, err)
	require.InDeltaSlice(t, want[4:9], x, 1e-12)
	start := make([]float64, 5)
	l.Start(start)
	before := distance(start, want[4:9])
	for most := range iterate.Iteration(20) {
		x, sweeps, _, err := iterate.Repair(l, halos, 0, most, nil)
		require.NoError(t, err)
		require.Equal(t, most, sweeps)
		require.LessOrEqual(t, distance(x, want[4:9]), before)
	}
}

func TestUnusableHalos(t *testing.T) {
	l := drawLine(rand.New(rand.NewPCG(5, 6)), 2.1, 1)
	for name, halos := range map[string]map[iterate.Rank][]float64{
		"a halo of 0 values from rank 2":  {0: {1}},
		"a halo of 2 values from rank 0":  {0: {1, 2}, 2: {1}},
		"from rank 2 is NaN":              {0: {1}, 2: {math.NaN()}},
		"value 0 of the halo from rank 0": {0: {math.Inf(-1)}, 2: {1}},
	} {
		_, _, _, err := iterate.Repair(l, halos, 1e-6, 10, nil)
		require.ErrorContains(t, err, name)
	}
	l.c = 0.1 // no contraction
	_, _, _, err := iterate.Repair(l, map[iterate.Rank][]float64{0: {1}, 2: {1}}, 1e-6, 10_000, nil)
	require.ErrorContains(t, err, "the block diverges with fixed ghosts")
}

// A peer of a block with other starting values begins with these.
func TestStartFrom(t *testing.T) {
	l := drawLine(rand.New(rand.NewPCG(7, 8)), 2.1, 0)
	want := []float64{4, 3, 2, 1}
	p, err := iterate.NewPeer(iterate.Config{Peers: 3, Scheme: iterate.Synchronous()}, iterate.StartFrom(l, want))
	require.NoError(t, err)
	x := make([]float64, 4)
	p.Solution(x)
	require.Equal(t, want, x)
	require.Empty(t, iterate.Halo(l, 2, x))
	require.Equal(t, []float64{1}, iterate.Halo(l, 1, x))
}
