package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// The verdict is that of the median ratio of the rounds, in the direction in which the figure is better.
func TestVerdictOfTwoCommits(t *testing.T) {
	less, more := figure{"f", "s", false}, figure{"f", "s", true}
	require.Equal(t, "| f | s | 2 | 2.2 | 1.100 | 1.000 to 1.200 | 1.000 | **worse** |",
		less.row([]float64{2, 2, 2}, []float64{2.4, 2, 2.2}))
	require.Contains(t, more.row([]float64{2, 2}, []float64{2.2, 2.2}), "| 1.100 | 1.100 to 1.100 | 1.100 | better |")
	require.Contains(t, more.row([]float64{2, 2}, []float64{1.8, 1.8}), "**worse**")
	require.Contains(t, less.row([]float64{2, 2}, []float64{2.05, 2.05}), "within 3 %")
}

// Both commits are measured in every round, in alternating order. The first round is not counted.
func TestRoundsAlternate(t *testing.T) {
	var order []string
	closed := 0
	broken := errors.New("broken")
	open := func(_ context.Context, b *build) (func() ([]float64, error), func(), error) {
		return func() ([]float64, error) {
			if len(order) == 6 {
				return nil, broken
			}
			order = append(order, b.name)
			return []float64{float64(len(order))}, nil
		}, func() { closed++ }, nil
	}
	l := lane{part: "p", figures: []figure{{name: "f"}}, open: open}
	builds := [2]*build{{name: "old", Run: new(measure.Run)}, {name: "new", Run: new(measure.Run)}}
	values, err := l.compare(t.Context(), builds, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"old", "new", "new", "old", "old", "new"}, order)
	require.Equal(t, [2][][]float64{{{4, 5}}, {{3, 6}}}, values)
	require.Equal(t, 2, closed)
	_, err = l.compare(t.Context(), builds, 2)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "p: old")
}
