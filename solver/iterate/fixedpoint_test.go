package iterate_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
)

// cold is a line that starts from zeros, however it is divided.
type cold struct{ line }

func (cold) Start([]float64) {}

// lineOf returns the iteration of a line.
func lineOf(b []float64) *iterate.FixedPoint {
	return &iterate.FixedPoint{Unknowns: len(b), Block: func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
		return cold{line{b: b, c: 2.1, bounds: cuts, rank: int(rank)}}, nil
	}}
}

// A run that begins with other values ends at the residual that is relative to the iteration's own start, as Residual computes
// it, whatever the scheme and the cuts.
func TestResidualsReferToTheStartOfTheIteration(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	b := drawLine(r, 2.1, 0).b
	f := lineOf(b)
	cuts := []int{0, 4, 9, 15}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		for _, near := range []bool{false, true} {
			var peers []iterate.Peer
			for rank := range 3 {
				var initial []float64
				if near {
					l := line{b: b, c: 2.1}
					initial = l.solve(t)[cuts[rank]:cuts[rank+1]]
					initial[1] += 0.01 // far above the tolerance, had it been relative to this start
				}
				p, err := f.NewPeer(iterate.Config{Rank: iterate.Rank(rank), Scheme: s, Tolerance: 1e-3}, cuts, initial)
				require.NoError(t, err)
				require.Equal(t, [3]int{cuts[rank], 0, 0}, p.Box().Lo)
				require.Equal(t, [3]int{cuts[rank+1], 1, 1}, p.Box().Hi)
				require.Equal(t, p.Links(), f.Links(s, cuts, iterate.Rank(rank)))
				peers = append(peers, p)
			}
			require.NoError(t, iteratetest.NewNetwork(1, s, peers).Run())
			x := make([]float64, len(b))
			for rank, p := range peers {
				p.Solution(x[cuts[rank]:cuts[rank+1]])
			}
			relative, largest, err := f.Residual(x)
			require.NoError(t, err)
			if s.Lockstep() { // the verdict is on an iterate some sweeps before
				require.Less(t, relative, peers[0].Outcome().Residual)
				require.Less(t, peers[0].Outcome().Residual, 30*relative)
			} else {
				require.InEpsilon(t, relative, peers[0].Outcome().Residual, 1e-12)
			}
			require.LessOrEqual(t, relative, 1e-3)
			require.Positive(t, largest)
		}
	}
}

func TestUnusableFixedPoints(t *testing.T) {
	b := make([]float64, 6)
	short := lineOf(b)
	short.Unknowns = 7
	for want, f := range map[string]*iterate.FixedPoint{
		"needs a function":       {Unknowns: 3},
		"an iteration of 0 unkn": {Block: lineOf(b).Block},
		"there is no block": {Unknowns: 3, Block: func([]int, iterate.Rank) (iterate.Block, error) {
			return nil, nil
		}},
		"odd": {Unknowns: 3, Block: func([]int, iterate.Rank) (iterate.Block, error) { return nil, errors.New("odd") }},
	} {
		_, err := f.NewPeer(iterate.Config{Scheme: iterate.Synchronous()}, []int{0, 3}, nil)
		require.ErrorContains(t, err, want)
		_, _, err = f.Residual(b)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, f.Start(b), want)
		require.Nil(t, f.Links(iterate.Synchronous(), []int{0, 3}, 0))
		_, err = f.Parts([]int{0, 3})
		require.ErrorContains(t, err, want)
	}
	for _, rank := range []iterate.Rank{-1, 2} {
		_, err := lineOf(b).Part([]int{0, 3, 6}, rank)
		require.ErrorContains(t, err, "of 2 peers")
	}
	_, err := lineOf(b).NewPeer(iterate.Config{Scheme: iterate.Synchronous()}, []int{0, 3, 6}, make([]float64, 2))
	require.ErrorContains(t, err, "2 starting values for the 3 unknowns")
	_, _, err = lineOf(b).Residual(make([]float64, 5))
	require.ErrorContains(t, err, "a vector of 5 values")
	relative, _, err := lineOf(b).Residual([]float64{math.NaN(), 0, 0, 0, 0, 0})
	require.NoError(t, err)
	require.True(t, math.IsNaN(relative))
}

// An iteration whose tolerance is below the rounding errors ends.
func TestUnreachableToleranceOfAnIterationEnds(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		f := lineOf(drawLine(rand.New(rand.NewPCG(9, 9)), 2.1, 0).b)
		cuts := []int{0, 7, 15}
		var peers []iterate.Peer
		for rank := range iterate.Rank(2) {
			p, err := f.NewPeer(iterate.Config{Rank: rank, Scheme: s, Tolerance: 1e-300}, cuts, nil)
			require.NoError(t, err)
			peers = append(peers, p)
		}
		require.NoError(t, iteratetest.NewNetwork(1, s, peers).Run())
		o := peers[0].Outcome()
		require.True(t, o.Reason == iterate.Stagnated || o.Residual == 0, "%v", o)
	}
}

// Neighbours that do not agree are refused before a run begins.
func TestCutsWhoseNeighboursDoNotAgree(t *testing.T) {
	b := make([]float64, 6)
	cuts := []int{0, 2, 4, 6}
	require.NoError(t, lineOf(b).CheckCuts(cuts))
	for want, change := range map[string]func(rank iterate.Rank, n []iterate.Neighbour) []iterate.Neighbour{
		"rank 1 sends 1 values to rank 0, which receives 0 from it": func(rank iterate.Rank, n []iterate.Neighbour) []iterate.Neighbour {
			if rank == 0 {
				return nil
			}
			return n
		},
		"rank 0 sends 2 values to rank 1, which receives 1": func(rank iterate.Rank, n []iterate.Neighbour) []iterate.Neighbour {
			if rank == 0 {
				n[0].Send = []int{0, 1}
			}
			return n
		},
		"has rank 99 as a neighbour, in a run of 3 peers": func(_ iterate.Rank, n []iterate.Neighbour) []iterate.Neighbour {
			n[0].Rank = 99
			return n
		},
		"at position 1099511627776": func(_ iterate.Rank, n []iterate.Neighbour) []iterate.Neighbour {
			n[0].Receive = []int{1 << 40}
			return n
		},
		"with 6 unknowns positions are below 65536": func(_ iterate.Rank, n []iterate.Neighbour) []iterate.Neighbour {
			n[0].Receive = []int{1 << 20}
			return n
		},
	} {
		f := iterate.FixedPoint{Unknowns: 6, Block: func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
			own, err := lineOf(b).Block(cuts, rank)
			return rewired{own, func() []iterate.Neighbour { return change(rank, own.Neighbours()) }}, err
		}}
		require.ErrorContains(t, f.CheckCuts(cuts), want)
	}
	for _, n := range []int{math.MaxInt, iterate.MaxUnknowns + 1, math.MinInt} {
		require.ErrorContains(t, (&iterate.FixedPoint{Unknowns: n, Block: lineOf(b).Block}).Check(), "it must have 1 to")
	}
}

type rewired struct {
	iterate.Block
	neighbours func() []iterate.Neighbour
}

func (r rewired) Neighbours() []iterate.Neighbour { return r.neighbours() }

// F that is not finite anywhere ends the run as diverged, in every scheme, and no peer sends such a value.
func TestIterationThatIsNotFiniteDiverges(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(2)} {
		for _, wrong := range []float64{math.NaN(), math.Inf(1)} {
			f := lineOf(drawLine(rand.New(rand.NewPCG(3, 9)), 2.1, 0).b)
			of := f.Block
			f.Block = func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
				b, err := of(cuts, rank)
				return &breaking{b, rank == 1, 0, wrong}, err
			}
			cuts := []int{0, 5, 10, 15}
			var peers []iterate.Peer
			for rank := range iterate.Rank(3) {
				p, err := f.NewPeer(iterate.Config{Rank: rank, Scheme: s, Tolerance: 1e-12}, cuts, nil)
				require.NoError(t, err)
				peers = append(peers, p)
			}
			require.NoError(t, iteratetest.NewNetwork(1, s, peers).Run())
			for rank, p := range peers {
				require.Equal(t, iterate.Diverged, p.Outcome().Reason, "%s, rank %d", s.Name(), rank)
			}
		}
	}
}

// breaking is a block whose part of F is not finite from its ninth relaxation on.
type breaking struct {
	iterate.Block
	breaks  bool
	relaxed int
	wrong   float64
}

func (b *breaking) Relax(next, x, ghosts []float64) {
	b.Block.Relax(next, x, ghosts)
	if b.relaxed++; b.breaks && b.relaxed > 8 {
		next[0] = b.wrong
	}
}
