package launch

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// stepsOf returns a series of time steps on four points of two peers.
func stepsOf(t *testing.T, steps int, took func(int, float64, []float64)) (*series, problem.Partition) {
	t.Helper()
	spec, err := file.Open(nil, "front1d", []string{fmt.Sprintf("steps=%d", steps), "end=1"})
	require.NoError(t, err)
	p, err := spec.BuildValid([]int{4})
	require.NoError(t, err)
	cut, err := problem.Slabs(p.N, 2, nil)
	require.NoError(t, err)
	s, err := newSeries(&Plan{Problem: p, Spec: rendezvous.Spec{Partition: cut}, Steps: took})
	require.NoError(t, err)
	return s, cut
}

// send stores a peer's block, whose values are all v, and completes it.
func sendEnd(s *series, cut problem.Partition, rank, m int, v, residual float64) error {
	box := cut.Box(iterate.Rank(rank))
	u := make([]float64, box.Points())
	for i := range u {
		u[i] = v
	}
	data := make([]byte, blocks.Bytes(box))
	blocks.Encode(data, u)
	if err := s.put(rank, 0, data); err != nil {
		return err
	}
	return s.complete(rank, rendezvous.Step{Step: m, Sweeps: uint64(10*m + rank), Residual: nullable.Number(residual)},
		int64(len(data)))
}

// If planes move, a step is complete when its blocks cover the grid.
func TestSeriesOfBlocksThatMove(t *testing.T) {
	s, cut := stepsOf(t, 3, nil)
	s.owned.config.Balance = true
	s.owned.reset()
	all := s.owned.config.Partition.Box(0)
	part := func(lo, hi int) problem.Box {
		b := all
		b.Lo[s.owned.axis], b.Hi[s.owned.axis] = lo, hi
		return b
	}
	for m, end := range []int{1, 3} {
		require.NoError(t, s.declare(0, part(0, end)))
		require.ErrorContains(t, s.declare(1, part(end-1, end)), "overlap those of peer 0")
		require.NoError(t, s.declare(1, part(end, 4)))
		for rank, points := range []int{end, 4 - end} {
			data := make([]byte, 8*points)
			blocks.Encode(data, slices.Repeat([]float64{float64(rank + 1)}, points))
			require.Equal(t, int64(len(data)), blocks.Bytes(s.owned.box(rank)))
			require.NoError(t, s.put(rank, 0, data))
			require.NoError(t, s.complete(rank, rendezvous.Step{Step: m + 1}, int64(len(data))))
		}
		require.Equal(t, m+1, s.done)
		for i, v := range s.at(m + 1) {
			require.Equal(t, i >= end, v == 2, "step %d, value %d", m+1, i)
		}
	}
	require.NoError(t, s.declare(0, part(0, 1)))
	require.NoError(t, s.declare(1, part(2, 4)))
	require.NoError(t, s.complete(0, rendezvous.Step{Step: 3}, 8))
	require.ErrorContains(t, s.complete(1, rendezvous.Step{Step: 3}, 16), "no peer sent planes 1 to 2")
	require.Equal(t, 2, cut.Peers())
}

func TestSeriesAssemblesSteps(t *testing.T) {
	var seen []string
	s, cut := stepsOf(t, 4, func(m int, at float64, u []float64) {
		seen = append(seen, fmt.Sprint(m, at, m == 0 || u[0] == float64(m) && u[3] == -float64(m)))
	})
	residuals := []float64{0, 1e-8, 9e-7, 1e-9, 2e-8}
	for m := 1; m <= 4; m++ {
		require.NoError(t, sendEnd(s, cut, 1, m, -float64(m), residuals[m]))
		require.Equal(t, m-1, s.done, "one block has not arrived")
		require.NoError(t, sendEnd(s, cut, 0, m, float64(m), residuals[m]))
	}
	require.Equal(t, []string{"0 0 true", "1 0.25 true", "2 0.5 true", "3 0.75 true", "4 1 true"}, seen)
	var o Outcome
	s.summarize(&o)
	require.Equal(t, []float64{4, 4, -4, -4}, o.U)
	require.Equal(t, 4, o.Steps)
	require.Equal(t, Pair{4, []float64{3, 3, -3, -3}, []float64{4, 4, -4, -4}}, o.Last)
	require.Equal(t, Pair{2, []float64{1, 1, -1, -1}, []float64{2, 2, -2, -2}}, o.Worst)
	require.Len(t, o.StepList, 4)
	require.Equal(t, Step{3, 0.75, []uint64{30, 31}, 1e-9}, o.StepList[2])
	require.ErrorIs(t, sendEnd(s, cut, 0, 5, 1, 1), errSeries, "there is no step 5")
}

// A peer that is a step ahead waits for the others, without overwriting anything, until they follow or the run ends.
func TestSeriesBlocksAPeerThatIsAhead(t *testing.T) {
	synctest.Test(t, holdsWhoIsAhead)
}

func holdsWhoIsAhead(t *testing.T) {
	s, cut := stepsOf(t, 4, nil)
	require.NoError(t, sendEnd(s, cut, 0, 1, 1, 1e-7))
	ahead := make(chan error)
	go func() { ahead <- sendEnd(s, cut, 0, 2, 2, 1e-7) }()
	synctest.Wait() // it waits
	require.NoError(t, sendEnd(s, cut, 1, 1, -1, 1e-7))
	require.NoError(t, <-ahead)
	require.Equal(t, []float64{1, 1, -1, -1}, s.at(1))
	go func() { ahead <- sendEnd(s, cut, 0, 3, 3, 1e-7) }()
	synctest.Wait()
	s.close()
	require.ErrorIs(t, <-ahead, errSeries)
	var o Outcome
	s.summarize(&o)
	require.Equal(t, []float64{1, 1, -1, -1}, o.U, "the last complete step")
	require.Equal(t, 1, o.Steps)
}

// The list of many steps is a selection.
func TestSeriesListIsBounded(t *testing.T) {
	s, cut := stepsOf(t, 2500, nil)
	for m := 1; m <= 2500; m++ {
		require.NoError(t, sendEnd(s, cut, 0, m, 1, 1e-7))
		require.NoError(t, sendEnd(s, cut, 1, m, 1, 1e-7))
	}
	require.LessOrEqual(t, len(s.list), maxList)
	require.Equal(t, 3, s.list[0].Step)
	require.Equal(t, 2500, s.list[len(s.list)-1].Step)
}

// A series that begins after some steps counts them, and its values are those of the last one.
func TestSeriesAfterSteps(t *testing.T) {
	first, cut := stepsOf(t, 5, nil)
	var seen []int
	p := &Plan{
		Problem: first.problem, Spec: rendezvous.Spec{Partition: cut, After: 3}, Initial: []float64{5, 6, 7, 8},
		Steps: func(m int, _ float64, u []float64) { seen = append(seen, m, int(u[0])) },
	}
	s, err := newSeries(p)
	require.NoError(t, err)
	var o Outcome
	s.summarize(&o)
	require.Equal(t, 3, o.Steps)
	require.Equal(t, p.Initial, o.U)
	require.Zero(t, o.Last)
	for m := 4; m <= 5; m++ {
		require.NoError(t, sendEnd(s, cut, 0, m, float64(m), 1e-7))
		require.NoError(t, sendEnd(s, cut, 1, m, float64(m), 1e-7))
	}
	s.summarize(&o)
	require.Equal(t, 5, o.Steps)
	require.Equal(t, []float64{5, 5, 5, 5}, o.U)
	require.Equal(t, Pair{4, []float64{5, 6, 7, 8}, []float64{4, 4, 4, 4}}, o.Worst)
	require.Equal(t, []int{3, 5, 4, 4, 5, 5}, seen)
	p.Initial = nil
	_, err = newSeries(p)
	require.ErrorContains(t, err, "0 starting values")
}
