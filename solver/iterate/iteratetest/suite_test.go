package iteratetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// pair is one of two blocks with one value each, whose parts a test replaces.
type pair struct {
	neighbours []iterate.Neighbour
	relax      func(next, x, ghosts []float64)
}

func (p *pair) Values() int                     { return 1 }
func (p *pair) Neighbours() []iterate.Neighbour { return p.neighbours }
func (p *pair) Start([]float64)                 {}
func (p *pair) Relax(next, x, ghosts []float64) { p.relax(next, x, ghosts) }
func contraction(next, x, ghosts []float64)     { next[0] = (x[0]+ghosts[0])/4 + 1 }
func exchange(other iterate.Rank) iterate.Neighbour {
	return iterate.Neighbour{Rank: other, Send: []int{0}, Receive: []int{0}}
}

func TestSuiteRefusesBadBlocks(t *testing.T) {
	calls := 0.0
	for name, c := range map[string]struct {
		change func(p *pair)
		want   string
	}{
		"a good block": {func(*pair) {}, ""},
		"keeps state": {func(p *pair) {
			p.relax = func(next, x, ghosts []float64) { calls++; contraction(next, x, ghosts); next[0] += 1e-3 / calls }
		}, "iteratetest: Relax of rank 0 gives two results"},
		"reads next": {func(p *pair) {
			p.relax = func(next, x, ghosts []float64) { next[0] = next[0]/8 + ghosts[0]/4 + 1 }
		}, "Relax of rank 0 gives two results"},
		"changes x": {func(p *pair) {
			p.relax = func(next, x, ghosts []float64) { contraction(next, x, ghosts); x[0] = next[0] }
		}, "Relax of rank 0 changes x or ghosts"},
		"changes ghosts": {func(p *pair) {
			p.relax = func(next, x, ghosts []float64) { contraction(next, x, ghosts); ghosts[0] = 0 }
		}, "Relax of rank 0 changes x or ghosts"},
		"no neighbour": {func(p *pair) {
			p.neighbours = nil
			p.relax = func(next, _, _ []float64) { next[0] = 1 }
		}, "rank 1 has rank 0 as a neighbour, but not the reverse"},
		"sends more": {func(p *pair) { p.neighbours[0].Send = []int{0, 0} },
			"rank 0 sends 2 values to rank 1, which receives 1"},
		"sends an unknown value": {func(p *pair) { p.neighbours[0].Send = []int{1} }, "rank 0 sends value 1 to rank 1"},
		"receives at -1":         {func(p *pair) { p.neighbours[0].Receive = []int{-1} }, "position -1"},
		"receives twice":         {func(p *pair) { p.neighbours[0].Receive = []int{0, 0} }, "position 0 twice"},
		"neighbour of itself":    {func(p *pair) { p.neighbours[0].Rank = 0 }, "rank 0 has rank 0 as a neighbour"},
		"unknown rank":           {func(p *pair) { p.neighbours[0].Rank = 2 }, "rank 0 has rank 2 as a neighbour"},
		"does not converge": {func(p *pair) {
			p.relax = func(next, x, _ []float64) { next[0] = 1 - x[0] }
		}, "scheme sync, network 0: peer 0 ended after 1000 sweeps"},
		"diverges": {func(p *pair) {
			p.relax = func(next, x, _ []float64) { next[0] = 1 - 3*x[0] }
		}, "diverged"},
	} {
		a := &pair{[]iterate.Neighbour{exchange(1)}, contraction}
		b := &pair{[]iterate.Neighbour{exchange(0)}, contraction}
		c.change(a)
		err := Suite{Blocks: []iterate.Block{a, b}, MaxSweeps: 1000, Seeds: 1}.Check()
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
	}
	require.ErrorContains(t, Suite{}.Check(), "no blocks")
}

// An iteration may converge in lockstep and diverge when it reads old values.
func TestSuiteOfAnIterationForLockstepOnly(t *testing.T) {
	// x ← (−x − y)/1.2, y ← (x + y)/1.2: its square is 0, so it ends after two sweeps in lockstep; its matrix
	// of magnitudes has the spectral radius 5/3.
	sign := func(s float64) func(next, x, ghosts []float64) {
		return func(next, x, ghosts []float64) { next[0] = s*(x[0]+ghosts[0])/1.2 + 1 }
	}
	s := Suite{Blocks: []iterate.Block{
		&pair{[]iterate.Neighbour{exchange(1)}, sign(-1)}, &pair{[]iterate.Neighbour{exchange(0)}, sign(1)},
	}, MaxSweeps: 10_000, Seeds: 2, LockstepOnly: true}
	require.NoError(t, s.Check())
	s.LockstepOnly = false
	require.Error(t, s.Check())
}
